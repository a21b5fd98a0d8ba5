// What a caller asked for, as the protocol and the codecs see it.
#pragma once

#include "base/time.h"
#include "codec/codec.h"
#include "collective/operation_spec.h"
#include "protocol/round.h"

namespace leeway::collective {

class Spread;
struct ReductionPlan;

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

// Whether owners ask again for a contribution of which they got nothing. Its sender keeps the
// payload: an all_reduce until the result has come, other operations in a copy or until owners
// confirm. That is worth it for flows that chance may lose as a whole.
bool fetches_empty(const OperationSpec& spec, const ReductionPlan& reduction);
// Whether the reduce half keeps a copy of the input. An all_reduce needs none: its caller waits for
// the result anyway, which confirms the contributions.
bool copies_input(const OperationSpec& spec, bool fetches_empty);

// The operation as one round of the protocol. Its reduce half is `reduction`, null where it has
// none; its data half goes through `spread`; deadlines count from `submitted`.
protocol::RoundPlan plan_round(const OperationSpec& spec, const ReductionPlan* reduction,
                               const Spread& spread, Instant submitted);

}  // namespace leeway::collective
