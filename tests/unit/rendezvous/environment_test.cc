#include "rendezvous/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace leeway::rendezvous {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

EnvironmentGetter getter(Variables variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}
Result<Launcher> detect(Variables variables) {
  return detect_launcher(getter(std::move(variables)));
}
Result<Options> read(Variables variables) {
  return options_from_environment(getter(std::move(variables)));
}

const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"MASTER_ADDR", "node-a"},
                             {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"OMPI_MCA_orte_ess_jobid", "3141533697"}};
const Variables kPmi = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}};
const Variables kSlurmStep = {{"SLURM_PROCID", "5"},  {"SLURM_STEP_NUM_TASKS", "6"},
                              {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "77"},
                              {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "3"}};

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

TEST(DetectLauncher, FindsNothingInAnEmptyEnvironment) {
  const auto launcher = detect({});
  ASSERT_TRUE(launcher.ok());
  EXPECT_EQ(launcher->kind, LauncherKind::none);
  EXPECT_EQ(launcher->rendezvous, "");
}

TEST(DetectLauncher, ReadsTorchrunAndLeavesItsPortToTorch) {
  const auto launcher = detect(kTorchrun);
  ASSERT_TRUE(launcher.ok()) << launcher.status().c_str();
  EXPECT_EQ(launcher->kind, LauncherKind::torchrun);
  EXPECT_EQ(launcher->rank, 3);
  EXPECT_EQ(launcher->size, 8);
  EXPECT_EQ(launcher->local_rank, 1);
  EXPECT_EQ(launcher->local_size, 2);
  EXPECT_EQ(launcher->rendezvous, "node-a:29501");
}

TEST(DetectLauncher, TakesThePortBelowWhenMasterPortIsTheLast) {
  EXPECT_EQ(detect(with(kTorchrun, {{"MASTER_PORT", "65535"}}))->rendezvous, "node-a:65534");
}

TEST(DetectLauncher, PutsAnIPv6MasterInBrackets) {
  EXPECT_EQ(detect(with(kTorchrun, {{"MASTER_ADDR", "fd00::1"}}))->rendezvous, "[fd00::1]:29501");
}

TEST(DetectLauncher, HasNoRendezvousUnderTorchrunWithoutMaster) {
  EXPECT_EQ(detect(with(kTorchrun, {{"MASTER_ADDR", ""}}))->rendezvous, "");
  EXPECT_EQ(detect(with(kTorchrun, {{"MASTER_PORT", ""}}))->rendezvous, "");
}

TEST(DetectLauncher, DerivesALoopbackRendezvousFromTheOpenMpiJob) {
  const auto launcher = detect(kOpenMpi);
  ASSERT_TRUE(launcher.ok()) << launcher.status().c_str();
  EXPECT_EQ(launcher->kind, LauncherKind::open_mpi);
  EXPECT_EQ(launcher->rank, 2);
  EXPECT_EQ(launcher->size, 4);
  EXPECT_EQ(launcher->rendezvous.substr(0, 10), "127.0.0.1:");
  const int port = std::stoi(launcher->rendezvous.substr(10));
  EXPECT_GE(port, 20000);
  EXPECT_LT(port, 30000);
}

TEST(DetectLauncher, DerivesTheSamePortOnEveryRankOfAJob) {
  const auto other_rank =
      with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}});
  EXPECT_EQ(detect(kOpenMpi)->rendezvous, detect(other_rank)->rendezvous);
}

TEST(DetectLauncher, SpreadsJobsOverThePortRange) {
  std::set<std::string> seen;
  for (int job = 0; job < 100; ++job) {
    seen.insert(
        detect(with(kOpenMpi, {{"OMPI_MCA_orte_ess_jobid", std::to_string(job)}}))->rendezvous);
  }
  // Among 100 draws from 10,000 values, fewer than 95 distinct ones have a probability below 1e-4.
  EXPECT_GE(seen.size(), 95u);
}

