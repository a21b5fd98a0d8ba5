// The command lines of `leeway codec`'s subcommands, as typed and as checked settings.
#pragma once

#include <string>
#include <vector>

#include "codec/benchmark.h"
#include "codec/inspection.h"
#include "leeway/status.h"

namespace leeway::tools::codecs {

// The arguments as typed. The initial values are the command's defaults.
struct BenchArguments {
  std::vector<std::string> codecs;  // if empty, one of each format
  // 256 KiB and its copy fit a level-2 cache of 512 KiB; 64 MiB exceed most caches.
  std::vector<std::string> sizes = {"256K", "64M"};
  bool all_targets = false;
  std::string json_path;
};

struct InspectArguments {
  std::string path;  // "-": standard input
  std::vector<double> sparsities = {0.5, 0.8, 0.9};
  int ranks = 4;
  std::string json_path;
};

// Check the arguments. Refuse meaningless settings with a one-line error.
Result<BenchSettings> understand(const BenchArguments& arguments);
Result<InspectOptions> understand(const InspectArguments& arguments);

}  // namespace leeway::tools::codecs
