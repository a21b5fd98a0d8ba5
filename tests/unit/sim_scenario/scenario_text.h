// Helpers that parse a scenario, or return its error text, in one line.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "scenario/parse.h"

namespace leeway::sim::scenario {

// Returns the error of a scenario that must be refused.
inline std::string error_of(const std::string& text) {
  const Result<Scenario> parsed = parse_text(text, "a.txtpb");
  if (parsed.ok()) return "accepted";
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  return std::string(parsed.status().text());
}

// Parses a scenario that must be accepted. Returns a default one if it is not.
inline Scenario parsed(const std::string& text) {
  const Result<Scenario> scenario = parse_text(text, "a.txtpb");
  if (scenario.ok()) return *scenario;
  ADD_FAILURE() << scenario.status().text();
  return {};
}

}  // namespace leeway::sim::scenario