TEST(DetectLauncher, UsesThePmixNamespaceWhereOpenMpi5HasNoJobId) {
  const auto variables =
      with(kOpenMpi, {{"OMPI_MCA_orte_ess_jobid", ""}, {"PMIX_NAMESPACE", "prterun-host-42@1"}});
  EXPECT_THAT(detect(variables)->rendezvous, HasSubstr("127.0.0.1:"));
}

TEST(DetectLauncher, TellsNoRendezvousForOpenMpiAcrossMachines) {
  EXPECT_EQ(detect(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}))->rendezvous, "");
}

TEST(DetectLauncher, ReadsPmi) {
  const auto launcher = detect(kPmi);
  ASSERT_TRUE(launcher.ok());
  EXPECT_EQ(launcher->kind, LauncherKind::pmi);
  EXPECT_EQ(launcher->rank, 1);
  EXPECT_EQ(launcher->size, 2);
  EXPECT_EQ(launcher->local_rank, 0);
  EXPECT_EQ(launcher->rendezvous, "");
}

TEST(DetectLauncher, ReadsASlurmStep) {
  const auto launcher = detect(kSlurmStep);
  ASSERT_TRUE(launcher.ok());
  EXPECT_EQ(launcher->kind, LauncherKind::slurm);
  EXPECT_EQ(launcher->rank, 5);
  EXPECT_EQ(launcher->size, 6);
  EXPECT_EQ(launcher->local_rank, 1);
  EXPECT_EQ(launcher->rendezvous, "");
}

TEST(DetectLauncher, DerivesALoopbackRendezvousForASlurmStepOnOneNode) {
  EXPECT_THAT(detect(with(kSlurmStep, {{"SLURM_STEP_NUM_NODES", "1"}}))->rendezvous,
              HasSubstr("127.0.0.1:2"));
}

TEST(DetectLauncher, IsNotFooledByABareSlurmBatchScript) {
  const auto launcher =
      detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_JOB_ID", "77"}});
  ASSERT_TRUE(launcher.ok());
  EXPECT_EQ(launcher->kind, LauncherKind::none);
}

TEST(DetectLauncher, PrefersLeewayThenTorchrunThenOpenMpiThenPmiThenSlurm) {
  Variables all = with(kSlurmStep, kPmi);
  EXPECT_EQ(detect(all)->kind, LauncherKind::pmi);
  all = with(all, kOpenMpi);
  EXPECT_EQ(detect(all)->kind, LauncherKind::open_mpi);
  all = with(all, kTorchrun);
  EXPECT_EQ(detect(all)->kind, LauncherKind::torchrun);
  all = with(all, {{"LEEWAY_RANK", "0"}, {"LEEWAY_WORLD_SIZE", "2"}});
  const auto launcher = detect(all);
  EXPECT_EQ(launcher->kind, LauncherKind::leeway);
  EXPECT_EQ(launcher->size, 2);
}

TEST(DetectLauncher, LetsLeewayRendezvousOverrideTheLauncher) {
  const Variables mine = {{"LEEWAY_RENDEZVOUS", "10.0.0.9:4000"}};
  EXPECT_EQ(detect(with(kTorchrun, mine))->rendezvous, "10.0.0.9:4000");
  EXPECT_EQ(detect(with(kOpenMpi, mine))->rendezvous, "10.0.0.9:4000");
}

