// Tests mistakes of users and datagrams of strangers, with real processes. Each mistake must be
// reported, each such datagram must be refused, and no process may hang.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "integration/rank_group.h"

namespace leeway::integration {
namespace {

constexpr std::chrono::seconds kRefusalPatience(60);

std::string error_text(const Facts& facts) {
  EXPECT_TRUE(facts.is_object() && facts.contains("error")) << facts;
  return facts.is_object() && facts.contains("error") ? facts["error"]["text"].get<std::string>()
                                                      : std::string();
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Occupies a port of 127.0.0.1 while the object exists, by listening on it.
class Occupier {
 public:
  Occupier() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, generic, length), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, generic, &length), 0);
    port_ = std::to_string(ntohs(address.sin_port));
  }
  ~Occupier() { close(listener_); }
  Occupier(const Occupier&) = delete;
  Occupier& operator=(const Occupier&) = delete;
  const std::string& port() const { return port_; }

 private:
  int listener_;
  std::string port_;
};

// Runs one process alone, although `environment` makes it one of several ranks. Returns its facts.
Facts run_lone_rank(const Environment& environment) {
  Process process({worker_path(), "join_only"}, environment);
  const TimePoint until = Clock::now() + std::chrono::seconds(20);
  const auto all = facts_in(process.read_all(until));
  EXPECT_EQ(process.wait(until), 0);
  return all.empty() ? Facts() : all.back();
}

TEST(BadInput, PortInUseIsNamed) {
  const Occupier occupier;
  const std::string text =
      error_text(run_lone_rank({{"LEEWAY_RANK", "0"},
                                {"LEEWAY_WORLD_SIZE", "2"},
                                {"LEEWAY_RENDEZVOUS", "127.0.0.1:" + occupier.port()}}));
  EXPECT_TRUE(mentions(text, "port " + occupier.port() + " is in use")) << text;
}

TEST(BadInput, AbsentRankZeroIsNamedWithinTheJoinTimeout) {
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  const Facts facts = run_lone_rank({{"LEEWAY_RANK", "1"},
                                     {"LEEWAY_WORLD_SIZE", "2"},
                                     {"LEEWAY_RENDEZVOUS", where},
                                     {"LEEWAY_JOIN_TIMEOUT_MS", "700"}});
  const std::string text = error_text(facts);
  EXPECT_TRUE(mentions(text, "rank 1 could not join through rank 0 at " + where)) << text;
  EXPECT_LT(facts["elapsed_ms"], 700 + 500) << facts;  // half a second for a busy machine
}

TEST(BadInput, AbsentRankIsNamedToTheOthers) {
  const std::string where = "127.0.0.1:" + std::to_string(free_port());
  const Facts facts = run_lone_rank({{"LEEWAY_RANK", "0"},
                                     {"LEEWAY_WORLD_SIZE", "3"},
                                     {"LEEWAY_RENDEZVOUS", where},
                                     {"LEEWAY_JOIN_TIMEOUT_MS", "700"}});
  EXPECT_TRUE(mentions(error_text(facts), "missing ranks 1, 2")) << facts;
  EXPECT_LT(facts["elapsed_ms"], 700 + 500) << facts;
}

