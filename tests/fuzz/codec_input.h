// How the codec targets read a fuzzer's input. First come a format and a place, chosen by a fixed
// number of bytes so that every input means something. The rest is the target's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/codec.h"
#include "codec/instruction_sets.h"

namespace leeway::fuzz {

// Takes numbers off the front; zeros when nothing is left.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}

  std::uint8_t byte();
  std::uint16_t two_bytes();
  std::uint32_t four_bytes();
  float any_float();
  std::span<const std::uint8_t> rest() const { return left_; }

 private:
  std::span<const std::uint8_t> left_;
};

// Any format that validate() accepts, for any type it exists for.
codec::Format read_format(Input& input);

// Anywhere in a tensor of up to 2^37 elements.
codec::Place read_place(Input& input);

// One of the instruction sets of this processor.
const codec::InstructionSet& read_instruction_set(Input& input);

// Returns true if the floats have equal bits, or are both NaN, whose payload may differ.
bool same(float a, float b);
bool same(std::span<const float> a, std::span<const float> b);

}  // namespace leeway::fuzz
