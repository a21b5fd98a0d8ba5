#include <sched.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "device/driver.h"
#include "doctor/probes.h"
#include "seal/aead.h"

namespace leeway::tools::doctor {
namespace {

constexpr const char* kMachineSection = "Machine";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Finding cores() {
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const long usable =
      ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : online;
  Finding finding{kMachineSection,
                  "cores",
                  Verdict::ok,
                  std::to_string(usable) + " usable of " + std::to_string(online),
                  {}};
  if (usable >= 2) return finding;
  finding.verdict = Verdict::warn;
  finding.remedy = online >= 2 ? "give this process more cores: taskset -cp 0-" +
                                     std::to_string(online - 1) + " $$"
                               : "ranks on this machine will take turns on its one core";
  return finding;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0)
      return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

// Returns those of the processor's features by which codec, estimate and the checksum choose their
// kernels.
std::string processor_features() {
  std::string features;
#if defined(__x86_64__)
  const auto add = [&features](const char* name, int present) {
    if (present != 0) features += std::string(features.empty() ? "" : " ") + name;
  };
  add("sse4.2", __builtin_cpu_supports("sse4.2"));
  add("pclmul", __builtin_cpu_supports("pclmul"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("vpclmulqdq", __builtin_cpu_supports("vpclmulqdq"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512bf16", __builtin_cpu_supports("avx512bf16"));
#endif
  return features.empty() ? "no vector extensions that Leeway asks for" : features;
}

Finding kernel() {
  utsname name{};
  if (::uname(&name) != 0) return {kMachineSection, "kernel", Verdict::warn, "unknown", {}};
  return {kMachineSection,
          "kernel",
          Verdict::ok,
          std::string(name.sysname) + " " + name.release + " " + name.machine,
          {}};
}

// The library reads the clock for every batch, for deadlines and round-trip times. So a slow clock
// costs time, and a coarse one gives wrong times.
Finding clock_source() {
  constexpr int kReadings = 1000;
  constexpr double kSlowNs = 500;
  timespec resolution{};
  ::clock_getres(CLOCK_MONOTONIC, &resolution);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i < kReadings; ++i) (void)std::chrono::steady_clock::now();
  const double cost_ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() /
      kReadings;

  const std::string directory = "/sys/devices/system/clocksource/clocksource0/";
  const std::string source = first_line(directory + "current_clocksource");
  const bool coarse = resolution.tv_sec > 0 || resolution.tv_nsec > 1000;
  Finding finding{kMachineSection, "clock", Verdict::ok, {}, {}};
  finding.value = (source.empty() ? "" : source + ", ") + "resolution " +
                  std::to_string(resolution.tv_nsec) + " ns, " +
                  std::to_string(std::lround(cost_ns)) + " ns a reading";
  if (!coarse && cost_ns < kSlowNs) return finding;
  finding.verdict = Verdict::warn;
  finding.remedy = "see the choice in " + directory +
                   "available_clocksource, then: echo tsc | sudo tee " + directory +
                   "current_clocksource";
  return finding;
}

// Looks for the CUDA driver. Without one, the drop-in for NCCL treats all memory as host memory.
Finding cuda_driver() {
  Finding finding{kMachineSection, "CUDA driver", Verdict::ok, {}, {}};
  const auto driver = device::Driver::open();
  if (!driver.ok()) {
    finding.value = driver.status().text();
    return finding;
  }
  const int version = (*driver)->version();
  constexpr int kMajor = 1000;
  finding.value = std::to_string(version / kMajor) + "." + std::to_string(version % kMajor / 10) +
                  ", devices: " + std::to_string((*driver)->devices());
  return finding;
}

}  // namespace

void probe_machine(Findings& findings) {
  findings.push_back(cores());
  findings.push_back({kMachineSection, "processor", Verdict::ok, processor_name(), {}});
  findings.push_back({kMachineSection, "features", Verdict::ok, processor_features(), {}});
  findings.push_back(kernel());
  findings.push_back(clock_source());
  findings.push_back({kMachineSection, "sealing", Verdict::ok, seal::preferred_aead(), {}});
  findings.push_back(cuda_driver());
}

}  // namespace leeway::tools::doctor
