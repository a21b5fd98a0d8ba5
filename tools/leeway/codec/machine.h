// The machine that measurements were taken on.
#pragma once

#include <string>

namespace leeway::tools::codecs {

struct Machine {
  std::string processor;  // model name, or "unknown"
  // Caches of the first core, such as "L1 48K, L2 1024K, L3 32768K", as far as the system reports
  // them.
  std::string caches;
  int cores = 0;  // cores that this process may use
};

Machine this_machine();

}  // namespace leeway::tools::codecs
