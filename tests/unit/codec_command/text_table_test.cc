#include "codec/text_table.h"

#include <gtest/gtest.h>

namespace leeway::tools::codecs {
namespace {

TEST(TextTable, ColumnsAreAsWideAsWhatStandsInThem) {
  TextTable table({{"name", Align::left}, {"GB/s"}});
  table.add_row({"a", "1.25"});
  table.add_row({"longer", "130.0"});
  EXPECT_EQ(table.text(),
            "name     GB/s\n"
            "a        1.25\n"
            "longer  130.0\n");
  EXPECT_EQ(table.width(), 13u);
}

TEST(TextTable, ShortTitlesStandOnTheFirstRow) {
  TextTable table({{"name", Align::left}, {"encode\nGB/s"}});
  table.add_row({"a", "1"});
  EXPECT_EQ(table.text(),
            "      encode\n"
            "name    GB/s\n"
            "a          1\n");
}

TEST(TextTable, NotesStandBelowTheirRows) {
  TextTable table({{"name", Align::left}});
  table.add_row({"a"}, "what it is");
  table.add_row({"b"});
  EXPECT_EQ(table.text(), "name\na\n    what it is\nb\n");
}

TEST(TextTable, MissingCellsAreBlankAndLinesDoNotEndInBlanks) {
  TextTable table({{"a", Align::left}, {"b", Align::left}});
  table.add_row({"x"});
  EXPECT_EQ(table.text(), "a  b\nx\n");
}

TEST(TerminalWidth, IsZeroWhereThereIsNone) {
  EXPECT_EQ(terminal_width(-1), 0u);
}

}  // namespace
}  // namespace leeway::tools::codecs
