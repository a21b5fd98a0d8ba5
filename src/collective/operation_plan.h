// What a caller asked for, as the protocol and the codecs see it.
#pragma once

#include "base/time.h"
#include "codec/codec.h"
#include "collective/operation_spec.h"
#include "protocol/round.h"

namespace leeway::collective {

class Spread;

// Element type of the tensors.
DataType dtype_of(const OperationSpec& spec);
// Of what is spread, or moved as it is.
CodecOptions spread_codec_of(const OperationSpec& spec);
// Sums of many contributions are worth unbiased rounding; what is only copied is not.
codec::Purpose purpose_of(const OperationSpec& spec);
// Whether one block goes to all its receivers.
bool same_block(OperationKind kind);
// Whether its tensors are copied, so that the caller may go on before receivers have confirmed.
bool is_small(const OperationSpec& spec);

// The operation as one round of the protocol. Its data half, where it has one, goes through
// `spread`; deadlines count from `submitted`.
protocol::RoundPlan plan_round(const OperationSpec& spec, const Spread& spread, Instant submitted);

}  // namespace leeway::collective
