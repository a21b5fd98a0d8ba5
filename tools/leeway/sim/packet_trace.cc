#include "sim/packet_trace.h"

#include <utility>

#include "topology/topology.h"

namespace leeway::tools::simulation {

Status PacketTrace::check(const Arguments& arguments, const Plan& plan) {
  if (arguments.trace_path.empty() || plan.runs() == 1) return {};
  const std::string seed = std::to_string(plan.seeds.from);
  return Status::error(StatusCode::kInvalidArgument,
                       "--trace holds one run, but this is %zu (%zu cells, seeds: %u); choose one "
                       "with --set for each swept field and --seeds %s..%s",
                       plan.runs(), plan.grid.size(), plan.seeds.count, seed.c_str(), seed.c_str());
}

Status PacketTrace::open(const Arguments& arguments, const Plan& plan) {
  const sim::scenario::Scenario& scenario = plan.grid.front().scenario;
  Result<sim::Topology> made = sim::Topology::make(scenario);
  if (!made.ok()) return made.status();
  const auto topology = std::make_shared<sim::Topology>(std::move(*made));
  sim::trace::TraceOptions options;
  options.scenario = scenario.name();
  options.seed = plan.seeds.from;
  options.ranks = scenario.ranks();
  if (arguments.trace_whole) options.kept_bytes = sim::trace::kWholeDatagrams;
  options.link_name = [topology](sim::LinkId link) { return topology->name(link); };
  auto writer = sim::trace::TraceWriter::open(arguments.trace_path, std::move(options));
  if (!writer.ok()) return writer.status();
  writer_ = std::move(*writer);
  return {};
}

Status PacketTrace::close() {
  return writer_ ? writer_->close() : Status();
}

}  // namespace leeway::tools::simulation
