// The JSON of `leeway train`.
#include <nlohmann/json.hpp>

#include "train/report_columns.h"
#include "train/train_report.h"

namespace leeway::tools::train {
namespace {

// Null where nothing was measured; the ratio also where there is no noise.
void add_noise(const std::optional<aggregate::NoiseEstimate>& noise, nlohmann::json& json) {
  for (const char* name : {"gradient_to_noise", "gradient_rms", "quantisation_rms", "loss_rms"})
    json[name] = nullptr;
  if (!noise) return;
  if (const auto ratio = gradient_to_noise(noise)) json["gradient_to_noise"] = *ratio;
  json["gradient_rms"] = rms(noise->gradient_mean_square);
  json["quantisation_rms"] = rms(noise->quantisation_variance);
  json["loss_rms"] = rms(noise->loss_variance);
}

nlohmann::json codec_steps_json(const std::vector<CodecSteps>& codecs) {
  nlohmann::json json = nlohmann::json::object();
  for (const CodecSteps& used : codecs) json[leeway::to_string(used.codec)] = used.steps;
  return json;
}

nlohmann::json run_json(const RunResult& run) {
  const DriftSummary drift = drift_of(run);
  nlohmann::json json{{"perplexity", run.perplexity},
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
  return json;
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

// Of the half that the mode does not have: null.
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
  json["perplexity_twin"] = mean(of_twin(report, [](const RunResult& r) { return r.perplexity; }));
  json["perplexity_change_percent"] = spread.mean;
  json["perplexity_change_percent_deviation"] = spread.standard_deviation;
  json["perplexity_change_percent_min"] = spread.min;
  json["perplexity_change_percent_max"] = spread.max;
}

}  // namespace

std::string to_json(const TrainReport& report) {
  nlohmann::json json = settings_json(report);
  add_codecs(report.settings, json);
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
  add_noise(noise_of_lossy(report), json);
  add_change(report, json);
  json["runs"] = nlohmann::json::array();
  for (const SeedOutcome& outcome : report.outcomes) json["runs"].push_back(outcome_json(outcome));
  return json.dump(2) + "\n";
}

}  // namespace leeway::tools::train
