#include "sim/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "fake_run.h"
#include "temporary_folder.h"

namespace leeway::tools::simulation {
namespace {

using testing::HasSubstr;

struct Said {
  int code = 0;
  std::string out;
  std::string err;
};

Said say(const Arguments& arguments, const RunFunction& run) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto no_workload = [](const sim::scenario::Scenario&,
                              std::uint64_t) -> Result<std::unique_ptr<sim::Workload>> {
    return Status::error(StatusCode::kUnsupported, "no workload");
  };
  Said said;
  said.code = run_command(arguments, run, no_workload);
  said.out = testing::internal::GetCapturedStdout();
  said.err = testing::internal::GetCapturedStderr();
  return said;
}

class RunCommand : public testing::Test {
 protected:
  RunCommand() {
    arguments_.file = folder_.write("grid.txtpb",
                                    "seed { from: 1 count: 3 }\n"
                                    "sweep { field: \"ranks\" values: [2, 3] }\n");
    arguments_.out = (folder_ / "out").string();
    arguments_.jobs = 1;
  }
  TemporaryFolder folder_;
  Arguments arguments_;
};

TEST_F(RunCommand, WritesEveryFileAndSaysWhereTheReportIs) {
  const Said said = say(arguments_, fake_run);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  EXPECT_THAT(said.out, HasSubstr("all passed: i1"));
  EXPECT_THAT(said.out, HasSubstr("trace     "));
  EXPECT_THAT(said.out, HasSubstr("report    " + (folder_ / "out/report.html").string()));
  for (const char* name : {"summary.json", "rounds.csv", "links.csv", "report.html",
                           "scenario.txtpb", "runs/0-1.json", "runs/1-3.json"}) {
    EXPECT_NE(folder_.read(std::string("out/") + name), "") << name;
  }
}

TEST_F(RunCommand, FilesAreTheSameForEveryNumberOfJobs) {
  ASSERT_EQ(say(arguments_, fake_run).code, 0);
  Arguments parallel = arguments_;
  parallel.out = (folder_ / "parallel").string();
  parallel.jobs = 4;
  ASSERT_EQ(say(parallel, fake_run).code, 0);
  for (const char* name :
       {"summary.json", "rounds.csv", "links.csv", "report.html", "runs/1-2.json"}) {
    EXPECT_EQ(folder_.read(std::string("out/") + name),
              folder_.read(std::string("parallel/") + name))
        << name;
  }
}

TEST_F(RunCommand, AShardKeepsItsRunsInAFolderThatOthersShare) {
  arguments_.shard = "2/4";
  const Said second = say(arguments_, fake_run);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out, "shard 2 of 4: 2 of 6 runs, in " + (folder_ / "out/").string() + "\n");
  EXPECT_TRUE(folder_.has("out/runs/0-2.json"));
  EXPECT_TRUE(folder_.has("out/runs/1-3.json"));
  EXPECT_FALSE(folder_.has("out/runs/0-1.json"));
  EXPECT_FALSE(folder_.has("out/summary.json"));

  const Said again = say(arguments_, fake_run);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("holds runs of shard 2 of 4; add --resume"));
  arguments_.resume = true;
  EXPECT_EQ(say(arguments_, fake_run).code, 0);
  arguments_.resume = false;
  arguments_.shard = "1/4";
  EXPECT_EQ(say(arguments_, fake_run).code, 0);
  EXPECT_TRUE(folder_.has("out/runs/0-1.json"));
}

TEST_F(RunCommand, OneShardOfOneIsTheWhole) {
  arguments_.shard = "1/1";
  EXPECT_EQ(say(arguments_, fake_run).code, 0);
  EXPECT_TRUE(folder_.has("out/summary.json"));
  EXPECT_EQ(say(arguments_, fake_run).code, 2) << "results are not replaced unasked";
}

TEST_F(RunCommand, AShardWithoutAPlaceForItsRunsIsRefused) {
  const auto refused = [this](const char* words) {
    const Said said = say(arguments_, fake_run);
    EXPECT_EQ(said.code, 2);
    EXPECT_THAT(said.err, HasSubstr(words));
    EXPECT_FALSE(folder_.has("out"));
  };
  arguments_.shard = "2/1";
  refused("--shard 2/1");
  arguments_.shard = "1/2";
  arguments_.overwrite = true;
  refused("--overwrite");
  arguments_.overwrite = false;
  arguments_.json_path = "-";
  refused("--json");
  arguments_.json_path = "";
  arguments_.out = "";
  refused("--out DIR");
}

TEST_F(RunCommand, AFailedCheckerIsAnErrorWithTheCommandThatRepeatsIt) {
  const auto run = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                      const sim::RunOptions&) -> Result<sim::RunRecord> {
    sim::RunRecord record = fake_record(scenario, seed);
    if (scenario.ranks() == 3 && seed >= 2) record.checks[0] = check("i1", sim::Verdict::failed);
    return record;
  };
  const Said said = say(arguments_, run);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, HasSubstr("FAILED: i1 (2 runs)"));
  EXPECT_THAT(said.err, HasSubstr("seen at 3 ms"));
  EXPECT_THAT(said.err,
              HasSubstr("leeway sim " + arguments_.file + " --set ranks=3 --seeds 2..2\n"));
  EXPECT_TRUE(folder_.has("out/summary.json"));
}

