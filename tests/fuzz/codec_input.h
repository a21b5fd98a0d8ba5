// How the codec targets read a fuzzer's input. An input has a format and a place at its front. Both
// take a fixed number of bytes, and every value of these bytes is valid. The bytes behind them mean
// what each target says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "codec/codec.h"
#include "codec/instruction_sets.h"

namespace leeway::fuzz {

// Takes numbers from the front of the input. After the input's end, numbers are zero.
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

// Reads any format that validate() accepts, for any element type that it supports.
codec::Format read_format(Input& input);

// Reads a place in a tensor of up to 2^37 elements.
codec::Place read_place(Input& input);

const codec::InstructionSet& read_instruction_set(Input& input);

// Returns true if the floats have equal bits, or are both NaN, with any payload.
bool same(float a, float b);
bool same(std::span<const float> a, std::span<const float> b);

}  // namespace leeway::fuzz