TEST(DetectLauncher, QuotesAVariableThatIsNotANumber) {
  for (const auto& [base, name] :
       {std::pair{kTorchrun, "RANK"}, std::pair{kTorchrun, "MASTER_PORT"},
        std::pair{kOpenMpi, "OMPI_COMM_WORLD_SIZE"}, std::pair{kPmi, "PMI_RANK"},
        std::pair{kSlurmStep, "SLURM_STEP_NUM_TASKS"}}) {
    for (const char* const bad : {"four", "4x", "-1", "99999999999999999999", " 1", "1.0"}) {
      const auto launcher = detect(with(base, {{name, bad}}));
      ASSERT_FALSE(launcher.ok()) << name << "=" << bad;
      EXPECT_EQ(launcher.status().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(launcher.status().c_str(), HasSubstr(std::string(name) + "=\"" + bad + "\""));
    }
  }
}

TEST(DetectLauncher, RefusesARankBeyondTheSize) {
  const auto launcher = detect(with(kTorchrun, {{"RANK", "8"}}));
  ASSERT_FALSE(launcher.ok());
  EXPECT_THAT(launcher.status().c_str(), AllOf(HasSubstr("RANK=8"), HasSubstr("WORLD_SIZE=8")));
}

TEST(DetectLauncher, RefusesHalfAPlace) {
  EXPECT_THAT(detect({{"LEEWAY_RANK", "1"}}).status().c_str(),
              HasSubstr("LEEWAY_RANK is set but LEEWAY_WORLD_SIZE is not"));
  EXPECT_THAT(detect({{"LEEWAY_WORLD_SIZE", "2"}}).status().c_str(),
              HasSubstr("LEEWAY_WORLD_SIZE is set but LEEWAY_RANK is not"));
  EXPECT_THAT(detect({{"LEEWAY_RANK", ""}, {"LEEWAY_WORLD_SIZE", ""}}).status().c_str(),
              HasSubstr("LEEWAY_RANK is set and empty"));
}

// With only one of the two variables, each process would become a group of its own.
TEST(DetectLauncher, RefusesHalfOfALaunchersPlace) {
  for (const auto& [set, missing] : {std::pair("RANK", "WORLD_SIZE"),
                                     {"WORLD_SIZE", "RANK"},
                                     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                     {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                     {"PMI_RANK", "PMI_SIZE"},
                                     {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                     {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    EXPECT_THAT(detect({{set, "3"}}).status().c_str(),
                AllOf(HasSubstr(std::string(set) + " is set but " + missing + " is not"),
                      HasSubstr("LEEWAY_RANK and LEEWAY_WORLD_SIZE")));
  }
}

TEST(DetectLauncher, TakesAWholePlaceBesideHalfOfAnother) {
  EXPECT_EQ(detect(with(kSlurmStep, {{"RANK", "1"}, {"PMI_RANK", "2"}}))->kind,
            LauncherKind::slurm);
}

TEST(ReasonToBeAlone, IsABatchScriptOfSlurm) {
  const auto reason = [](const Variables& variables) {
    return reason_to_be_alone(getter(variables));
  };
  EXPECT_THAT(reason({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}}),
              AllOf(HasSubstr("16 tasks"), HasSubstr("srun PROGRAM")));
  EXPECT_EQ(reason({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}), "");
  EXPECT_EQ(reason(with(kSlurmStep, {{"SLURM_NTASKS", "6"}})), "");
  EXPECT_EQ(reason({}), "");
}

TEST(DetectLauncher, RefusesAMalformedRendezvous) {
  const auto launcher = detect({{"LEEWAY_RENDEZVOUS", "nowhere"}});
  ASSERT_FALSE(launcher.ok());
  EXPECT_THAT(launcher.status().c_str(),
              AllOf(HasSubstr("LEEWAY_RENDEZVOUS"), HasSubstr("\"nowhere\"")));
}

TEST(OptionsFromEnvironment, LeavesDefaultsInAnEmptyEnvironment) {
  const auto options = read({});
  ASSERT_TRUE(options.ok());
  const Options defaults;
  EXPECT_EQ(options->rank, std::nullopt);
  EXPECT_EQ(options->world_size, std::nullopt);
  EXPECT_EQ(options->join_timeout, defaults.join_timeout);
  EXPECT_EQ(options->log_level, defaults.log_level);
  EXPECT_EQ(options->seed, defaults.seed);
}

TEST(OptionsFromEnvironment, ReadsEveryVariable) {
  const auto options = read({{"LEEWAY_RANK", "1"},
                             {"LEEWAY_WORLD_SIZE", "2"},
                             {"LEEWAY_RENDEZVOUS", "[::1]:4000"},
                             {"LEEWAY_BIND", "10.1.2.3"},
                             {"LEEWAY_JOIN_TIMEOUT_MS", "1500"},
                             {"LEEWAY_PEER_TIMEOUT_MS", "700"},
                             {"LEEWAY_DATAGRAM_BYTES", "8972"},
                             {"LEEWAY_SOCKET_BUFFER_BYTES", "4194304"},
                             {"LEEWAY_WINDOW_BYTES", "65536"},
                             {"LEEWAY_LANES", "4"},
                             {"LEEWAY_SEED", "18446744073709551615"},
                             {"LEEWAY_FAULT", "loss=0.25"},
                             {"LEEWAY_LOG", "debug"}});
  ASSERT_TRUE(options.ok()) << options.status().c_str();
  EXPECT_EQ(options->rank, 1);
  EXPECT_EQ(options->world_size, 2);
  EXPECT_EQ(options->rendezvous, "[::1]:4000");
  EXPECT_EQ(options->bind_address, "10.1.2.3");
  EXPECT_EQ(options->join_timeout, std::chrono::milliseconds(1500));
  EXPECT_EQ(options->peer_timeout, std::chrono::milliseconds(700));
  EXPECT_EQ(options->datagram_bytes, 8972u);
  EXPECT_EQ(options->socket_buffer_bytes, 4194304u);
  EXPECT_EQ(options->window_bytes, 65536u);
  EXPECT_EQ(options->lanes, 4);
  EXPECT_EQ(options->seed, 18446744073709551615u);
  EXPECT_DOUBLE_EQ(options->faults.loss, 0.25);
  EXPECT_EQ(options->log_level, "debug");
}

// `LEEWAY_PORT=$PORT` with a misspelt PORT sets an empty variable, which must not be ignored.
TEST(OptionsFromEnvironment, RefusesAVariableThatIsSetAndEmpty) {
  for (const EnvironmentVariable& variable : environment_variables()) {
    const auto options = read({{variable.name, ""}});
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument) << variable.name;
    EXPECT_THAT(options.status().c_str(),
                HasSubstr(variable.name + std::string(" is set and empty")));
  }
  // The caller gives these two, so they are not read.
  EXPECT_TRUE(options_from_environment(getter({{"LEEWAY_RANK", ""}, {"LEEWAY_WORLD_SIZE", ""}}),
                                       Options::Membership::from_caller)
                  .ok());
}

TEST(OptionsFromEnvironment, QuotesNameAndValueOfWhatDoesNotParse) {
  for (const auto& [name, bad] : Variables{{"LEEWAY_BIND", "eth0"},
                                           {"LEEWAY_JOIN_TIMEOUT_MS", "0"},
                                           {"LEEWAY_PEER_TIMEOUT_MS", "-1"},
                                           {"LEEWAY_DATAGRAM_BYTES", "511"},
                                           {"LEEWAY_SOCKET_BUFFER_BYTES", "8M"},
                                           {"LEEWAY_WINDOW_BYTES", "4294967296"},
                                           {"LEEWAY_LANES", "9"},
                                           {"LEEWAY_RATE", "100M"},
                                           {"LEEWAY_SEED", "0x10"},
                                           {"LEEWAY_FAULT", "lots"},
                                           {"LEEWAY_LOG", "loud"}}) {
    const auto options = read({{name, bad}});
    ASSERT_FALSE(options.ok()) << name;
    EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(options.status().c_str(), AllOf(HasSubstr(name), HasSubstr("\"" + bad + "\"")));
  }
}

// The text names the wrong variable and its value, and no other variable.
TEST(OptionsFromEnvironment, NamesTheVariableThatIsWrongAndNoOther) {
  using ::testing::Not;
  const Variables place = {
      {"LEEWAY_RANK", "0"}, {"LEEWAY_WORLD_SIZE", "2"}, {"LEEWAY_LOCAL_RANK", "0"}};
  int refused = 0;
  for (const EnvironmentVariable& wrong : environment_variables()) {
    for (const char* const value : {"9464", "nonsense", "-1", "1:2:3", ":", "public:9464"}) {
      const auto options = read(with(place, {{wrong.name, value}}));
      if (options.ok()) continue;
      ++refused;
      const std::string text(options.status().text());
      EXPECT_THAT(text, AllOf(HasSubstr(wrong.name), HasSubstr(value)));
      for (const EnvironmentVariable& other : environment_variables()) {
        if (std::string_view(other.name) != wrong.name) {
          EXPECT_THAT(text, Not(HasSubstr(other.name)));
        }
      }
      EXPECT_THAT(text, Not(HasSubstr("rendezvous")));
    }
  }
  EXPECT_GT(refused, 80);
}

TEST(OptionsFromEnvironment, ARateAsksForAFixedOne) {
  const auto options = read({{"LEEWAY_RATE", "100000000"}});
  ASSERT_TRUE(options.ok()) << options.status().c_str();
  EXPECT_EQ(options->congestion, CongestionControl::fixed);
  EXPECT_EQ(options->rate_bits_per_second, 100'000'000u);
}

TEST(OptionsFromEnvironment, NamesTheCongestionControl) {
  EXPECT_EQ(read({})->congestion, CongestionControl::automatic);
  EXPECT_EQ(read({{"LEEWAY_CONGESTION", "automatic"}})->congestion, CongestionControl::automatic);
  EXPECT_EQ(read({{"LEEWAY_CONGESTION", "wan"}})->congestion, CongestionControl::wan);
  EXPECT_EQ(read({{"LEEWAY_CONGESTION", "none"}, {"LEEWAY_RATE", "100000"}})->congestion,
            CongestionControl::none);
  EXPECT_THAT(read({{"LEEWAY_CONGESTION", "fixed"}}).status().c_str(), HasSubstr("LEEWAY_RATE"));
  EXPECT_THAT(read({{"LEEWAY_CONGESTION", "bbr"}}).status().c_str(),
              HasSubstr("LEEWAY_CONGESTION"));
}

TEST(OptionsFromEnvironment, ReadsSecretFilePortAndInsecure) {
  const auto plain = read({});
  EXPECT_EQ(plain->secret_file, "");
  EXPECT_EQ(plain->port, 0);
  EXPECT_FALSE(plain->insecure);
  const auto options = read({{"LEEWAY_SECRET_FILE", "/etc/leeway/cluster.key"},
                             {"LEEWAY_PORT", "7001"},
                             {"LEEWAY_INSECURE", "1"}});
  ASSERT_TRUE(options.ok()) << options.status().c_str();
  EXPECT_EQ(options->secret_file, "/etc/leeway/cluster.key");
  EXPECT_EQ(options->port, 7001);
  EXPECT_TRUE(options->insecure);
  EXPECT_THAT(read({{"LEEWAY_PORT", "70000"}}).status().c_str(), HasSubstr("LEEWAY_PORT"));
  EXPECT_THAT(read({{"LEEWAY_INSECURE", "yes"}}).status().c_str(), HasSubstr("LEEWAY_INSECURE"));
}

TEST(OptionsFromEnvironment, RanksOfAHostHaveTheirUdpPortsOneBehindTheOther) {
  const auto options = [](const char* port, const char* local_rank, const char* lanes) {
    return read({{"LEEWAY_RANK", "5"},
                 {"LEEWAY_WORLD_SIZE", "8"},
                 {"LEEWAY_LOCAL_RANK", local_rank},
                 {"LEEWAY_LANES", lanes},
                 {"LEEWAY_PORT", port}});
  };
  EXPECT_EQ(options("29501", "0", "1")->port, 29501);
  EXPECT_EQ(options("29501", "3", "1")->port, 29504);
  EXPECT_EQ(options("29501", "3", "4")->port, 29513);
  EXPECT_EQ(options("65535", "0", "1")->port, 65535);
  EXPECT_THAT(options("65535", "1", "1").status().c_str(),
              HasSubstr("LEEWAY_PORT=65535 leaves no port for local rank 1 with 1 lanes"));
  const auto by_torchrun = with(kTorchrun, {{"LOCAL_RANK", "1"}, {"LEEWAY_PORT", "29501"}});
  EXPECT_EQ(read(by_torchrun)->port, 29502);
  const auto of_caller =
      options_from_environment(getter(by_torchrun), Options::Membership::from_caller);
  ASSERT_TRUE(of_caller.ok());
  EXPECT_EQ(of_caller->port, 29502) << "a place on the host is no membership";
  EXPECT_FALSE(of_caller->rank.has_value());
}

TEST(OptionsFromEnvironment, TellsStartsApartByTheirRunId) {
  const auto count = [](const Variables& variables) { return read(variables)->restart_count; };
  const Variables place = {{"LEEWAY_RANK", "0"}, {"LEEWAY_WORLD_SIZE", "2"}};
  EXPECT_EQ(count(place), 0u);
  const std::uint64_t monday = count(with(place, {{"LEEWAY_RUN_ID", "monday"}}));
  EXPECT_NE(monday, 0u);
  EXPECT_EQ(count(with(place, {{"LEEWAY_RUN_ID", "monday"}})), monday);
  EXPECT_NE(count(with(place, {{"LEEWAY_RUN_ID", "tuesday"}})), monday);
  EXPECT_EQ(count(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "monday"}})), monday);
  EXPECT_EQ(count(with(kOpenMpi, {{"OMPI_MCA_orte_ess_jobid", "monday"}})), monday);
}

