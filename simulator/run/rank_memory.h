// The buffers that a rank's calls read and write.
#pragma once

#include <span>
#include <vector>

#include "collective/operation_spec.h"

namespace leeway::sim {

struct RankMemory {
  std::vector<float> gradient;  // this round's contribution; what data-moving calls send
  std::vector<float> result;
  std::vector<float> residual;        // error feedback; empty: off
  std::vector<float> previous;        // the last round's result, as control variate; empty: off
  std::span<float> parameters;        // the workload's
  std::vector<double> owner_weights;  // of this round's contribution; empty: the same for all
  std::vector<std::size_t> lengths;   // of this round's uneven blocks (UnevenPlan); or empty
  std::vector<std::vector<float>> message_buffers;
  std::vector<collective::OperationSpec> messages;  // of this round
  collective::OperationSpec exchange;               // of all of them, where they are one operation
  collective::BroadcastLedger* ledger = nullptr;    // of a replica's broadcasts
};

}  // namespace leeway::sim
