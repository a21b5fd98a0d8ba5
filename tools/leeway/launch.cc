#include "launch.h"

#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "rank_processes.h"
#include "rendezvous/environment.h"

namespace leeway::tools {
namespace {

std::vector<std::string> own_command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin < bytes.size();) {
    arguments.emplace_back(bytes.c_str() + begin);
    begin += arguments.back().size() + 1;
  }
  return arguments;
}

// Returns a loopback port that is free now. It lies below the ephemeral range, so it is probably
// still free when rank 0 opens it. The search begins at a random port, because several launches may
// run at the same time.
Result<std::string> free_rendezvous() {
  asio::io_context io;
  const std::uint32_t start = std::random_device()();
  for (std::uint32_t i = 0; i < rendezvous::kDerivedPortCount; ++i) {
    const auto port = static_cast<std::uint16_t>(rendezvous::kDerivedPortFirst +
                                                 (start + i) % rendezvous::kDerivedPortCount);
    asio::ip::tcp::acceptor acceptor(io, asio::ip::tcp::v4());
    std::error_code error;
    acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
    acceptor.bind({asio::ip::address_v4::loopback(), port}, error);
    if (!error) return "127.0.0.1:" + std::to_string(port);
  }
  return Status::error(
      StatusCode::kUnavailable, "no free TCP port from %u to %u on 127.0.0.1 for the rendezvous",
      unsigned{rendezvous::kDerivedPortFirst},
      unsigned{rendezvous::kDerivedPortFirst} + rendezvous::kDerivedPortCount - 1u);
}

Result<LaunchResult> join_launched(const rendezvous::Launcher& launcher, int ranks) {
  if (ranks != 0 && ranks != launcher.size) {
    return Status::error(
        StatusCode::kMismatch,
        "%d ranks asked for, but %s started %d; leave --ranks away under a launcher", ranks,
        rendezvous::to_string(launcher.kind).data(), launcher.size);
  }
  return LaunchResult{.is_worker = true};
}

}  // namespace

bool is_started_by_launcher() {
  const char* const launcher = std::getenv(kLauncherVariable);
  return launcher != nullptr && std::to_string(::getppid()) == launcher;
}

Result<LaunchResult> launch_local_ranks(int ranks) {
  const auto launcher = rendezvous::detect_launcher(rendezvous::process_environment());
  if (!launcher.ok()) return launcher.status();
  if (launcher->kind != rendezvous::LauncherKind::none) return join_launched(*launcher, ranks);
  if (ranks < 0 || ranks > limits::kPeersMax) {
    return Status::error(StatusCode::kInvalidArgument, "%d ranks asked for; 1 to %d are possible",
                         ranks, limits::kPeersMax);
  }
  if (ranks <= 1) return LaunchResult{.is_worker = true};

  Result<std::string> rendezvous = launcher->rendezvous;
  if (rendezvous->empty()) rendezvous = free_rendezvous();
  if (!rendezvous.ok()) return rendezvous.status();
  const auto exit_code = run_rank_processes({.program = "/proc/self/exe",
                                             .argv = own_command_line(),
                                             .ranks = ranks,
                                             .rendezvous = *rendezvous});
  if (!exit_code.ok()) return exit_code.status();
  return LaunchResult{.is_worker = false, .exit_code = *exit_code};
}

}  // namespace leeway::tools
