#include "sim/repeat_command.h"

#include <gtest/gtest.h>

namespace leeway::tools::simulation {
namespace {

TEST(ShellWord, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_word("ranks=32"), "ranks=32");
  EXPECT_EQ(shell_word("../a-b_c.txtpb"), "../a-b_c.txtpb");
  EXPECT_EQ(shell_word("link[0].rate_mbps=5"), "'link[0].rate_mbps=5'");
  EXPECT_EQ(shell_word("a b"), "'a b'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME`ls`\"\\"), "'$HOME`ls`\"\\'");
  EXPECT_EQ(shell_word(""), "''");
}

Plan one_cell() {
  Plan plan;
  plan.grid.resize(1);
  plan.grid[0].settings = {{"link[0].loss", "random { p: 0.1 }"}, {"ranks", "8"}};
  return plan;
}

TEST(RepeatCommand, NamesSettingsOfCommandAndCellAndOneSeed) {
  Arguments arguments;
  arguments.file = "my runs/a.txtpb";
  arguments.settings = {"rounds=3"};
  arguments.seeds = "1..9";
  arguments.out = "results";
  EXPECT_EQ(repeat_command(arguments, one_cell(), {0, 7}),
            "leeway sim 'my runs/a.txtpb' --set rounds=3 --set 'link[0].loss=random { p: 0.1 }' "
            "--set ranks=8 --seeds 7..7");
}

TEST(ResumeCommand, IsTheCommandAgain) {
  Arguments arguments;
  arguments.file = "a.txtpb";
  arguments.settings = {"rounds=3"};
  arguments.seeds = "1..9";
  arguments.jobs = 4;
  arguments.out = "results";
  EXPECT_EQ(resume_command(arguments),
            "leeway sim a.txtpb --set rounds=3 --seeds 1..9 --jobs 4 --out results --resume");
}

TEST(RepeatCommand, ArgumentsAreReadAsTheyWereKept) {
  Arguments arguments;
  arguments.file = "a folder/x.txtpb";
  arguments.full = true;
  arguments.settings = {"ranks=3", "name='q'"};
  arguments.seeds = "3..9";
  arguments.jobs = 7;  // does not belong to what is run
  const auto read = parse_arguments(arguments_json(arguments));
  ASSERT_TRUE(read.ok()) << read.status().c_str();
  EXPECT_EQ(read->file, arguments.file);
  EXPECT_TRUE(read->full);
  EXPECT_EQ(read->settings, arguments.settings);
  EXPECT_EQ(read->seeds, "3..9");
  EXPECT_EQ(read->jobs, 0u);
  EXPECT_FALSE(parse_arguments("{}").ok());
  EXPECT_FALSE(parse_arguments("").ok());
}

}  // namespace
}  // namespace leeway::tools::simulation
