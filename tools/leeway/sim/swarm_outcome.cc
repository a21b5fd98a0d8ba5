#include "sim/swarm_outcome.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/plain_text.h"
#include "base/read_number.h"
#include "report/number_text.h"

namespace leeway::tools::simulation {
namespace {

constexpr const char* kFormatName = "leeway-sim-swarm";
constexpr int kFormat = 1;

using sim::swarm::SeedFailure;
using sim::swarm::Tally;

// Visits the counts of a tally that are written as plain numbers.
template <typename Visit>
void each_count(Visit&& visit) {
  visit("rounds", &Tally::rounds);
  visit("packets", &Tally::packets);
  visit("events", &Tally::events);
}

std::uint64_t read_hash(const std::string& text) {
  std::uint64_t hash = 0;
  if (!read_number(text, hash, 16)) throw std::out_of_range("the hash is none");
  return hash;
}

SwarmOutcome read_outcome(const nlohmann::json& json) {
  SwarmOutcome outcome;
  Tally& tally = outcome.tally;
  const nlohmann::json& seeds = json.at("seeds");
  seeds.at("from").get_to(outcome.seeds.from);
  seeds.at("count").get_to(outcome.seeds.count);
  seeds.at("judged").get_to(tally.seeds);
  if (json.contains("shard")) {
    const Result<Shard> shard = parse_shard(json.at("shard").get<std::string>());
    if (!shard.ok()) throw std::out_of_range(shard.status().c_str());
    outcome.shard = *shard;
  }
  each_count([&](const char* name, auto field) { json.at(name).get_to(tally.*field); });
  tally.trace_hash = read_hash(json.at("trace_hash").get<std::string>());
  json.at("seconds").get_to(outcome.seconds);
  for (const nlohmann::json& failed : json.at("failures")) {
    tally.failures.push_back({failed.at("seed").get<std::uint64_t>(),
                              {plain(failed.at("check").get<std::string>()),
                               plain(failed.at("text").get<std::string>())}});
  }
  return outcome;
}

Status refuse(const std::string& name, const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument, "%s %s", name.c_str(), why.c_str());
}

}  // namespace

void print_outcome(const SwarmOutcome& outcome) {
  const Tally& tally = outcome.tally;
  const std::string part = outcome.shard.whole() ? "" : to_string(outcome.shard) + ": ";
  std::printf(
      "%s%llu seeds, %llu rounds, %llu packets, %llu events in %.1f s: %zu failed\n", part.c_str(),
      static_cast<unsigned long long>(tally.seeds), static_cast<unsigned long long>(tally.rounds),
      static_cast<unsigned long long>(tally.packets), static_cast<unsigned long long>(tally.events),
      outcome.seconds, tally.failures.size());
  for (const SeedFailure& failed : tally.failures) {
    std::printf("  seed %llu: %s: %s\n", static_cast<unsigned long long>(failed.seed),
                failed.failure.check.c_str(), failed.failure.text.c_str());
  }
}

std::string outcome_json(const SwarmOutcome& outcome) {
  const Tally& tally = outcome.tally;
  nlohmann::ordered_json json = {{"format", kFormatName}, {"version", kFormat}};
  json["seeds"] = {
      {"from", outcome.seeds.from}, {"count", outcome.seeds.count}, {"judged", tally.seeds}};
  if (!outcome.shard.whole()) {
    json["shard"] = std::to_string(outcome.shard.number) + "/" + std::to_string(outcome.shard.of);
  }
  each_count([&](const char* name, auto field) { json[name] = tally.*field; });
  json["trace_hash"] = sim::hash_text(tally.trace_hash);
  json["seconds"] = outcome.seconds;
  json["failures"] = nlohmann::ordered_json::array();
  for (const SeedFailure& failed : tally.failures) {
    json["failures"].push_back(
        {{"seed", failed.seed}, {"check", failed.failure.check}, {"text", failed.failure.text}});
  }
  return json.dump(2) + "\n";
}

Result<SwarmOutcome> parse_outcome(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const bool ours = json.is_object() && json.value("format", nlohmann::json()) == kFormatName &&
                    json.value("version", nlohmann::json()) == kFormat;
  if (!ours) {
    return Status::error(StatusCode::kInvalidArgument,
                         "is no outcome of leeway sim swarm --json, format %d", kFormat);
  }
  try {
    return read_outcome(json);
  } catch (const std::exception& error) {  // includes JSON's own exceptions
    return Status::error(StatusCode::kInvalidArgument, "is damaged: %s", error.what());
  }
}

Result<SwarmOutcome> merge_outcomes(std::span<const SwarmOutcome> parts,
                                    std::span<const std::string> names) {
  const SwarmOutcome& first = parts.front();
  std::vector<bool> present(first.shard.of);
  SwarmOutcome whole{.seeds = first.seeds, .shard = {}, .tally = {}, .seconds = 0};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const SwarmOutcome& part = parts[i];
    const bool same = part.seeds == first.seeds && part.shard.of == first.shard.of;
    if (!same) return refuse(names[i], "is of other seeds or of other shards than " + names[0]);
    if (present[part.shard.number - 1])
      return refuse(names[i], "is " + to_string(part.shard) + ", as a part before it");
    present[part.shard.number - 1] = true;
    whole.tally.add(part.tally);
    whole.seconds += part.seconds;
  }
  for (std::uint32_t i = 0; i < first.shard.of; ++i) {
    if (!present[i]) return refuse(to_string(Shard{i + 1, first.shard.of}), "is in no part");
  }
  return whole;
}

}  // namespace leeway::tools::simulation
