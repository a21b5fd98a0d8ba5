#include "codec/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace leeway::tools::codecs {
namespace {

constexpr int kCachesMax = 8;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string cache_sizes() {
  std::string text;
  for (int i = 0; i < kCachesMax; ++i) {
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/";
    const std::string size = first_line(cache + "size");
    if (size.empty()) break;
    if (first_line(cache + "type") == "Instruction") continue;
    text += text.empty() ? "L" : ", L";
    text += first_line(cache + "level");
    text += " ";
    text += size;
  }
  return text;
}

int usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace

Machine this_machine() {
  return {processor_name(), cache_sizes(), usable_cores()};
}

}  // namespace leeway::tools::codecs
