// Results that can be compared with the truth bit for bit. The mean error says more about the
// others.
#pragma once

#include "leeway/codec.h"
#include "perf/settings.h"

namespace leeway::tools::perf {

// Returns true if the integers of a Pattern, small enough for the codec, come through it as they
// are. Blocks that share a scale, stochastic rounding and rotations may change them.
bool keeps_integers(const CodecOptions& codec);

// Facts about all ranks and all calls that were checked.
struct Arrival {
  bool has_faults = false;  // injected into the transport
  bool is_complete = true;  // no packet was missing after repair
};

// An inexact result that was asked for, and may have been given, is not wrong.
bool is_checked(const Settings& settings, const Arrival& arrival);

}  // namespace leeway::tools::perf