TEST(OptionsFromEnvironment, RanksOfAHostHaveAMetricsPortEach) {
  const auto metrics = [](const char* value, const char* local_rank) {
    return read({{"LEEWAY_RANK", "5"},
                 {"LEEWAY_WORLD_SIZE", "8"},
                 {"LEEWAY_LOCAL_RANK", local_rank},
                 {"LEEWAY_METRICS", value}});
  };
  EXPECT_EQ(metrics("127.0.0.1:9464", "0")->metrics, "127.0.0.1:9464");
  EXPECT_EQ(metrics("127.0.0.1:9464", "3")->metrics, "127.0.0.1:9467");
  EXPECT_EQ(metrics("localhost:0", "3")->metrics, "127.0.0.1:0");
  EXPECT_EQ(metrics("[::1]:9464", "1")->metrics, "[::1]:9465");
  EXPECT_FALSE(metrics("127.0.0.1:65535", "1").ok());
}

TEST(OptionsFromEnvironment, StrangersReadMetricsOnlyWhereThatIsAskedFor) {
  const auto metrics = [](const char* value) { return read({{"LEEWAY_METRICS", value}}); };
  EXPECT_TRUE(metrics("10.1.2.3:9464").ok());
  for (const char* const address : {"8.8.8.8:9464", "0.0.0.0:9464", "[::]:9464"}) {
    EXPECT_THAT(metrics(address).status().c_str(),
                AllOf(HasSubstr("LEEWAY_METRICS"), HasSubstr(std::string("public:") + address)));
    EXPECT_TRUE(metrics((std::string("public:") + address).c_str()).ok());
  }
  EXPECT_THAT(metrics("node-a:9464").status().c_str(), HasSubstr("names no address"));
  EXPECT_FALSE(metrics("9464").ok());
}