TEST(BadInput, VariablesThatAreNoNumbersAreQuoted) {
  const Environment place = {{"LEEWAY_RANK", "0"}, {"LEEWAY_WORLD_SIZE", "1"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Environment environment = place;
    environment[name] = value;
    return error_text(run_lone_rank(environment));
  };
  for (const char* name :
       {"LEEWAY_RANK", "LEEWAY_WORLD_SIZE", "LEEWAY_JOIN_TIMEOUT_MS", "LEEWAY_SEED"}) {
    const std::string text = with(name, "twelve");
    EXPECT_TRUE(mentions(text, std::string(name) + "=\"twelve\"")) << text;
  }
  EXPECT_TRUE(mentions(with("LEEWAY_FAULT", "loss=much"), "LEEWAY_FAULT"));
  const std::string torchrun = error_text(run_lone_rank({{"RANK", "0"},
                                                         {"WORLD_SIZE", "four"},
                                                         {"MASTER_ADDR", "127.0.0.1"},
                                                         {"MASTER_PORT", "29500"}}));
  EXPECT_TRUE(mentions(torchrun, "WORLD_SIZE=\"four\"")) << torchrun;
}

TEST(BadInput, RankOutsideTheGroupIsRefused) {
  const std::string text =
      error_text(run_lone_rank({{"LEEWAY_RANK", "4"}, {"LEEWAY_WORLD_SIZE", "4"}}));
  EXPECT_TRUE(mentions(text, "LEEWAY_RANK=4")) << text;
}

TEST(BadInput, WorldSizesThatDifferAreNamedToBoth) {
  RankGroup group({.ranks = 2,
                   .scenario = {"join_only"},
                   .environment = {{"LEEWAY_JOIN_TIMEOUT_MS", "10000"}},
                   .environment_of = {{}, {{"LEEWAY_WORLD_SIZE", "3"}}}});
  for (const Facts& facts : group.finish(kRefusalPatience)) {
    const std::string text = error_text(facts);
    EXPECT_TRUE(mentions(text, "rank 1") && mentions(text, "expects 3 ranks, rank 0 expects 2"))
        << text;
  }
}

TEST(BadInput, SizesThatDifferAreNamedToBoth) {
  RankGroup group({.ranks = 2, .scenario = {"size_mismatch"}});
  const auto all = group.finish(kRefusalPatience);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string text = error_text(all[rank]);
    EXPECT_EQ(all[rank]["error"]["code"], "mismatch");
    EXPECT_TRUE(mentions(text, "rank 0 has") && mentions(text, "rank 1 has")) << text;
    EXPECT_TRUE(mentions(text, "[1000]") && mentions(text, "[1001]")) << text;
    EXPECT_EQ(all[rank]["afterwards"]["problems"], Facts::array()) << "the group must work on";
    EXPECT_EQ(all[rank]["afterwards"]["wrong"], 0u);
  }
}

TEST(BadInput, SizesThatDifferFailEveryRankOfFour) {
  for (const char* delivery : {"delivery=exact", "delivery=best_effort"}) {
    RankGroup group({.scenario = {"size_mismatch", delivery}});
    for (const Facts& facts : group.finish(kRefusalPatience)) {
      const std::string text = error_text(facts);
      EXPECT_TRUE(mentions(text, "rank 1 has") && mentions(text, "[1001]"))
          << delivery << ": " << facts;
      EXPECT_EQ(facts["afterwards"]["wrong"], 0u);
    }
  }
}

TEST(BadInput, JunkDatagramsAreRefusedAndCounted) {
  RankGroup group({.scenario = {"junk", "rounds=300"}});
  const auto all = group.finish(kRefusalPatience);
  std::uint64_t thrown = 0;
  std::uint64_t by_stranger = 0;
  for (const Facts& facts : all) {
    ASSERT_TRUE(facts.is_object());
    EXPECT_EQ(facts["problems"], Facts::array()) << facts;
    EXPECT_EQ(facts["wrong"], 0u);
    thrown += facts["thrown"].get<std::uint64_t>();
    by_stranger += facts["thrown_by_stranger"].get<std::uint64_t>();
  }
  EXPECT_GT(thrown, 30u);
  EXPECT_GT(by_stranger, 30u);
  const Facts& victim = all[0]["counters"];
  for (const char* reason : {"refused_magic", "refused_truncated", "refused_epoch",
                             "refused_version", "refused_type", "refused_stranger"}) {
    EXPECT_GT(victim[reason], 0u) << reason;
  }
  const auto too_long = [&](const Facts& counters) {
    return counters["refused_oversized"].get<std::uint64_t>() +
           counters["refused_truncated_by_system"].get<std::uint64_t>();
  };
  EXPECT_GT(too_long(victim), 0u);
  EXPECT_EQ(too_long(all[2]["counters"]), 0u) << "a rank that nobody threw at";
}

}  // namespace
}  // namespace leeway::integration
