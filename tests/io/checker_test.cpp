#include "io/checker.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "io/manifest.h"
#include "io/sources.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using io::ValueType;
using scheduler::OutputKind;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

// The value, or "error: …".
std::string value(const std::string& text, ValueType type) {
  const auto checked = io::check_value_text(text, type);
  return checked ? *checked : "error: " + checked.error().message;
}
bool good(const std::string& text, ValueType type) { return io::check_value_text(text, type).ok(); }

}  // namespace

TEST_CASE("value: an int is a decimal int64") {
  CHECK(value("64\n", ValueType::kInt) == "64");
  CHECK(value("-9223372036854775808", ValueType::kInt) == "-9223372036854775808");
  CHECK(value("   42\n", ValueType::kInt) == "42");  // as Fortran writes it
  CHECK(value("+7", ValueType::kInt) == "7");
  CHECK(value("007", ValueType::kInt) == "007");
  for (const char* bad :
       {"", "\n", "1.0", "0x10", "1 2", "9223372036854775808", "+-1", "--1", "1\n\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(good(bad, ValueType::kInt));
  }
  CHECK(value("1.5\n", ValueType::kInt) ==
        "error: found '1.5'; expected an int: decimal digits, from -9223372036854775808 to "
        "9223372036854775807");
  CHECK(value("", ValueType::kInt).starts_with("error: the file is empty; expected an int"));
}

TEST_CASE("value: a float is decimal, inf or nan, of a double's size") {
  for (const char* text :
       {"0.1", "1e-5", "-1.5E+3", "5", ".5", "5.", "inf", "-inf", "nan", "1e-400"}) {
    CAPTURE(text);
    CHECK(value(text, ValueType::kFloat) == text);
  }
  for (const char* bad :
       {"", "abc", "1,5", "0x1p3", "1.0D-3", "1e400", "1.0 2.0", "nan(1)", "+-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(good(bad, ValueType::kFloat));
  }
  CHECK(value("1e400", ValueType::kFloat).find("at most 1.797") != std::string::npos);
}

TEST_CASE("value: a bool is true or false") {
  CHECK(value("true\n", ValueType::kBool) == "true");
  CHECK(value("false", ValueType::kBool) == "false");
  CHECK(value("yes", ValueType::kBool) == "error: found 'yes'; expected a bool: true or false");
}

TEST_CASE("value: a string is any UTF-8 text, less one trailing newline") {
  CHECK(value("grüße\nzwei\n\n", ValueType::kString) == "grüße\nzwei\n");
  CHECK(value("", ValueType::kString).empty());
  CHECK(value("ab\xFF", ValueType::kString) ==
        "error: byte 3 is 0xff; a value is UTF-8 text without NUL: declare the output as a file");
  for (const std::string& bad :
       {std::string("a\0b", 3), std::string("\xC0\x80"), std::string("\xED\xA0\x80"),
        std::string("\xF4\x90\x80\x80"), std::string("\xE2\x82")}) {
    CHECK_FALSE(good(bad, ValueType::kString));
  }
}

TEST_CASE("value: a list is a JSON array that is not too deep") {
  CHECK(value("[1, \"a\"]\n", ValueType::kList) == "[1, \"a\"]");
  CHECK(value("{\"a\": 1}", ValueType::kList).find("expected a JSON array") != std::string::npos);
  CHECK_FALSE(good("[1,", ValueType::kList));
  CHECK_FALSE(good("[1] 2", ValueType::kList));
  CHECK(good(std::string(64, '[') + std::string(64, ']'), ValueType::kList));
  CHECK_FALSE(good(std::string(30'000, '[') + std::string(30'000, ']'), ValueType::kList));
  CHECK(good("[\"" + std::string(1000, '[') + "\\\"[\"]", ValueType::kList));
}

TEST_CASE("value: 64 KiB are the most") {
  CHECK(good(std::string(65'536, 'x'), ValueType::kString));
  CHECK(value(std::string(65'537, 'x'), ValueType::kString) ==
        "error: the file has more than 65536 bytes; a value has at most that: declare the output "
        "as a file");
}

TEST_CASE("value: every checked number is JSON when gathered") {
  CHECK(io::value_to_json("64", ValueType::kInt) == "64");
  CHECK(io::value_to_json("007", ValueType::kInt) == "7");
  CHECK(io::value_to_json("1e-5", ValueType::kFloat) == "1e-5");
  CHECK(io::value_to_json(".5", ValueType::kFloat) == "0.5");
  CHECK(io::value_to_json("inf", ValueType::kFloat) == "Infinity");
  CHECK(io::value_to_json("-inf", ValueType::kFloat) == "-Infinity");
  CHECK(io::value_to_json("nan", ValueType::kFloat) == "NaN");
  CHECK(io::value_to_json("a\n\"b", ValueType::kString) == "\"a\\n\\\"b\"");
  CHECK(io::value_to_json("[1,\n2]", ValueType::kList) == "[1, 2]");
}

TEST_CASE("check messages: found text is shortened and visible") {
  CHECK(io::shortened("abc") == "'abc'");
  CHECK(io::shortened("a\nb\tc\x01\xFF") == "'a\\nb\\tc\\x01\\xff'");
  CHECK(io::shortened(std::string(100, 'x')) == "'" + std::string(60, 'x') + "…'");
}

TEST_CASE("check: a request and a reply survive their encoding") {
  io::CheckRequest request{7, "/a \"b\"/ü.h5", OutputKind::kValue, ValueType::kList};
  const auto decoded = io::decode_check_request(io::encode(request));
  REQUIRE(decoded);
  CHECK(decoded->id == 7);
  CHECK(decoded->path == request.path);
  CHECK(decoded->kind == OutputKind::kValue);
  CHECK(decoded->value_type == ValueType::kList);

  request.path = "/not utf8 \xFF\xFE/x";
  CHECK(io::decode_check_request(io::encode(request))->path == request.path);

  io::CheckReply reply;
  reply.id = 9;
  reply.ok = true;
  reply.bytes = 1LL << 40U;
  reply.mode = 0755;
  reply.content = {0x0123456789abcdefULL, 42};
  reply.value = "v\n";
  reply.description = "d";
  const auto back = io::decode_check_reply(io::encode(reply));
  REQUIRE(back);
  CHECK(back->id == 9);
  CHECK(back->ok);
  CHECK(back->bytes == reply.bytes);
  CHECK(back->mode == 0755);
  CHECK(back->content == reply.content);
  CHECK(back->value == "v\n");
  CHECK(back->description == "d");
}

TEST_CASE("check: failures and crashes are replies too; nonsense is an error") {
  io::CheckReply failed;
  failed.id = 3;
  failed.error = "found \xFF";
  const auto back = io::decode_check_reply(io::encode(failed));
  REQUIRE(back);
  CHECK_FALSE(back->ok);
  CHECK(back->error.starts_with("found "));
  const auto crashed = io::decode_check_reply(R"({"id":0,"crashed":11})");
  REQUIRE(crashed);
  CHECK(crashed->crashed_signal == 11);
  for (const char* bad : {"", "{", "[]", "{}", R"({"id":1})", R"({"id":1,"ok":true})",
                          R"({"id":"1","ok":false,"error":"x"})"}) {
    CAPTURE(bad);
    CHECK_FALSE(io::decode_check_reply(bad));
    CHECK_FALSE(io::decode_check_request(bad));
  }
}

TEST_CASE("check: numbers that do not fit and paths that no system takes are nonsense") {
  const auto reply = [](const std::string& bytes, const std::string& mode) {
    return io::decode_check_reply(R"({"id":1,"ok":true,"bytes":)" + bytes +
                                  R"(,"content":"00000000000000000000000000000001","value":"",)"
                                  R"("mode":)" +
                                  mode + R"(,"description":""})");
  };
  CHECK(reply("9223372036854775807", "4095"));
  for (const char* bytes : {"-1", "9223372036854775808", "18446744073709551615", "1.5"}) {
    CAPTURE(bytes);
    CHECK_FALSE(reply(bytes, "420"));
  }
  for (const char* mode : {"-1", "4096", "4294967296"}) {
    CAPTURE(mode);
    CHECK_FALSE(reply("1", mode));
  }
  for (const char* signal : {"0", "-11", "4294967307"}) {
    CAPTURE(signal);
    CHECK_FALSE(io::decode_check_reply(R"({"id":0,"crashed":)" + std::string(signal) + "}"));
  }
  for (const char* path : {R"("path":"")", R"("path":"/a\u0000b")", R"("path_hex":"2f6100")",
                           R"("path_hex":"2f6")", R"("path_hex":"")"}) {
    CAPTURE(path);
    CHECK_FALSE(io::decode_check_request(R"({"id":1,"kind":"file","type":"int",)" +
                                         std::string(path) + "}"));
  }
  CHECK_FALSE(io::decode_check_request(R"({"id":-1,"kind":"file","type":"int","path":"/x"})"));
}

TEST_CASE("check plain: a file gives size, mode and content id") {
  const TemporaryFolder folder;
  write_text(folder / "x", "hello");
  ::chmod((folder / "x").c_str(), 0640);
  const auto reply = io::check_plain({4, folder / "x", OutputKind::kFile, ValueType::kString});
  CHECK(reply.id == 4);
  CHECK(reply.ok);
  CHECK(reply.bytes == 5);
  CHECK(reply.mode == 0640);
  CHECK(reply.content == io::hash_text("hello"));
}

TEST_CASE("check plain: a value gives its text; a wrong one names the file") {
  const TemporaryFolder folder;
  write_text(folder / "score", "0.25\n");
  const auto reply = io::check_plain({1, folder / "score", OutputKind::kValue, ValueType::kFloat});
  CHECK(reply.ok);
  CHECK(reply.value == "0.25");
  CHECK(reply.content == io::hash_text("0.25\n"));
  const auto wrong = io::check_plain({1, folder / "score", OutputKind::kValue, ValueType::kInt});
  CHECK_FALSE(wrong.ok);
  CHECK(wrong.error.starts_with("'score': found '0.25'; expected an int"));
}

TEST_CASE("check plain: what is no regular file is named") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& name) {
    return io::check_plain({1, folder / name, OutputKind::kFile, ValueType::kString}).error;
  };
  fs::create_symlink("/etc/passwd", folder / "link");
  fs::create_directory(folder / "folder");
  ::mkfifo((folder / "pipe").c_str(), 0600);
  CHECK(error("link") ==
        "'link' is a symbolic link to '/etc/passwd'; expected a regular file: write or copy the "
        "bytes "
        "there");
  CHECK(error("folder") ==
        "'folder' is a directory; expected a regular file: if a directory is meant, declare the "
        "output "
        "as {dir: folder}");
  CHECK(error("pipe") ==
        "'pipe' is a named pipe; expected a regular file: write or copy the bytes there");
  CHECK(error("none") == "no file 'none' in the directory; it holds: folder, link, pipe");
}

TEST_CASE("check: a directory is checked and hashed as a whole, and a long look at it is told") {
  const test::TemporaryFolder folder;
  test::write_text(folder / "parts/a", "one");
  test::write_text(folder / "parts/b/c", "three");
  int told = 0;
  const io::CheckReply reply = io::check_plain(
      {1, folder / "parts", OutputKind::kDir, ValueType::kString}, [&told] { ++told; });
  REQUIRE_MESSAGE(reply.ok, reply.error);
  CHECK(reply.bytes == 8);
  CHECK(reply.content == *io::hash_object(folder / "parts"));
  CHECK(told == 2);
  io::CheckReply busy;
  busy.id = 7;
  busy.busy = true;
  CHECK(io::decode_check_reply(io::encode(busy))->busy);
  const auto request = io::decode_check_request(
      io::encode(io::CheckRequest{1, "/x", OutputKind::kDir, ValueType::kString}));
  CHECK(request->kind == OutputKind::kDir);
}

TEST_CASE("check: a request for a view arrives as it was sent, an impossible one is refused") {
  io::CheckRequest request{5, "/new\xFF.h5", OutputKind::kFile, ValueType::kString};
  request.sources = "/list";
  request.view = {"/u", 10, 20, 3, 16, io::H5View::Gather::kStack};
  const auto back = io::decode_check_request(io::encode(request));
  REQUIRE(back.ok());
  CHECK(back->path == request.path);
  CHECK(back->sources == "/list");
  CHECK(back->view == request.view);
  for (const io::H5View& view : {io::H5View{"", 20, 10, 0, 0, {}}, io::H5View{"", -1, 10, 0, 0, {}},
                                 io::H5View{"", 0, -1, 4, 4, {}}}) {
    request.view = view;
    CHECK_FALSE(io::decode_check_request(io::encode(request)).ok());
  }
}

TEST_CASE("check: a file where a directory is expected, and the reverse, name the other key") {
  const test::TemporaryFolder folder;
  test::write_text(folder / "file", "x");
  const auto error = [&folder](const std::string& name, OutputKind kind) {
    return io::check_plain({1, folder / name, kind, ValueType::kString}).error;
  };
  CHECK(error("file", OutputKind::kDir).find("declare the output as {file: file}") !=
        std::string::npos);
  std::filesystem::create_directory(folder / "tree");
  CHECK(error("tree", OutputKind::kFile).find("declare the output as {dir: tree}") !=
        std::string::npos);
  CHECK(error("gone", OutputKind::kDir) ==
        "no directory 'gone' in the directory; it holds: file, tree");
}
