// Settings of a run of `leeway perf`: the command line as typed, and the checked settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/options.h"
#include "leeway/status.h"
#include "leeway/types.h"
#include "perf/operation.h"

namespace leeway::tools::perf {

// The arguments as typed. The initial values are the command's defaults.
struct Arguments {
  std::string operation = "all_reduce";
  int ranks = 0;  // 0: the launcher's world size, or kRanksDefault processes
  std::string bytes_min = "4K";
  std::string bytes_max = "16M";
  std::size_t factor = 4;
  int iterations = 20;
  int warmup = 5;
  int checks = 1;
  int back_to_back = 0;
  int communicators = 0;
  bool allocate = false;
  std::string dtype = "float";
  std::string redop = "sum";
  int root = 0;
  std::string codec = "native";
  std::string spread_codec;  // if empty, the same as codec
  std::string delivery = "exact";
  std::string spread = "exact";
  double deadline_ms = 0;  // 0: kExactDeadline or kLossyDeadline
  std::string estimator = "ratio";
  std::optional<double> loss;  // these three override LEEWAY_FAULT when given
  std::optional<double> burst;
  std::optional<std::uint64_t> seed;
  std::string transport;   // without one, LEEWAY_TRANSPORT's
  bool multicast = false;  // if false, LEEWAY_MULTICAST decides
  int lanes = 0;           // with 0, LEEWAY_LANES's
  std::size_t datagram_bytes = 0;
  std::string json_path;
};

inline constexpr int kRanksDefault = 2;
inline constexpr int kCommunicatorsMax = 4096;
inline constexpr Duration kExactDeadline = std::chrono::seconds(60);
inline constexpr Duration kLossyDeadline = std::chrono::seconds(1);

struct Settings {
  Operation operation = Operation::all_reduce;
  DataType dtype = DataType::f32;
  Rank root = 0;
  std::vector<std::size_t> sizes;
  int iterations = 0;
  int warmup = 0;
  int checks = 0;
  int back_to_back = 0;   // calls in an iteration without a barrier between them; 0 for one call
  int communicators = 0;  // communicators that are open besides the measured one
  bool allocate = false;  // tensors lie in memory of Communicator::allocate()
  CollectiveOptions collective;
  std::string json_path;

  bool lossy() const {
    return collective.delivery.kind != Delivery::Kind::exact ||
           collective.spread != Delivery::Kind::exact;
  }
  // Returns the codec of the spread half. Operations with only one half use one codec.
  CodecOptions spread_codec() const { return collective.spread_codec.value_or(collective.codec); }
};

// Returns the reduction's name for the table, short enough for its column: premul_sum is "mulsum",
// as in nccl-tests.
std::string_view column_name(ReduceOp op);

// Checks the arguments. Refuses meaningless settings with a one-line error.
Result<Settings> understand(const Arguments& arguments);

// Returns the communicator's options: from the environment, overridden by the command line.
Result<Options> communicator_options(const Arguments& arguments);

}  // namespace leeway::tools::perf
