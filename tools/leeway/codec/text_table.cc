#include "codec/text_table.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace leeway::tools::codecs {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kNoteIndent = 4;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  std::vector<std::vector<std::string>> by_column;
  for (const Column& column : columns_) {
    by_column.push_back(lines_of(column.title));
    title_lines_ = std::max(title_lines_, by_column.back().size());
  }
  titles_.assign(title_lines_, std::vector<std::string>(columns_.size()));
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const std::size_t first = title_lines_ - by_column[c].size();
    for (std::size_t i = 0; i < by_column[c].size(); ++i) titles_[first + i][c] = by_column[c][i];
  }
}

void TextTable::add_row(std::vector<std::string> cells, std::string note) {
  cells.resize(columns_.size());
  rows_.push_back({std::move(cells), std::move(note)});
}

std::vector<std::size_t> TextTable::column_widths() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  const auto widen = [&widths](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], cells[c].size());
  };
  for (const auto& line : titles_) widen(line);
  for (const Row& row : rows_) widen(row.cells);
  return widths;
}

std::string TextTable::line_of(const std::vector<std::string>& cells,
                               const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const std::string padding(widths[c] - cells[c].size(), ' ');
    if (c > 0) line.append(kGap, ' ');
    line += columns_[c].align == Align::left ? cells[c] + padding : padding + cells[c];
  }
  trim_right(line);
  return line + "\n";
}

std::string TextTable::text() const {
  const auto widths = column_widths();
  std::string text;
  for (const auto& line : titles_) text += line_of(line, widths);
  for (const Row& row : rows_) {
    text += line_of(row.cells, widths);
    if (!row.note.empty()) text += std::string(kNoteIndent, ' ') + row.note + "\n";
  }
  return text;
}

std::size_t TextTable::width() const {
  std::size_t widest = 0;
  for (const std::string& line : lines_of(text())) widest = std::max(widest, line.size());
  return widest;
}

std::size_t terminal_width(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace leeway::tools::codecs
