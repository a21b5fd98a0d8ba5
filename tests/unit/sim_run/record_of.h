// Runs scenarios that are given as one line of text.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "run/run.h"
#include "scenario/parse.h"

namespace leeway::sim {

inline scenario::Scenario scenario_of(const std::string& text) {
  auto scenario = scenario::parse_text(text, "test.txtpb");
  EXPECT_TRUE(scenario.ok()) << scenario.status().text();
  return *scenario;
}

inline RunRecord record_of(const std::string& text, std::uint64_t seed = 1) {
  auto record = run(scenario_of(text), seed);
  EXPECT_TRUE(record.ok()) << record.status().text();
  for (const CheckRecord& check : record->checks) {
    EXPECT_NE(check.verdict, Verdict::failed) << check.id << ": " << check.first_failure;
  }
  return std::move(*record);
}

inline double measure(const RunRecord& record, const std::string& name) {
  for (const Measure& measure : record.measures) {
    if (measure.name == name) return measure.value;
  }
  ADD_FAILURE() << "no measure " << name;
  return 0;
}

}  // namespace leeway::sim
