#include "perf/spending.h"

#include <time.h>

#include <string_view>

namespace leeway::tools::perf {
namespace {

// Returns the processor time of all threads in us. getrusage() is not used, because it counts in
// ticks, which are longer than a call.
double processor_us() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

}  // namespace

Spending& Spending::operator+=(const Spending& other) {
  data += other.data;
  repair += other.repair;
  report += other.report;
  control += other.control;
  bytes += other.bytes;
  processor_us += other.processor_us;
  return *this;
}

Spending Spending::operator-(const Spending& before) const {
  return {data - before.data,       repair - before.repair, report - before.report,
          control - before.control, bytes - before.bytes,   processor_us - before.processor_us};
}

Spending Spending::operator/(double calls) const {
  return {data / calls,    repair / calls, report / calls,
          control / calls, bytes / calls,  processor_us / calls};
}

Spending spent(const Communicator& communicator) {
  Spending total;
  for (const auto& [row, count] : communicator.counters()) {
    std::string_view name = row;
    if (name.starts_with("lane")) name.remove_prefix(name.find('_') + 1);
    const auto number = static_cast<double>(count);
    if (name == "data_sent") total.data += number;
    if (name == "repairs_sent") total.repair += number;
    if (name == "reports_sent") total.report += number;
    if (name == "ends_sent" || name == "probes_sent" || name == "requests_sent")
      total.control += number;
    if (name == "bytes_sent") total.bytes += number;
  }
  total.data -= total.repair;  // `data` holds repairs
  total.processor_us = processor_us();
  return total;
}

}  // namespace leeway::tools::perf
