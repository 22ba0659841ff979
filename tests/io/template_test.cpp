#include "io/template.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace sluice::io;

std::string shown(const Template& word) {
  std::string out;
  for (const TemplatePart& part : word) {
    out += part.use == TemplatePart::Use::kText ? part.text : "<" + part.text + ">";
  }
  return out;
}

std::vector<std::string> words(const std::string& text) {
  const ParsedCommand command = split_command(text);
  std::vector<std::string> out;
  for (const ExpressionError& error : command.errors) {
    out.push_back("error at " + std::to_string(error.offset) + ": " + error.text + "; " +
                  error.hint);
  }
  if (out.empty()) {
    for (const Template& word : command.words) {
      out.push_back(shown(word));
    }
  }
  return out;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("template: a command splits at blanks and newlines") {
  CHECK(words("prog  -n 3\n  --out x\n") == Words{"prog", "-n", "3", "--out", "x"});

  CHECK(words("prog a=1 --b=2 x,y:z@%^+") == Words{"prog", "a=1", "--b=2", "x,y:z@%^+"});
}

TEST_CASE("template: quotes only group") {
  CHECK(words("prog 'a b' \"c d\" '' x'y z'w") == Words{"prog", "a b", "c d", "", "xy zw"});
  CHECK(words("awk '{print $1}' \"it's\"") == Words{"awk", "{print $1}", "it's"});
  CHECK(words("prog 'a\\n' \"b\\n\"") == Words{"prog", "a\\n", "b\\n"});
}

TEST_CASE("template: an expression is never split, also within quotes and words") {
  CHECK(words("p ${{ params.a }} --x=${{item.b}}.h5 '${{ in.c }}'") ==
        Words{"p", "< params.a >", "--x=<item.b>.h5", "< in.c >"});
  CHECK(words("p ${{ '}}' }}") == Words{"p", "< '}}' >"});
}

TEST_CASE("template: what needs a shell is an error that names the remedy") {
  for (const char c : std::string("|><;&`*?[]}~()!#\\")) {
    const Words found = words(std::string("prog a") + c);
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with(std::string("error at 6: '") + c +
                               "' has a meaning only for a shell, and 'run:' has none; "));
    CHECK(found[0].ends_with("write the command under 'sh:', or put the text into single quotes"));
  }
  CHECK(words("prog a{")[0].find(
            "to insert a value write ${{ params.x }}; for braces of the shell") !=
        std::string::npos);
  CHECK(words("prog $HOME")[0].find("to insert a value write ${{ params.x }}") !=
        std::string::npos);
  CHECK(words("prog \"$HOME\"")[0].find("use single quotes") != std::string::npos);
  CHECK(words("prog \"`date`\"").size() == 1);
  CHECK(words("a | b | c && d").size() == 2);
}

TEST_CASE("template: a command that begins with a variable names env:") {
  CHECK(words("OMP_NUM_THREADS=4 prog")[0] ==
        "error at 0: a command begins with its program, found the variable 'OMP_NUM_THREADS='; "
        "set variables under 'env:', or write the command under 'sh:'");
  CHECK(words("./a=b prog") == Words{"./a=b", "prog"});
}

TEST_CASE("template: open quotes, open expressions and empty commands are errors") {
  CHECK(words("prog 'abc")[0].find("error at 5: the quote that opens here") == 0);
  CHECK(words("prog ${{ params.x ")[0].find("error at 5: '${{' has no closing '}}'") == 0);
  CHECK(words(" \n ")[0].find("error at 0: the command is empty") == 0);
}

TEST_CASE("template: errors inside an expression have their place in the whole text") {
  CHECK(words("prog ${{ 1 + }}")[0].find("error at 13: expected a value") == 0);
  const ParsedTemplate parsed = parse_template("a ${{ b }} c ${{ * }}");
  REQUIRE(parsed.errors.size() == 1);
  CHECK(parsed.errors[0].offset == 17);
}

TEST_CASE("template: text passes byte for byte, only the exact form is replaced") {
  const std::string text = "awk '{print $1}' ${HOME:-x} {{ n }} $ {{ n }}";
  const ParsedTemplate parsed = parse_template(text);
  CHECK(parsed.errors.empty());
  CHECK(shown(parsed.parts) == text);
}
