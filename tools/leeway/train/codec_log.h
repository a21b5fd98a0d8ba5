// Counts the gradients of a run by the codec in which they were sent. With Codec::automatic there
// may be several codecs.
#pragma once

#include <cstdint>
#include <vector>

#include "leeway/codec.h"

namespace leeway::tools::train {

struct CodecSteps {
  CodecOptions codec;
  std::uint64_t steps = 0;

  friend bool operator==(const CodecSteps&, const CodecSteps&) = default;
};

class CodecLog {
 public:
  void add(const CodecOptions& codec);

  const std::vector<CodecSteps>& used() const { return used_; }

 private:
  std::vector<CodecSteps> used_;
};

}  // namespace leeway::tools::train
