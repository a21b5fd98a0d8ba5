// Topologies for tests, made from a scenario's text.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scenario/parse.h"
#include "topology/topology.h"

namespace leeway::sim {

inline Result<Topology> try_topology(const std::string& text) {
  const Result<scenario::Scenario> scenario = scenario::parse_text(text, "test");
  if (!scenario.ok()) return scenario.status();
  return Topology::make(*scenario);
}

// Makes a topology from a text that must be valid.
inline Topology topology_of(const std::string& text) {
  Result<Topology> made = try_topology(text);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *std::move(made);
}

// Returns the names of the links from one rank to another, in order.
inline std::string way(const Topology& topology, std::uint32_t from, std::uint32_t to) {
  std::string names;
  for (std::uint32_t hop = 0; topology.next_link(from, to, hop) != kArrived; ++hop) {
    names += (hop > 0 ? ", " : "") + topology.name(topology.next_link(from, to, hop));
  }
  return names;
}

// Returns the link of that name, which must exist.
inline LinkId link_named(const Topology& topology, const std::string& name) {
  for (LinkId link = 0; link < topology.links(); ++link) {
    if (topology.name(link) == name) return link;
  }
  ADD_FAILURE() << "no link " << name;
  return 0;
}

inline const LinkProperties& properties_of(const Topology& topology, const std::string& name) {
  return topology.properties(link_named(topology, name));
}

}  // namespace leeway::sim
