// The one place where the environment is read: LEEWAY_* variables and what launchers leave behind.
//
// Everything takes a getter with std::getenv's contract, so that tests bring their own environment.
// A value that does not parse is kInvalidArgument, and the text quotes name and value. So is a
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

// The launcher that started the ranks, in order of precedence if several left their variables.
enum class LauncherKind : std::uint8_t { none = 0, leeway, torchrun, open_mpi, pmi, slurm };
std::string_view to_string(LauncherKind kind);

struct Launcher {
  LauncherKind kind = LauncherKind::none;
  int rank = 0;  // meaningless if kind is none
  int size = 1;
  std::optional<int> local_rank;  // place among the ranks of this machine, where the launcher says
  std::optional<int> local_size;

  // Where rank 0 listens, "host:port"; empty when nothing says it.
  //   LEEWAY_RENDEZVOUS, with any launcher;
  //   torchrun: MASTER_ADDR, and the port after MASTER_PORT, which itself belongs to torch's
  //   TCPStore; others, all ranks on one machine: loopback, and a port of kDerivedPorts picked by
  //   the job's identifier; others across machines: nothing, since these launchers tell no address.
  std::string rendezvous;
};

// Ports picked from a job identifier: below the ephemeral ranges of Linux (32768 on) and IANA
// (49152 on), so that no outgoing connection sits on one.
inline constexpr std::uint16_t kDerivedPortFirst = 20000;
inline constexpr std::uint16_t kDerivedPortCount = 10000;

// Returns the launcher and what it says. Slurm counts only inside a job step: a bare batch script
// carries SLURM_PROCID=0 too, but its other ranks never come.
Result<Launcher> detect_launcher(const EnvironmentGetter& get);

// Returns, for people, a sign that a process is a group of one by mistake because no launcher told
// it rank and size. Empty if there is no sign of it.
std::string reason_to_be_alone(const EnvironmentGetter& get);

// Options with every LEEWAY_* variable and the launcher's rank, size and rendezvous filled in.
// Without a launcher rank and size stay unset. Options::from_environment() is this over the process
// environment.
Result<Options> options_from_environment(
    const EnvironmentGetter& get,
    Options::Membership membership = Options::Membership::from_environment);

// Variables that keep strangers out of a group.
inline constexpr std::array<const char*, 5> kProtectingVariables = {
    "LEEWAY_SECRET_FILE", "LEEWAY_REQUIRE_SEALED", "LEEWAY_TLS_CA", "LEEWAY_TLS_CERT",
    "LEEWAY_TLS_KEY"};

// Fills in the environment's secret file or certificates if the options name none. So groups of a
// process that has a secret are sealed, even if their options come from a caller. Returns
// kInvalidArgument if there is none either, the group has several ranks, and
// LEEWAY_REQUIRE_SEALED=1 or Options::require_sealed forbids it to be plain. The same if one of
// kProtectingVariables is set and empty.
Status seal_by_default(Options& options, const EnvironmentGetter& get = process_environment());

// The level in LEEWAY_LOG, for lines before there are options; warn if it is not set, or wrong.
LogLevel log_level(const EnvironmentGetter& get);

// One LEEWAY_* variable the library understands, for `leeway doctor` and the documentation.
struct EnvironmentVariable {
  const char* name;
  const char* meaning;
  const char* default_value;  // in words
};
std::span<const EnvironmentVariable> environment_variables();

}  // namespace leeway::rendezvous
