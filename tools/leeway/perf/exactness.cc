#include "perf/exactness.h"

namespace leeway::tools::perf {

bool keeps_integers(const CodecOptions& codec) {
  if (codec.rotate) return false;
  switch (codec.codec) {
    case Codec::native:
    case Codec::fp32:
      return true;
    case Codec::fp16:
    case Codec::bf16:
      return codec.rounding != Rounding::stochastic;
    default:
      return false;
  }
}

bool is_checked(const Settings& settings, const Arrival& arrival) {
  if (settings.checks == 0) return false;
  if (!keeps_integers(settings.collective.codec)) return false;
  if (!keeps_integers(settings.spread_codec())) return false;
  return !settings.lossy() || (!arrival.has_faults && arrival.is_complete);
}

}  // namespace leeway::tools::perf
