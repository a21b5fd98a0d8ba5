// Settings of the drop-in from the environment: NCCL's variables that keep their meaning, and
// LEEWAY_NCCL_*. Other variables of Leeway (LEEWAY_*) are read by Options::from_environment().
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leeway/options.h"
#include "leeway/status.h"

namespace leeway::nccl {

struct Settings {
  enum class Family { any, v4, v6 };

  int version = 0;                  // LEEWAY_NCCL_VERSION "2.29.3"; unset: codes.h
  Duration timeout = no_deadline;   // LEEWAY_NCCL_TIMEOUT: seconds for each operation
  bool seal = true;                 // LEEWAY_NCCL_SEAL: seal datagrams by the unique id's secret
  std::string policy;               // LEEWAY_NCCL_POLICY: rules, or a file of rules
  std::string trace;                // LEEWAY_NCCL_TRACE: a file
  bool join_timeout_given = false;  // LEEWAY_JOIN_TIMEOUT_MS
  std::size_t staging_mib = 32;     // LEEWAY_NCCL_STAGING: pinned memory of each device
  // LEEWAY_NCCL_SMS: multiprocessors of a device for kernels of codecs.
  unsigned multiprocessors = 12;
  bool check_pointers = false;   // NCCL_CHECK_POINTERS
  std::optional<bool> blocking;  // NCCL_COMM_BLOCKING; wins over what programs ask for
  std::string interfaces;        // NCCL_SOCKET_IFNAME
  Family family = Family::any;   // NCCL_SOCKET_FAMILY
  std::string meeting_place;     // NCCL_COMM_ID "host:port"

  using Lookup = std::function<const char*(const char* name)>;
  // Returns kInvalidArgument if a variable does not parse. The text quotes it.
  static Result<Settings> read(const Lookup& variable);
};

// Returns the names among "NAME=value" that begin with NCCL_ and mean nothing here, sorted.
std::vector<std::string> ignored_variables(const char* const* environment);

}  // namespace leeway::nccl
