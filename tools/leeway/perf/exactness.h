// Decides whether a result must equal the true one bit for bit. Otherwise only its mean error is
// reported.
#pragma once

#include "leeway/codec.h"
#include "perf/settings.h"

namespace leeway::tools::perf {

// Returns true if decoding restores the integers of a Pattern exactly. Codecs with scales shared by
// a block, stochastic rounding or rotations may change them.
bool keeps_integers(const CodecOptions& codec);

// The fate of the packets of all checked calls on all ranks.
struct Arrival {
  bool has_faults = false;  // faults are injected into the transport
  bool is_complete = true;  // no packet was missing after repair
};

// Returns true if results must be exact. Returns false if the settings permit inexact results and
// some results may be inexact, because that is no error then.
bool is_checked(const Settings& settings, const Arrival& arrival);

}  // namespace leeway::tools::perf
