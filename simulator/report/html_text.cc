#include "report/html_text.h"

namespace leeway::sim {

std::string escape(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string element(std::string_view tag, std::string_view text) {
  const std::string name(tag);
  return "<" + name + ">" + escape(text) + "</" + name + ">\n";
}

HtmlTable::HtmlTable(std::string_view caption) : caption_(escape(caption)) {}

void HtmlTable::head(std::string_view text, bool number) {
  head_ += number ? "<th scope=\"col\" class=\"number\">" : "<th scope=\"col\">";
  for (const char c : text) {
    head_ += escape(std::string_view(&c, 1));
    if (c == '.') head_ += "<wbr>";  // the path of a field may be long
  }
  head_ += "</th>";
}

void HtmlTable::begin_row() {
  body_ += body_.empty() ? "<tr>" : "</tr>\n<tr>";
}

void HtmlTable::cell(std::string_view attributes, const std::string& inner) {
  body_.append("<td").append(attributes).append(">").append(inner).append("</td>");
}

void HtmlTable::text(std::string_view text) {
  cell("", escape(text));
}
void HtmlTable::name(std::string_view text) {
  cell(" class=\"name\"", escape(text));
}
void HtmlTable::number(std::string_view text) {
  cell(" class=\"number\"", escape(text));
}
void HtmlTable::bad_number(std::string_view text) {
  cell(" class=\"number bad\"", escape(text));
}
void HtmlTable::code(std::string_view text) {
  cell(" class=\"code\"", escape(text));
}
void HtmlTable::badge(std::string_view kind, std::string_view text) {
  cell("", "<span class=\"badge " + escape(kind) + "\">" + escape(text) + "</span>");
}

std::string HtmlTable::str() && {
  return "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"" + caption_ +
         "\"><table>\n<thead><tr>" + head_ + "</tr></thead>\n<tbody>" + body_ +
         (body_.empty() ? "" : "</tr>") + "</tbody>\n</table></div>\n";
}

}  // namespace leeway::sim
