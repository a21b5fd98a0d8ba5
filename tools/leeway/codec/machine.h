// What measurements were taken on.
#pragma once

#include <string>

namespace leeway::tools::codecs {

struct Machine {
  std::string processor;  // model name, or "unknown"
  std::string caches;     // of the first core, e.g. "L1 48K, L2 1024K, L3 32768K"; empty where the
                          // system does not say
  int cores = 0;          // that this process may use
};

Machine this_machine();

}  // namespace leeway::tools::codecs
