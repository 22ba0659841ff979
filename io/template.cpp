#include "io/template.h"

#include <cctype>
#include <utility>

namespace sluice::io {

namespace {

constexpr std::string_view kOpen = "${{";
constexpr std::string_view kClose = "}}";
constexpr std::string_view kShellOnly = "|><;&$`*?[]{}~()!#\\";

bool opens(std::string_view text, size_t at) { return text.substr(at, kOpen.size()) == kOpen; }

// Where the expression that begins at `at` ends: at "}}" outside of its quotes, or npos.
size_t expression_end(std::string_view text, size_t at) {
  char quote = 0;
  for (; at < text.size(); ++at) {
    if (quote != 0) {
      quote = text[at] == quote ? '\0' : quote;
    } else if (text[at] == '\'' || text[at] == '"') {
      quote = text[at];
    } else if (text.substr(at, kClose.size()) == kClose) {
      return at;
    }
  }
  return std::string_view::npos;
}

// Collects parts; neighbouring literal characters become one part.
class PartWriter {
 public:
  explicit PartWriter(std::vector<ExpressionError>& errors) : errors_(errors) {}

  void literal(char c, size_t offset) {
    if (parts_.empty() || parts_.back().use != TemplatePart::Use::kText) {
      TemplatePart part;
      part.offset = offset;
      parts_.push_back(std::move(part));
    }
    parts_.back().text += c;
  }

  // Reads the placeholder at `at`; gives the place behind it.
  size_t placeholder(std::string_view text, size_t at) {
    const size_t begin = at + kOpen.size();
    const size_t end = expression_end(text, begin);
    if (end == std::string_view::npos) {
      const bool closed = text.find(kClose, begin) != std::string_view::npos;
      errors_.push_back({at, "'${{' has no closing '}}'",
                         closed ? "a quote is open before the '}}' that is there" : ""});
      return text.size();
    }
    TemplatePart part;
    part.use = TemplatePart::Use::kValue;
    part.text = std::string(text.substr(begin, end - begin));
    part.offset = begin;
    auto parsed = Expression::parse(part.text);
    if (auto* error = std::get_if<ExpressionError>(&parsed)) {
      error->offset += begin;
      errors_.push_back(std::move(*error));
    } else {
      part.expression.push_back(std::move(std::get<Expression>(parsed)));
      parts_.push_back(std::move(part));
    }
    return end + kClose.size();
  }

  Template take() { return std::exchange(parts_, {}); }

 private:
  std::vector<ExpressionError>& errors_;
  Template parts_;
};

// "NAME=" at the beginning: a shell would set a variable.
bool is_assignment(std::string_view word) {
  size_t end = 0;
  while (end < word.size() &&
         (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) {
    ++end;
  }
  return end > 0 && end < word.size() && word[end] == '=' &&
         std::isdigit(static_cast<unsigned char>(word[0])) == 0;
}

class CommandSplitter {
 public:
  explicit CommandSplitter(std::string_view text) : text_(text), writer_(result_.errors) {}

  ParsedCommand run() {
    size_t at = 0;
    while (at < text_.size()) {
      if (opens(text_, at)) {
        begin_word(at);
        at = writer_.placeholder(text_, at);
      } else {
        character(at++);
      }
    }
    if (quote_ != 0) {
      result_.errors.push_back({quote_begin_, "the quote that opens here is never closed",
                                "put a text that contains a quote into the other kind of quotes"});
    }
    end_word();
    if (result_.words.empty() && result_.errors.empty()) {
      result_.errors.push_back({0, "the command is empty", "write a program and its arguments"});
    }
    return std::move(result_);
  }

 private:
  void begin_word(size_t at) {
    if (!in_word_) {
      in_word_ = true;
      word_begin_ = at;
    }
  }

  void end_word() {
    if (!in_word_) {
      return;
    }
    in_word_ = false;
    if (result_.words.empty()) {
      const std::string_view word = text_.substr(word_begin_);
      if (is_assignment(word)) {
        const std::string name(word.substr(0, word.find('=')));
        result_.errors.push_back(
            {word_begin_, "a command begins with its program, found the variable '" + name + "='",
             "set variables under 'env:', or write the command under 'sh:'"});
      }
    }
    result_.words.push_back(writer_.take());
  }

  void character(size_t at) {
    const char c = text_[at];
    if (quote_ != 0) {
      quoted(c, at);
    } else if (c == ' ' || c == '\t' || c == '\n') {
      end_word();
    } else if (c == '\'' || c == '"') {
      begin_word(at);
      quote_ = c;
      quote_begin_ = at;
    } else {
      begin_word(at);
      if (kShellOnly.find(c) != std::string_view::npos) {
        refuse(c, at, "write the command under 'sh:', or put the text into single quotes");
      }
      writer_.literal(c, at);
    }
  }

  void quoted(char c, size_t at) {
    if (c == quote_) {
      quote_ = 0;
      return;
    }
    if (quote_ == '"' && (c == '$' || c == '`')) {
      refuse(c, at,
             "write the command under 'sh:', or use single quotes to pass the text on as it is");
    }
    writer_.literal(c, at);
  }

  // Once for each character: the remedy is the same.
  void refuse(char c, size_t at, const char* hint) {
    if (refused_.find(c) != std::string::npos) {
      return;
    }
    refused_ += c;
    std::string text =
        std::string("'") + c + "' has a meaning only for a shell, and 'run:' has none";
    std::string remedy = hint;
    if (c == '$' || c == '{') {
      remedy = "to insert a value write ${{ params.x }}; for " +
               std::string(c == '$' ? "variables" : "braces") + " of the shell " + remedy;
    } else if (c == '<') {
      remedy = "to read a file as standard input name an input under 'stdin:'; else " + remedy;
    } else if (c == '>') {
      remedy = "to make an output of standard output name it under 'stdout:'; else " + remedy;
    }
    result_.errors.push_back({at, std::move(text), std::move(remedy)});
  }

  std::string_view text_;
  ParsedCommand result_;
  PartWriter writer_;
  bool in_word_ = false;
  size_t word_begin_ = 0;
  char quote_ = 0;
  size_t quote_begin_ = 0;
  std::string refused_;
};

}  // namespace

ParsedTemplate parse_template(std::string_view text) {
  ParsedTemplate result;
  PartWriter writer(result.errors);
  size_t at = 0;
  while (at < text.size()) {
    if (opens(text, at)) {
      at = writer.placeholder(text, at);
    } else {
      writer.literal(text[at], at);
      ++at;
    }
  }
  result.parts = writer.take();
  return result;
}

ParsedCommand split_command(std::string_view text) { return CommandSplitter(text).run(); }

}  // namespace sluice::io
