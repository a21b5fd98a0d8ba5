// Measures of a run, made from its books.
#pragma once

#include <string>
#include <vector>

#include "run/replica_rank.h"
#include "run/round_book.h"
#include "run/run_record.h"
#include "topology/topology.h"

namespace leeway::sim {

// Times, losses, goodput, errors: everything that does not depend on the workload.
std::vector<Measure> call_measures(const RunRecord& record, const RoundBook& book,
                                   std::uint64_t tensor_bytes);

// Appends name.mean, name.p50, ... name.max; appends nothing without values.
void append_percentiles(const std::string& name, std::vector<double> values,
                        std::vector<Measure>& out);

// Statistics of the ages of the blocks that ranks held, over all broadcasts of a run.
std::vector<Measure> age_measures(const std::vector<ReplicaRank>& replicas);

// Returns the records of links that a packet came to.
std::vector<LinkRecord> link_records(const Topology& topology, const Network& network,
                                     std::int64_t simulated_ns);

void append(std::vector<Measure>& measures, std::vector<Measure> more);

}  // namespace leeway::sim
