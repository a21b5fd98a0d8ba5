// Records in which codecs the gradients of a run travelled: one codec, or those that
// Codec::automatic chose.
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
  // One reduction.
  void add(const CodecOptions& codec);

  // The codecs in the order of their first use.
  const std::vector<CodecSteps>& used() const { return used_; }

 private:
  std::vector<CodecSteps> used_;
};

}  // namespace leeway::tools::train