TEST_F(RunCommand, ARunThatCannotBeMadeIsAnError) {
  const auto run = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                      const sim::RunOptions& options) -> Result<sim::RunRecord> {
    if (seed == 3) return Status::error(StatusCode::kUnsupported, "no such codec");
    return fake_run(scenario, seed, options);
  };
  const Said said = say(arguments_, run);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("2 of 6 runs could not be made"));
  EXPECT_THAT(said.err, HasSubstr("no such codec"));
  EXPECT_THAT(said.err, HasSubstr("--set ranks=2 --seeds 3..3"));
}

TEST_F(RunCommand, AnInterruptKeepsWhatHasFinishedAndResumeCompletesIt) {
  const auto interrupted = [](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                              const sim::RunOptions& options) -> Result<sim::RunRecord> {
    if (scenario.ranks() == 3 && seed == 2) std::raise(SIGINT);
    if (options.stop->load()) return Status::error(StatusCode::kCancelled, "stopped");
    return fake_record(scenario, seed);
  };
  const Said stopped = say(arguments_, interrupted);
  EXPECT_EQ(stopped.code, 130);
  EXPECT_THAT(stopped.err, HasSubstr("stopped after 4 of 6 runs"));
  EXPECT_THAT(stopped.err, HasSubstr("--resume"));
  const std::string partial = folder_.read("out/summary.json");

  int made = 0;
  const auto counting = [&made](const sim::scenario::Scenario& scenario, std::uint64_t seed,
                                const sim::RunOptions& options) {
    ++made;
    return fake_run(scenario, seed, options);
  };
  arguments_.resume = true;
  ASSERT_EQ(say(arguments_, counting).code, 0);
  EXPECT_EQ(made, 2);
  const std::string resumed = folder_.read("out/summary.json");
  EXPECT_NE(resumed, partial);

  Arguments straight = arguments_;
  straight.resume = false;
  straight.out = (folder_ / "straight").string();
  ASSERT_EQ(say(straight, fake_run).code, 0);
  EXPECT_EQ(resumed, folder_.read("straight/summary.json"));
}

TEST_F(RunCommand, ADamagedRunIsMadeAgain) {
  ASSERT_EQ(say(arguments_, fake_run).code, 0);
  const std::string summary = folder_.read("out/summary.json");
  folder_.write("out/runs/0-2.json", folder_.read("out/runs/0-2.json").substr(0, 50));
  folder_.write("out/runs/0-3.json", folder_.read("out/runs/0-1.json"));  // another seed's
  arguments_.resume = true;
  EXPECT_EQ(say(arguments_, fake_run).code, 0);
  EXPECT_EQ(folder_.read("out/summary.json"), summary);
}

TEST_F(RunCommand, NothingIsWrittenWithoutAFolder) {
  arguments_.out.clear();
  const Said said = say(arguments_, fake_run);
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, HasSubstr("round_ms.p50"));
  EXPECT_FALSE(folder_.has("out"));
}

TEST_F(RunCommand, JsonOnStandardOutputIsAllThatIsThere) {
  arguments_.json_path = "-";
  const Said said = say(arguments_, fake_run);
  EXPECT_EQ(said.out, folder_.read("out/summary.json"));
}

TEST_F(RunCommand, WrongUsageRunsNothingAndWritesNothing) {
  const auto never = [](const sim::scenario::Scenario&, std::uint64_t,
                        const sim::RunOptions&) -> Result<sim::RunRecord> {
    ADD_FAILURE() << "a run was made";
    return Status::error(StatusCode::kInternal, "never");
  };
  const auto refused = [&](const char* words, auto change) {
    Arguments wrong = arguments_;
    change(wrong);
    const Said said = say(wrong, never);
    EXPECT_EQ(said.code, 2) << words;
    EXPECT_THAT(said.err, HasSubstr(words));
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
    EXPECT_FALSE(folder_.has("out")) << words;
  };
  refused("leeway sim FILE", [](Arguments& a) { a.file.clear(); });
  refused("exclude each other", [](Arguments& a) { a.resume = a.overwrite = true; });
  refused("--out DIR", [](Arguments& a) { a.out.clear(), a.resume = true; });
  refused("--seeds 3..1", [](Arguments& a) { a.seeds = "3..1"; });
  refused("--set ranks=0", [](Arguments& a) { a.settings = {"ranks=0"}; });
  refused("--json", [](Arguments& a) { a.json_path = "/no/such/folder/x"; });
  refused("--trace holds one run", [&](Arguments& a) { a.trace_path = (folder_ / "t").string(); });
}

}  // namespace
}  // namespace leeway::tools::simulation