TEST(OptionsFromEnvironment, ReadsCertificates) {
  const auto options = read({{"LEEWAY_TLS_CA", "/etc/ca.pem"},
                             {"LEEWAY_TLS_CERT", "/etc/rank.pem"},
                             {"LEEWAY_TLS_KEY", "/etc/rank.key"}});
  ASSERT_TRUE(options.ok()) << options.status().c_str();
  EXPECT_EQ(options->tls_ca, "/etc/ca.pem");
  EXPECT_EQ(options->tls_certificate, "/etc/rank.pem");
  EXPECT_EQ(options->tls_key, "/etc/rank.key");
}

TEST(EnvironmentVariables, ListsExactlyTheLeewayVariablesThatAreRead) {
  std::set<std::string> asked;
  const auto recorder = [&asked](const char* name) -> const char* {
    if (std::string_view(name).substr(0, 7) == "LEEWAY_") asked.insert(name);
    // If rank and size are given, LEEWAY_LOCAL_RANK is asked for as well.
    return name == std::string_view("LEEWAY_RANK")         ? "0"
           : name == std::string_view("LEEWAY_WORLD_SIZE") ? "1"
                                                           : nullptr;
  };
  ASSERT_TRUE(options_from_environment(recorder).ok());
  std::set<std::string> listed;
  for (const EnvironmentVariable& variable : environment_variables()) listed.insert(variable.name);
  EXPECT_EQ(asked, listed);
}

