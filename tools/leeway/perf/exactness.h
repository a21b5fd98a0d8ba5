// Decides whether a result can be compared with the truth bit for bit. If not, the mean error tells
// more.
#pragma once

#include "leeway/codec.h"
#include "perf/settings.h"

namespace leeway::tools::perf {

// Returns true if integers of a Pattern that are small enough for the codec are decoded unchanged.
// Blocks that share a scale, stochastic rounding and rotations may change them.
bool keeps_integers(const CodecOptions& codec);

// Facts about all ranks and all calls that were checked.
struct Arrival {
  bool has_faults = false;  // faults are injected into the transport
  bool is_complete = true;  // no packet was missing after repair
};

// Returns false if an inexact result was asked for and may have been given: such a result is not
// wrong.
bool is_checked(const Settings& settings, const Arrival& arrival);

}  // namespace leeway::tools::perf
