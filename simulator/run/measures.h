// Computes the measures of a run from its records.
#pragma once

#include <string>
#include <vector>

#include "run/replica_rank.h"
#include "run/round_book.h"
#include "run/run_record.h"
#include "topology/topology.h"

namespace leeway::sim {

// Returns all measures that do not depend on the workload: times, losses, goodput, errors.
std::vector<Measure> call_measures(const RunRecord& record, const RoundBook& book,
                                   std::uint64_t tensor_bytes);

// Appends name.mean, name.p50, ... name.max. Appends nothing if there are no values.
void append_percentiles(const std::string& name, std::vector<double> values,
                        std::vector<Measure>& out);

// Returns statistics of the ages of all ranks' blocks, over all broadcasts of a run.
std::vector<Measure> age_measures(const std::vector<ReplicaRank>& replicas);

// Returns a record for each link to which a packet came.
std::vector<LinkRecord> link_records(const Topology& topology, const Network& network,
                                     std::int64_t simulated_ns);

void append(std::vector<Measure>& measures, std::vector<Measure> more);

}  // namespace leeway::sim
