// Columns of text under titles. Each column is as wide as its contents.
#pragma once

#include <string>
#include <vector>

namespace leeway::tools::codecs {

enum class Align { left, right };

struct Column {
  std::string title;  // may have several lines, of which the last one stands on the first row
  Align align = Align::right;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // Adds a row with one cell for each column. A note that is not empty gets a line of its own below
  // the row.
  void add_row(std::vector<std::string> cells, std::string note = {});

  // Returns the table. Columns are two blanks apart, lines have no blanks at their ends, and every
  // line ends in a line feed.
  std::string text() const;
  std::size_t width() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string note;
  };
  std::vector<std::size_t> column_widths() const;
  std::string line_of(const std::vector<std::string>& cells,
                      const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::size_t title_lines_ = 0;
  std::vector<std::vector<std::string>> titles_;  // [line][column]
  std::vector<Row> rows_;
};

// Returns the width of the terminal behind `descriptor` in columns, or 0 if it is no terminal.
std::size_t terminal_width(int descriptor);

}  // namespace leeway::tools::codecs
