// The one place where the environment is read: LEEWAY_* variables and those that launchers set.
//
// Everything takes a getter with std::getenv's contract, so that tests bring their own environment.
// A value that does not parse is kInvalidArgument, with name and value in the text; so is a
// LEEWAY_* variable that is set and empty. A launcher's variable that is empty counts as unset.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "leeway/options.h"
#include "leeway/status.h"
#include "rendezvous/log.h"

namespace leeway::rendezvous {

using EnvironmentGetter = std::function<const char*(const char*)>;

// A getter that calls std::getenv.
EnvironmentGetter process_environment();

// The launcher that started the ranks. If several launchers left their variables, the first in this
// order counts.
enum class LauncherKind : std::uint8_t { none = 0, leeway, torchrun, open_mpi, pmi, slurm };
std::string_view to_string(LauncherKind kind);

struct Launcher {
  LauncherKind kind = LauncherKind::none;
  int rank = 0;  // meaningless if kind is none
  int size = 1;
  std::optional<int> local_rank;  // place among the ranks of this machine, where the launcher says
  std::optional<int> local_size;

  // Address at which rank 0 listens, "host:port"; empty if nothing tells it.
  //   LEEWAY_RENDEZVOUS wins over every launcher's address.
  //   torchrun: MASTER_ADDR, and the port after MASTER_PORT, which torch's TCPStore uses itself.
  //   Others on one machine: loopback, and a port made from the job's identifier.
  //   Others across machines: empty, since these launchers tell no address.
  std::string rendezvous;
};

// Ports made from a job identifier. They lie below the ephemeral ranges of Linux (32768 on) and
// IANA (49152 on), from which the system takes ports for outgoing connections.
inline constexpr std::uint16_t kDerivedPortFirst = 20000;
inline constexpr std::uint16_t kDerivedPortCount = 10000;

// Returns the launcher and the values that it set. Slurm is found only inside a job step: a batch
// script has SLURM_PROCID=0 too, but other ranks never join it.
Result<Launcher> detect_launcher(const EnvironmentGetter& get);

// Returns a hint for people if this process may be a group of one by mistake, because no launcher
// told it rank and size. Returns an empty text otherwise.
std::string reason_to_be_alone(const EnvironmentGetter& get);

// Returns options with every LEEWAY_* variable and the launcher's rank, size and rendezvous.
// Without a launcher rank and size stay unset.
Result<Options> options_from_environment(
    const EnvironmentGetter& get,
    Options::Membership membership = Options::Membership::from_environment);

// Variables that keep strangers out of a group.
inline constexpr std::array<const char*, 5> kProtectingVariables = {
    "LEEWAY_SECRET_FILE", "LEEWAY_REQUIRE_SEALED", "LEEWAY_TLS_CA", "LEEWAY_TLS_CERT",
    "LEEWAY_TLS_KEY"};

// Fills in the environment's secret file or certificates if the options name none, so a process
// that has a secret seals all its groups. Returns kInvalidArgument if a group of several ranks
// would be plain although LEEWAY_REQUIRE_SEALED=1 or Options::require_sealed forbids it, or if one
// of kProtectingVariables is set and empty.
Status seal_by_default(Options& options, const EnvironmentGetter& get = process_environment());

// Returns the level that LEEWAY_LOG names, or LogLevel::warn if the variable is unset or invalid.
// The level is for lines that are logged before options exist.
LogLevel log_level(const EnvironmentGetter& get);

// One LEEWAY_* variable the library understands, for `leeway doctor` and the documentation.
struct EnvironmentVariable {
  const char* name;
  const char* meaning;
  const char* default_value;  // in words
};
std::span<const EnvironmentVariable> environment_variables();

}  // namespace leeway::rendezvous
