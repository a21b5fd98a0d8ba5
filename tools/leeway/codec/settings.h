// The command lines of `leeway codec`'s subcommands, as typed and after they are checked.
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
  // A copy of 256 KiB stays within 512 KiB of L2; two buffers of 64 MiB lie beyond most caches.
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

// Check the arguments. Refuse, in one line, settings that have no meaning.
Result<BenchSettings> understand(const BenchArguments& arguments);
Result<InspectOptions> understand(const InspectArguments& arguments);

}  // namespace leeway::tools::codecs
