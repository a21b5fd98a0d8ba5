// Payload sources and sinks made of C callbacks.
#pragma once

#include <memory>

#include "leeway/c/payload.h"
#include "leeway/payload.h"

namespace leeway::c_abi {

// Both functions copy the callbacks of `given`. They return a null pointer if `given` is null, and
// kInvalidArgument if a callback is missing.
Result<std::shared_ptr<PayloadSource>> source_of(const leeway_payload_source* given);
Result<std::shared_ptr<PayloadSink>> sink_of(const leeway_payload_sink* given);

}  // namespace leeway::c_abi
