// The JSON of `leeway train`.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "train/report_columns.h"
#include "train/train_report.h"

namespace leeway::tools::train {
namespace {

nlohmann::json run_json(const RunResult& run) {
  const DriftSummary drift = drift_of(run);
  return {{"perplexity", run.perplexity},
          {"loss_observed", run.loss_observed},
          {"bytes_sent", run.bytes_sent},
          {"elements_untouched", run.elements_untouched},
          {"deadline_cuts", run.deadline_cuts},
          {"step_ms_p50", run.step_ms_p50},
          {"step_ms_p99", run.step_ms_p99},
          {"seconds", run.seconds},
          {"drift_measured", drift.pair_measured},
          {"drift_predicted", drift.pair_predicted},
          {"drift_predicted_from_gaps", drift.pair_predicted_gap},
          {"drift_owner_measured", drift.owner_measured},
          {"drift_owner_predicted", drift.owner_predicted},
          {"age_mean", drift.age_mean},
          {"age_max_seen", drift.age_max_seen},
          {"age_shares", drift.age_shares},
          {"blocks_refreshed", drift.blocks_refreshed}};
}

nlohmann::json outcome_json(const SeedOutcome& outcome) {
  nlohmann::json json{
      {"seed", outcome.seed}, {"lossy", run_json(outcome.lossy)}, {"twin", nullptr}};
  json["perplexity_change_percent"] = nullptr;
  if (outcome.twin) {
    json["twin"] = run_json(*outcome.twin);
    json["perplexity_change_percent"] =
        change_percent(outcome.lossy.perplexity, outcome.twin->perplexity);
  }
  return json;
}

nlohmann::json settings_json(const TrainReport& report) {
  const Settings& settings = report.settings;
  return {{"ranks", report.ranks},
          {"mode", to_string(settings.mode)},
          {"steps", settings.steps},
          {"seeds", report.outcomes.size()},
          {"seed", settings.seed},
          {"loss_injected", settings.communicator.faults.loss},
          {"burst", settings.communicator.faults.burst},
          {"codec", leeway::to_string(settings.reduce.codec)},
          {"estimator", leeway::to_string(settings.reduce.estimator)},
          {"delivery", leeway::to_string(settings.reduce.delivery.kind)},
          {"corpus", report.corpus},
          {"batch", settings.batch},
          {"context", settings.context},
          {"layers", settings.layers},
          {"width", settings.width},
          {"learning_rate", settings.learning_rate},
          {"age_max", settings.replica.age_max},
          {"datagram_bytes", settings.communicator.datagram_bytes},
          {"parameters", report.outcomes.front().lossy.parameters},
          {"bigram_perplexity", report.bigram_perplexity}};
}

void add_change(const TrainReport& report, nlohmann::json& json) {
  const auto values = changes_percent(report);
  for (const char* name :
       {"perplexity_twin", "perplexity_change_percent", "perplexity_change_percent_deviation",
        "perplexity_change_percent_min", "perplexity_change_percent_max"}) {
    json[name] = nullptr;
  }
  if (values.empty()) return;
  const Spread spread = spread_of(values);
  json["perplexity_twin"] = mean(of_twin(report, [](const RunResult& r) { return r.perplexity; }));
  json["perplexity_change_percent"] = spread.mean;
  json["perplexity_change_percent_deviation"] = spread.standard_deviation;
  json["perplexity_change_percent_min"] = spread.min;
  json["perplexity_change_percent_max"] = spread.max;
}

}  // namespace

std::string to_json(const TrainReport& report) {
  nlohmann::json json = settings_json(report);
  const auto average = [&](const char* name, const Field& field) {
    json[name] = mean(of_lossy(report, field));
  };
  average("perplexity", [](const RunResult& r) { return r.perplexity; });
  average("loss_observed", [](const RunResult& r) { return r.loss_observed; });
  average("drift_measured", [](const RunResult& r) { return drift_of(r).pair_measured; });
  average("drift_predicted", [](const RunResult& r) { return drift_of(r).pair_predicted; });
  average("drift_predicted_from_gaps",
          [](const RunResult& r) { return drift_of(r).pair_predicted_gap; });
  average("bytes_sent", [](const RunResult& r) { return static_cast<double>(r.bytes_sent); });
  average("step_ms_p50", [](const RunResult& r) { return r.step_ms_p50; });
  average("step_ms_p99", [](const RunResult& r) { return r.step_ms_p99; });
  json["age_max_seen"] = static_cast<std::uint32_t>(largest(of_lossy(report, age_max_seen)));
  add_change(report, json);
  json["runs"] = nlohmann::json::array();
  for (const SeedOutcome& outcome : report.outcomes) json["runs"].push_back(outcome_json(outcome));
  return json.dump(2) + "\n";
}

Status write_json(const std::string& path, const std::string& json) {
  std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  const bool written =
      file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
  const bool closed = file == nullptr || file == stdout || std::fclose(file) == 0;
  if (written && closed) return Status();
  return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", path.c_str(),
                       std::strerror(errno));
}

}  // namespace leeway::tools::train
