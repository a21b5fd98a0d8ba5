#include "perf/json.h"

#include <nlohmann/json.hpp>

namespace leeway::tools::perf {
namespace {

using nlohmann::ordered_json;

ordered_json nullable(const std::optional<double>& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json spread_codec_of(const Settings& settings) {
  if (settings.operation != Operation::all_reduce) return {};
  return to_string(settings.spread_codec());
}

ordered_json row_to_json(const Row& row, const Settings& settings, const FaultOptions& faults,
                         int ranks) {
  const Side& side = row.out_of_place;
  const double algbw = static_cast<double>(row.bytes) / side.p50_us / 1e3;
  ordered_json object = {
      {"op", to_string(settings.operation)},
      {"ranks", ranks},
      {"transport", row.transport},
      {"bytes", row.bytes},
      {"dtype", row.type},
      {"codec", to_string(settings.collective.codec)},
      {"spread_codec", spread_codec_of(settings)},
      {"codec_used", row.codec_used},
      {"delivery", to_string(settings.collective.delivery.kind)},
      {"spread", to_string(settings.collective.spread)},
      {"estimator", to_string(settings.collective.estimator)},
      {"loss_injected", faults.loss},
      {"burst", faults.burst},
      {"seed", faults.seed},
      {"loss_observed", row.loss},
      {"loss_residual", row.loss_residual},
      {"late", row.late},
      {"time_us_p50", side.p50_us},
      {"time_us_p99", side.p99_us},
      {"time_us_mean", side.time_us},
      {"algbw_GBps", algbw},
      {"busbw_GBps", algbw * bus_factor(settings.operation, ranks)},
      {"wrong", nullable(side.wrong)},
      {"nmse", side.nmse},
      {"gradient_to_noise", nullable(row.gradient_to_noise)},
  };
  if (row.in_place) {
    object["in_place"] = {{"time_us_p50", row.in_place->p50_us},
                          {"time_us_p99", row.in_place->p99_us},
                          {"wrong", nullable(row.in_place->wrong)},
                          {"nmse", row.in_place->nmse}};
  }
  if (row.spending) {
    const Spending& spending = *row.spending;
    object["back_to_back"] = settings.back_to_back;
    object["datagrams"] = {{"data", spending.data},
                           {"repair", spending.repair},
                           {"report", spending.report},
                           {"control", spending.control}};
    object["bytes_sent"] = spending.bytes;
    object["processor_us"] = spending.processor_us;
  }
  return object;
}

ordered_json cost_to_json(const CommunicatorCost& cost) {
  return {{"count", cost.communicators},
          {"split_s", cost.split_s},
          {"threads", cost.process.threads},
          {"sockets", cost.process.sockets},
          {"memory_bytes", cost.process.memory_bytes}};
}

}  // namespace

std::string to_json(std::span<const Row> rows, const Settings& settings, const FaultOptions& faults,
                    int ranks, const std::optional<CommunicatorCost>& cost) {
  ordered_json array = ordered_json::array();
  for (const Row& row : rows) {
    array.push_back(row_to_json(row, settings, faults, ranks));
    if (cost) array.back()["communicators"] = cost_to_json(*cost);
  }
  return array.dump(2) + "\n";
}

}  // namespace leeway::tools::perf