// Torchrun's agents count failures of their own node only, but the workers of all nodes restart. So
// their counts would differ between nodes.
TEST(OptionsFromEnvironment, TakesNoCountThatTorchrunsAgentsKeepForTheirNode) {
  EXPECT_EQ(read(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "2"}}))->restart_count, 0u);
}

TEST(OptionsFromEnvironment, LeavesRankAndSizeToTheCallerWhoHasThem) {
  const auto variables =
      with(kTorchrun, {{"LEEWAY_RANK", "bad"}, {"WORLD_SIZE", "also bad"}, {"LEEWAY_SEED", "5"}});
  const auto options =
      options_from_environment(getter(variables), Options::Membership::from_caller);
  ASSERT_TRUE(options.ok()) << options.status().c_str();
  EXPECT_FALSE(options->rank.has_value());
  EXPECT_FALSE(options->world_size.has_value());
  EXPECT_EQ(options->rendezvous, "");
  EXPECT_EQ(options->seed, 5u);
  const auto told =
      options_from_environment(getter(with(variables, {{"LEEWAY_RENDEZVOUS", "node-a:4000"}})),
                               Options::Membership::from_caller);
  EXPECT_EQ(told->rendezvous, "node-a:4000");
}

Status seal(Options& options, const Variables& variables) {
  return seal_by_default(options, getter(variables));
}

