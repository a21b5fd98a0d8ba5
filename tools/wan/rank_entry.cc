#include "rank_entry.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

namespace leeway::lab {
namespace {

constexpr const char* kVariable = "WAN_LAB_RANKS";
constexpr const char* kPort = "29511";
constexpr int kNoProgram = 127;  // the exit code of a shell in that case

void keep_over_exec(int fd) {
  ::fcntl(fd, F_SETFD, 0);
}

void close_on_exec(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int fail(const char* what) {
  std::fprintf(stderr, "wan_lab: %s: %s\n", what, std::strerror(errno));
  return kNoProgram;
}

// Sets the variables that other libraries' launchers set. Leeway's own variables exist already.
void set_environment(std::size_t rank, std::size_t ranks) {
  const std::string first = address_text(0);
  const auto set = [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
  };
  set("LEEWAY_RENDEZVOUS", first + ":" + kPort);
  set("LEEWAY_LOCAL_RANK", "0");
  // Ranks stand for hosts, but share this machine's memory, which would bypass the lines.
  ::setenv("LEEWAY_TRANSPORT", "udp", /*overwrite=*/0);
  set("RANK", std::to_string(rank));
  set("WORLD_SIZE", std::to_string(ranks));
  set("LOCAL_RANK", "0");
  set("MASTER_ADDR", first);
  set("MASTER_PORT", kPort);
  set("WAN_LAB_ADDRESS", address_text(static_cast<std::uint32_t>(rank)));
  set("WAN_LAB_DEVICE", kDevice);
  std::string all;
  for (std::uint32_t other = 0; other < ranks; ++other) {
    all.append(other == 0 ? "" : ",").append(address_text(other));
  }
  set("WAN_LAB_ADDRESSES", all);
}

RankEntry parse(const char* text) {
  RankEntry entry;
  std::istringstream words(text);
  words >> entry.group >> entry.output_fd;
  for (int fd = 0; words >> fd;) entry.namespace_fds.push_back(fd);
  return entry;
}

}  // namespace

void announce_ranks(const RankEntry& entry) {
  std::string text = std::to_string(entry.group);
  const auto add = [&text](int fd) { text.append(1, ' ').append(std::to_string(fd)); };
  add(entry.output_fd);
  if (entry.output_fd >= 0) keep_over_exec(entry.output_fd);
  for (const int fd : entry.namespace_fds) {
    keep_over_exec(fd);
    add(fd);
  }
  ::setenv(kVariable, text.c_str(), 1);
}

std::optional<int> become_rank(char** argv) {
  const char* const announced = std::getenv(kVariable);
  if (announced == nullptr) return std::nullopt;
  const RankEntry entry = parse(announced);
  ::unsetenv(kVariable);
  const char* const text = std::getenv("LEEWAY_RANK");
  const std::size_t rank = text == nullptr ? 0 : static_cast<std::size_t>(std::atoi(text));
  if (rank >= entry.namespace_fds.size()) return kNoProgram;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, entry.group);
  if (!enter_namespace(entry.namespace_fds[rank]).ok()) return fail("the rank's namespace");
  for (const int fd : entry.namespace_fds) close_on_exec(fd);
  if (entry.output_fd >= 0) {
    ::dup2(entry.output_fd, STDOUT_FILENO);
    close_on_exec(entry.output_fd);
  }
  set_environment(rank, entry.namespace_fds.size());
  ::execvp(argv[0], argv);
  return fail(argv[0]);
}

}  // namespace leeway::lab
