// The buffers that a rank's calls read and write.
#pragma once

#include <span>
#include <vector>

#include "collective/operation_spec.h"

namespace leeway::sim {

struct RankMemory {
  // This round's contribution, or the data to send if the call only moves data.
  std::vector<float> gradient;
  std::vector<float> result;
  std::vector<float> residual;  // error feedback, if it is on
  std::vector<float> previous;  // the last round's result, if it serves as control variate
  std::span<float> parameters;  // the workload's
  // weights of this round's contribution, if they differ by owner
  std::vector<double> owner_weights;
  std::vector<std::size_t> lengths;  // lengths of this round's uneven blocks (UnevenPlan); or empty
  std::vector<std::vector<float>> message_buffers;
  std::vector<collective::OperationSpec> messages;  // messages of this round
  collective::OperationSpec exchange;  // the operation of all messages, if they are one exchange
  collective::BroadcastLedger* ledger = nullptr;  // ledger of a replica's broadcasts
};

}  // namespace leeway::sim
