// The packet trace of a command (--trace), which is possible for one run only.
#pragma once

#include <memory>

#include "sim/plan.h"
#include "trace/trace_writer.h"

namespace leeway::tools::simulation {

class PacketTrace {
 public:
  // Refuses a plan of several runs. The error says how to choose one run.
  static Status check(const Arguments& arguments, const Plan& plan);

  Status open(const Arguments& arguments, const Plan& plan);
  Status close();

  bool active() const { return writer_ != nullptr; }
  sim::PacketObserver* observer() { return writer_.get(); }  // may be null

 private:
  std::unique_ptr<sim::trace::TraceWriter> writer_;
};

}  // namespace leeway::tools::simulation
