#include "integration/rank_group.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>

namespace leeway::integration {
namespace {

bool can_listen(std::uint16_t port, std::uint16_t& granted) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool free =
      bind(listener, generic, length) == 0 && getsockname(listener, generic, &length) == 0;
  granted = ntohs(address.sin_port);
  close(listener);
  return free;
}

Environment environment_of(const RankSetup& setup, int rank, const std::string& rendezvous) {
  Environment environment = setup.environment;
  environment.insert({"LEEWAY_TRANSPORT", "udp"});
  environment.insert({"LEEWAY_RANK", std::to_string(rank)});
  environment.insert({"LEEWAY_WORLD_SIZE", std::to_string(setup.ranks)});
  environment.insert({"LEEWAY_RENDEZVOUS", rendezvous});
  if (rank < static_cast<int>(setup.environment_of.size())) {
    for (const auto& [name, value] : setup.environment_of[rank]) environment[name] = value;
  }
  return environment;
}

}  // namespace

std::vector<std::string> private_memory(const std::string& bytes) {
  const std::string mounted = "mount -t tmpfs -o size=" + bytes + " leeway-test /dev/shm";
  return {"unshare", "--mount", "sh", "-c", mounted + " && if [ $# -gt 0 ]; then exec \"$@\"; fi",
          "sh"};
}

std::string worker_path() {
  return LEEWAY_INTEGRATION_WORKER;
}

std::uint16_t free_port() {
  for (int attempt = 0; attempt < 64; ++attempt) {
    std::uint16_t port = 0;
    std::uint16_t next = 0;
    if (can_listen(0, port) && port < 65535 &&
        can_listen(static_cast<std::uint16_t>(port + 1), next))
      return port;
  }
  ADD_FAILURE() << "no two neighbouring free ports on 127.0.0.1";
  return 0;
}

std::vector<Facts> facts_in(const std::string& output) {
  std::vector<Facts> all;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    Facts facts = Facts::parse(line, nullptr, /*allow_exceptions=*/false);
    if (facts.is_object() && !facts.contains("mark")) all.push_back(std::move(facts));
  }
  return all;
}

RankGroup::RankGroup(const RankSetup& setup) {
  const std::string rendezvous =
      setup.rendezvous.empty() ? "127.0.0.1:" + std::to_string(free_port()) : setup.rendezvous;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    std::vector<std::string> argv;
    if (rank < static_cast<int>(setup.prefix_of.size())) argv = setup.prefix_of[rank];
    argv.push_back(worker_path());
    argv.insert(argv.end(), setup.scenario.begin(), setup.scenario.end());
    ranks_.emplace_back(argv, environment_of(setup, rank, rendezvous));
  }
}

bool RankGroup::await_mark(const std::string& mark, std::chrono::seconds patience) {
  const TimePoint until = Clock::now() + patience;
  const std::string wanted = Facts{{"mark", mark}}.dump();
  for (int rank = 0; rank < size(); ++rank) {
    const auto line = ranks_[rank].read_line(until);
    if (line == wanted) continue;
    ADD_FAILURE() << "rank " << rank << " did not come to \"" << mark
                  << "\"; it said: " << line.value_or("nothing");
    return false;
  }
  return true;
}

std::vector<Facts> RankGroup::finish(std::chrono::seconds patience, int but_not) {
  const TimePoint until = Clock::now() + patience;
  std::vector<Facts> all(ranks_.size());
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == but_not) continue;
    const std::string output = ranks_[rank].read_all(until);
    const auto exit_code = ranks_[rank].wait(until);
    if (!exit_code) {
      ADD_FAILURE() << "rank " << rank << " still runs after " << patience.count()
                    << " s; output: " << output;
      continue;
    }
    EXPECT_EQ(*exit_code, 0) << "rank " << rank << "; output: " << output;
    auto facts = facts_in(output);
    EXPECT_FALSE(facts.empty()) << "rank " << rank << " reported no facts; output: " << output;
    if (!facts.empty()) all[rank] = std::move(facts.back());
  }
  return all;
}

}  // namespace leeway::integration