TEST(SealByDefault, TakesTheEnvironmentsSecretWhereTheProgramNamesNone) {
  Options options;
  options.world_size = 2;
  EXPECT_TRUE(seal(options, {}).ok());
  EXPECT_EQ(options.secret_file, "");
  EXPECT_TRUE(seal(options, {{"LEEWAY_SECRET_FILE", "/s"}}).ok());
  EXPECT_EQ(options.secret_file, "/s");
  Options with_own;
  with_own.secret = "x";
  EXPECT_TRUE(seal(with_own, {{"LEEWAY_SECRET_FILE", "/s"}}).ok());
  EXPECT_EQ(with_own.secret_file, "");
}

TEST(SealByDefault, RefusesAPlainGroupWhereSealsAreRequired) {
  const Variables required = {{"LEEWAY_REQUIRE_SEALED", "1"}};
  Options options;
  options.world_size = 2;
  const Status plain = seal(options, required);
  EXPECT_EQ(plain.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(plain.text()),
              AllOf(HasSubstr("would be plain"), HasSubstr("LEEWAY_REQUIRE_SEALED=1"),
                    HasSubstr("leeway keygen"), HasSubstr("LEEWAY_SECRET_FILE")));
  EXPECT_TRUE(seal(options, with(required, {{"LEEWAY_SECRET_FILE", "/s"}})).ok());
  Options alone;
  EXPECT_TRUE(seal(alone, required).ok());
  Options asked;
  asked.world_size = 2;
  asked.require_sealed = true;
  EXPECT_FALSE(seal(asked, {}).ok());
  EXPECT_TRUE(read(required)->require_sealed);
  Options other;
  other.world_size = 2;
  EXPECT_FALSE(seal(other, {{"LEEWAY_REQUIRE_SEALED", "yes"}}).ok());
  EXPECT_FALSE(read({{"LEEWAY_REQUIRE_SEALED", "2"}}).ok());
}

}  // namespace
}  // namespace leeway::rendezvous
