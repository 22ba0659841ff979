#include "io/item_sources.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
using Texts = std::vector<std::string>;
namespace fs = std::filesystem;

// A folder with empty files of these names.
class Tree {
 public:
  explicit Tree(const Texts& names) {
    for (const std::string& name : names) {
      fs::create_directories((folder_.path() / name).parent_path());
      test::write_text(folder_.path() / name, "");
    }
  }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }
  [[nodiscard]] Texts find(const std::string& pattern, const fs::path& left_out = {}) const {
    const auto files = GlobPattern(pattern).files(path(), left_out);
    return files ? *files : Texts{"error: " + files.error().message};
  }

 private:
  test::TemporaryFolder folder_;
};

Texts lines_of(const std::string& text) {
  const test::TemporaryFolder folder;
  test::write_text(folder.path() / "list", text);
  const auto list = read_line_list(folder.path() / "list");
  if (list) {
    return list->lines;
  }
  std::string message = list.error().message;
  const size_t at = message.find(folder.path().string());
  return {"error: " + message.replace(at, folder.path().string().size(), "DIR")};
}

}  // namespace

TEST_CASE("item_sources: a pattern finds files, sorted by bytes, and no folders") {
  const Tree tree({"data/b.dat", "data/a.dat", "data/B.dat", "data/c.txt", "data/sub.dat/x"});
  CHECK(tree.find("data/*.dat") == Texts{"data/B.dat", "data/a.dat", "data/b.dat"});
  CHECK(tree.find("./data//?.dat") == Texts{"data/B.dat", "data/a.dat", "data/b.dat"});
  CHECK(tree.find("data/[ab].dat") == Texts{"data/a.dat", "data/b.dat"});
  CHECK(tree.find("data/a.dat") == Texts{"data/a.dat"});
  CHECK(tree.find("*/sub.dat/x") == Texts{"data/sub.dat/x"});
  CHECK(tree.find("data/*.h5").empty());
  CHECK(tree.find("nothing/*.h5").empty());
  CHECK(tree.find(tree.path().string() + "/data/a.*") ==
        Texts{tree.path().string() + "/data/a.dat"});
}

TEST_CASE("item_sources: two stars stand for any number of folders, also none") {
  const Tree tree({"x.dat", "a/x.dat", "a/b/x.dat", "a/b/x/x.dat", "a/y.txt"});
  const Texts all = {"a/b/x.dat", "a/b/x/x.dat", "a/x.dat", "x.dat"};
  CHECK(tree.find("**/x.dat") == all);
  CHECK(tree.find("**/**/x.dat") == all);
  CHECK(tree.find("**/a/**/x.dat") == Texts{"a/b/x.dat", "a/b/x/x.dat", "a/x.dat"});
  CHECK(tree.find("a/**") == Texts{"a/b/x.dat", "a/b/x/x.dat", "a/x.dat", "a/y.txt"});
}

TEST_CASE("item_sources: hidden names match only a written dot") {
  const Tree tree({".x.dat", "x.dat", ".git/y.dat", "a/.b/z.dat"});
  CHECK(tree.find("*.dat") == Texts{"x.dat"});
  CHECK(tree.find(".*.dat") == Texts{".x.dat"});
  CHECK(tree.find("**/*.dat") == Texts{"x.dat"});
  CHECK(tree.find("**/.b/*.dat") == Texts{"a/.b/z.dat"});
}

// UC-014
TEST_CASE("item_sources: odd names survive, and none looks like an option") {
  const Tree tree({"a b.dat", "it's.dat", "x(1).dat", "-n.dat", "q;touch pwned.dat",
                   "new\nline.dat", "\xFF.dat", "d/-n.dat"});
  CHECK(tree.find("*.dat") == Texts{"./-n.dat", "a b.dat", "it's.dat", "new\nline.dat",
                                    "q;touch pwned.dat", "x(1).dat", "\xFF.dat"});
  CHECK(tree.find("d/*") == Texts{"d/-n.dat"});
}

