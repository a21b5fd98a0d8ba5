// Helpers that write text and tables as HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leeway::sim {

// Escapes a text for use between tags and inside quoted attributes.
std::string escape(std::string_view text);

// Returns "<p>text</p>" for the tag "p". Escapes the text.
std::string element(std::string_view tag, std::string_view text);

// Builds a table with a caption for screen readers. Texts are escaped.
class HtmlTable {
 public:
  explicit HtmlTable(std::string_view caption);

  void head(std::string_view text, bool number = false);
  void begin_row();
  void text(std::string_view text);
  void name(std::string_view text);  // a cell that stays on one line
  void number(std::string_view text);
  void bad_number(std::string_view text);                    // in red
  void code(std::string_view text);                          // a cell in a fixed-width font
  void badge(std::string_view kind, std::string_view text);  // kind: CSS class of a verdict
  std::string str() &&;

 private:
  void cell(std::string_view attributes, const std::string& inner);

  std::string head_;
  std::string body_;
  std::string caption_;
};

}  // namespace leeway::sim
