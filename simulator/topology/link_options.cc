#include "topology/link_options.h"

#include <utility>

#include "scenario/record_file.h"
#include "scenario/units.h"

namespace leeway::sim {
namespace {

constexpr scenario::TimeRules kDelays{kDelayValuesMax, static_cast<double>(kDelayMaxNs) / 1e6};
constexpr scenario::TimeRules kDeliveries{kDeliveriesMax, 86'400'000};  // a day

DelayOptions shaped(DelayShape shape, const scenario::Delay::Shape& options) {
  DelayOptions delay;
  delay.shape = shape;
  delay.delay_ns = ns_of_ms(options.mean());
  delay.jitter_ns = ns_of_ms(options.deviation());
  delay.correlation = options.correlation();
  return delay;
}

// Jitter is half the range in whole ns, so an odd range loses one ns.
DelayOptions uniform(const scenario::Delay::Uniform& options) {
  DelayOptions delay;
  const std::int64_t from_ns = ns_of_ms(options.from());
  delay.jitter_ns = (ns_of_ms(options.to()) - from_ns) / 2;
  delay.delay_ns = from_ns + delay.jitter_ns;
  return delay;
}

Result<DelayOptions> recorded(DelayShape shape, const std::string& path) {
  Result<std::vector<std::int64_t>> values = scenario::read_times_ns(path, kDelays);
  if (!values.ok()) return values.status();
  DelayOptions delay;
  delay.shape = shape;
  delay.values_ns = *std::move(values);
  return delay;
}

Result<DelayOptions> delay_of_kind(const scenario::Delay& delay) {
  switch (delay.kind_case()) {
    case scenario::Delay::kFixed: {
      DelayOptions fixed;
      fixed.delay_ns = ns_of_ms(delay.fixed());
      return fixed;
    }
    case scenario::Delay::kUniform:
      return uniform(delay.uniform());
    case scenario::Delay::kNormal:
      return shaped(DelayShape::normal, delay.normal());
    case scenario::Delay::kPareto:
      return shaped(DelayShape::pareto, delay.pareto());
    case scenario::Delay::kParetoNormal:
      return shaped(DelayShape::paretonormal, delay.pareto_normal());
    case scenario::Delay::kTable:
      return recorded(DelayShape::table, delay.table());
    case scenario::Delay::kTrace:
      return recorded(DelayShape::trace, delay.trace());
    case scenario::Delay::KIND_NOT_SET:
      break;
  }
  return DelayOptions{};
}

WindowLoss windows(const scenario::Loss& loss) {
  WindowLoss all;
  for (const scenario::Loss::Window& window : loss.window()) {
    all.windows.push_back({ns_of_ms(window.from_ms()), ns_of_ms(window.to_ms())});
  }
  return all;
}

void add_chains(const scenario::Loss& loss, std::vector<LossOptions>& options) {
  if (loss.has_random()) {
    options.push_back(RandomLoss{loss.random().p(), loss.random().correlation()});
  }
  if (loss.has_gilbert_elliott()) {
    const scenario::Loss::GilbertElliott& chain = loss.gilbert_elliott();
    options.push_back(
        GilbertElliott{chain.p(), chain.r(), chain.one_minus_h(), chain.one_minus_k()});
  }
  if (loss.has_four_state()) {
    const scenario::Loss::FourState& chain = loss.four_state();
    options.push_back(FourState{chain.p13(), chain.p31(), chain.p32(), chain.p23(), chain.p14()});
  }
  if (loss.has_bursts()) options.push_back(BurstLoss{loss.bursts().p(), loss.bursts().burst()});
}

}  // namespace

Result<DelayOptions> delay_options(const scenario::Delay& delay) {
  Result<DelayOptions> options = delay_of_kind(delay);
  if (options.ok()) options->keep_order = delay.keep_order();
  return options;
}

Result<std::vector<LossOptions>> loss_options(const scenario::Loss& loss) {
  std::vector<LossOptions> options;
  add_chains(loss, options);
  if (loss.has_every()) options.push_back(EveryLoss{loss.every().n()});
  if (loss.has_list()) {
    options.push_back(ListLoss{{loss.list().index().begin(), loss.list().index().end()}});
  }
  if (loss.window_size() > 0) options.push_back(windows(loss));
  if (loss.has_trace()) {
    Result<std::vector<bool>> fates = scenario::read_fates(loss.trace().path());
    if (!fates.ok()) return fates.status();
    options.push_back(TraceLoss{*std::move(fates)});
  }
  if (loss.has_pmtu()) options.push_back(SizeLoss{loss.pmtu().bytes()});
  return options;
}

QueueOptions queue_options(const scenario::Queue& queue) {
  QueueOptions options;
  options.max_bytes = queue.bytes();
  options.max_packets = queue.packets();
  if (queue.has_ecn_at()) options.red_min_bytes = options.red_max_bytes = queue.ecn_at();
  if (queue.has_red()) {
    options.red_min_bytes = queue.red().min_bytes();
    options.red_max_bytes = queue.red().max_bytes();
    options.red_probability = queue.red().p();
  }
  if (queue.has_codel()) {
    options.codel_target_ns = ns_of_ms(queue.codel().target_ms());
    options.codel_interval_ns = ns_of_ms(queue.codel().interval_ms());
  }
  if (queue.has_trim()) {
    options.trim_bytes = queue.trim().bytes();
    options.trim_room_bytes = queue.trim().room();
  }
  return options;
}

Result<std::vector<std::int64_t>> deliveries_ns(const std::string& path) {
  return scenario::read_times_ns(path, kDeliveries);
}

}  // namespace leeway::sim
