#include "train/codec_log.h"

#include <algorithm>

namespace leeway::tools::train {

void CodecLog::add(const CodecOptions& codec) {
  const auto entry = std::find_if(used_.begin(), used_.end(),
                                  [&](const CodecSteps& known) { return known.codec == codec; });
  if (entry != used_.end()) {
    ++entry->steps;
  } else {
    used_.push_back({codec, 1});
  }
}

}  // namespace leeway::tools::train
