// The JSON report of `leeway train`.
#include <nlohmann/json.hpp>

#include "train/report_columns.h"
#include "train/train_report.h"

namespace leeway::tools::train {
namespace {

// Adds the noise to `json`. Values are null if nothing was measured; ratios are null if there is no
// noise.
void add_noise(const std::optional<estimate::NoiseEstimate>& noise, nlohmann::json& json) {
  for (const char* name : {"gradient_to_noise", "gradient_to_noise_at_most", "gradient_rms",
                           "quantisation_rms", "loss_rms"})
    json[name] = nullptr;
  if (!noise) return;
  if (const auto ratio = gradient_to_noise(noise)) {
    json["gradient_to_noise"] = *ratio;
    json["gradient_to_noise_at_most"] = noise->ratio_at_most();
  }
  json["gradient_rms"] = rms(noise->gradient_mean_square);
  json["quantisation_rms"] = rms(noise->quantisation_variance);
  json["loss_rms"] = rms(noise->loss_variance);
}

nlohmann::json codec_steps_json(const std::vector<CodecSteps>& codecs) {
  nlohmann::json json = nlohmann::json::object();
  for (const CodecSteps& used : codecs) json[leeway::to_string(used.codec)] = used.steps;
  return json;
}

nlohmann::json or_null(const std::optional<double>& value) {
  return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

void add_compute(const RunResult& run, nlohmann::json& json) {
  json["steps_made"] = run.compute.steps;
  json["micro_batches_planned"] = run.compute.planned;
  json["micro_batches_completed"] = run.compute.completed;
  json["samples"] = run.compute.samples;
  json["samples_per_second"] = run.samples_per_second();
  json["drop_rate"] = run.compute.drop_rate();
  json["exchanges"] = run.compute.exchanges;
  json["exchange_waits"] = run.compute.exchange_waits;
  json["threshold_clamps"] = run.compute.threshold_clamps;
  json["threshold_ms"] = or_null(run.compute.threshold_ms);
  json["speedup_predicted"] = or_null(run.compute.speedup_predicted);
  json["speedup_modelled"] = or_null(run.compute.speedup_modelled);
}

nlohmann::json run_json(const RunResult& run) {
  const DriftSummary drift = drift_of(run);
  nlohmann::json json{{"perplexity", run.perplexity},
                      {"transport", leeway::to_string(run.transport)},
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
                      {"blocks_refreshed", drift.blocks_refreshed},
                      {"codec_steps", codec_steps_json(run.codecs)}};
  add_noise(run.noise, json);
  add_compute(run, json);
  return json;
}

nlohmann::json outcome_json(const SeedOutcome& outcome) {
  nlohmann::json json{
      {"seed", outcome.seed}, {"lossy", run_json(outcome.lossy)}, {"twin", nullptr}};
  json["no_threshold"] = nullptr;
  json["perplexity_change_percent"] = nullptr;
  json["speedup_measured"] = nullptr;
  if (outcome.twin) {
    json["twin"] = run_json(*outcome.twin);
    json["perplexity_change_percent"] =
        change_percent(outcome.lossy.perplexity, outcome.twin->perplexity);
  }
  if (outcome.no_threshold) {
    json["no_threshold"] = run_json(*outcome.no_threshold);
    json["speedup_measured"] = speedup(outcome.lossy, *outcome.no_threshold);
  }
  return json;
}

// Adds the codecs of both halves; null for a half that the mode does not have.
void add_codecs(const Settings& settings, nlohmann::json& json) {
  const CollectiveOptions& reduce = settings.reduce;
  json["codec"] = leeway::to_string(reduce.codec);
  json["error_feedback"] = settings.error_feedback;
  json["parameter_codec"] = nullptr;
  json["spread_codec"] = nullptr;
  if (settings.mode == Mode::replica) {
    json["parameter_codec"] = leeway::to_string(settings.replica.codec);
  } else {
    json["spread_codec"] = leeway::to_string(reduce.spread_codec.value_or(reduce.codec));
  }
}

void add_compute_settings(const ComputeSettings& compute, nlohmann::json& json) {
  json["micro_batches"] = compute.micro_batches;
  json["straggler"] = to_string(compute.straggler);
  json["compute_threshold"] = to_string(compute.threshold);
  json["compensation"] = to_string(compute.compensation);
  json["normalisation"] = to_string(compute.normalisation);
}

// Adds means over the seeds that have a value, or null if none has.
void add_speedups(const TrainReport& report, nlohmann::json& json) {
  const auto add = [&](const char* name, const std::vector<double>& values) {
    json[name] = values.empty() ? nlohmann::json(nullptr) : nlohmann::json(mean(values));
  };
  add("speedup_measured", speedups(report));
  add("speedup_predicted", values_of(report, &ComputeSummary::speedup_predicted));
  add("speedup_modelled", values_of(report, &ComputeSummary::speedup_modelled));
  add("threshold_ms", values_of(report, &ComputeSummary::threshold_ms));
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
  json["perplexity_twin"] =
      mean(values_of(report, Column::twin, [](const RunResult& r) { return r.perplexity; }));
  json["perplexity_change_percent"] = spread.mean;
  json["perplexity_change_percent_deviation"] = spread.standard_deviation;
  json["perplexity_change_percent_min"] = spread.min;
  json["perplexity_change_percent_max"] = spread.max;
}

}  // namespace

std::string to_json(const TrainReport& report) {
  nlohmann::json json = settings_json(report);
  add_codecs(report.settings, json);
  add_compute_settings(report.settings.compute, json);
  const auto average = [&](const char* name, const Field& field) {
    json[name] = mean(values_of(report, Column::lossy, field));
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
  average("samples_per_second", [](const RunResult& r) { return r.samples_per_second(); });
  average("drop_rate", [](const RunResult& r) { return r.compute.drop_rate(); });
  json["age_max_seen"] =
      static_cast<std::uint32_t>(largest(values_of(report, Column::lossy, age_max_seen)));
  add_noise(noise_of(report, Column::lossy), json);
  add_change(report, json);
  add_speedups(report, json);
  json["runs"] = nlohmann::json::array();
  for (const SeedOutcome& outcome : report.outcomes) json["runs"].push_back(outcome_json(outcome));
  return json.dump(2) + "\n";
}

}  // namespace leeway::tools::train