TEST_CASE("item_sources: links to files and dangling links match, two stars follow no link") {
  const Tree tree({"real/a.dat"});
  fs::create_directory_symlink("real", tree.path() / "linked");
  fs::create_symlink("gone", tree.path() / "real/gone.dat");
  fs::create_symlink("a.dat", tree.path() / "real/also.dat");
  CHECK(tree.find("linked/*.dat") == Texts{"linked/a.dat", "linked/also.dat", "linked/gone.dat"});
  CHECK(tree.find("**/a.dat") == Texts{"real/a.dat"});
  CHECK(tree.find("real/gone.dat") == Texts{"real/gone.dat"});
}

TEST_CASE("item_sources: a folder that cannot be read is an error") {
  if (::geteuid() == 0) {
    return;  // root reads everything
  }
  const Tree tree({"data/a.dat"});
  ::chmod((tree.path() / "data").c_str(), 0);
  CHECK(tree.find("data/*")[0].find("cannot be read") != std::string::npos);
  ::chmod((tree.path() / "data").c_str(), 0755);
}

// UC-107
TEST_CASE("item_sources: the folder that is left out gives no files") {
  const Tree tree({"a.dat", "p.run/results/t/a.dat", "q.run/results/t/b.dat"});
  const fs::path run = tree.path() / "p.run";
  CHECK(tree.find("**/*.dat", run) == Texts{"a.dat", "q.run/results/t/b.dat"});
  CHECK(tree.find("p.run/**/*.dat", run).empty());
  CHECK(tree.find("*/results/t/*.dat", run) == Texts{"q.run/results/t/b.dat"});
}

TEST_CASE("item_sources: a pattern tells whether it leads into a folder that need not exist") {
  const auto reaches = [](const std::string& pattern, const std::string& directory) {
    return GlobPattern(pattern).reaches("/home/p", directory);
  };
  CHECK(reaches("**/*.dat", "/home/p/p.run"));
  CHECK(reaches("*/results/**", "/home/p/p.run"));
  CHECK(reaches("p.run/results/*", "/home/p/p.run"));
  CHECK(reaches("/home/**", "/home/p/p.run"));
  CHECK(reaches("../out/*.run/x", "/home/out/p.run"));
  CHECK_FALSE(reaches("*.dat", "/home/p/p.run"));
  CHECK_FALSE(reaches("data/**/*.dat", "/home/p/p.run"));
  CHECK_FALSE(reaches("**/*.dat", "/home/p/.hidden.run"));
  CHECK_FALSE(reaches("**/*.dat", "/scratch/p.run"));
  CHECK_FALSE(reaches("p.run", "/home/p/p.run"));
}

// UC-008
TEST_CASE("item_sources: lines lose carriage returns, byte-order mark and blank lines at the end") {
  CHECK(lines_of("s1\ns2\n") == Texts{"s1", "s2"});
  CHECK(lines_of("s1\ns2") == Texts{"s1", "s2"});
  CHECK(lines_of("\xEF\xBB\xBFs1\r\ns2\r\n\r\n \n\n") == Texts{"s1", "s2"});
  CHECK(lines_of(" a b \n#c\n'd'\n\xFF\n") == Texts{" a b ", "#c", "'d'", "\xFF"});
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n\n").empty());
}

TEST_CASE("item_sources: a blank line among others and a NUL byte are errors with their line") {
  CHECK(lines_of("s1\n\ns3\n") ==
        Texts{"error: line 2 of DIR/list is blank, but every line is an item"});
  CHECK(lines_of("s1\n \t\r\ns3\n") ==
        Texts{"error: line 2 of DIR/list is blank, but every line is an item"});
  CHECK(lines_of(std::string("s1\na\0b\n", 7)) ==
        Texts{"error: line 2 of DIR/list has a NUL byte, so this is no text file"});
}

TEST_CASE("item_sources: only a regular file has lines") {
  const test::TemporaryFolder folder;
  CHECK(read_line_list(folder.path()).error().message ==
        folder.path().string() + " is no regular file");
  CHECK(read_line_list(folder.path() / "gone").error().message ==
        "there is no file " + (folder.path() / "gone").string());
}
