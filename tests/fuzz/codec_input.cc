#include "codec_input.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace leeway::fuzz {
namespace {

// Makes a change if the settings are valid with it, and ignores it otherwise.
template <typename Change>
void adopt(CodecOptions& options, Change change) {
  CodecOptions changed = options;
  change(changed);
  if (validate(changed).ok()) options = changed;
}

CodecOptions read_options(Input& input) {
  constexpr std::array<std::uint16_t, 6> kGroups = {2, 4, 8, 16, 32, 256};
  CodecOptions options(static_cast<Codec>(input.byte() % static_cast<int>(Codec::automatic)));
  const std::uint8_t rounding = input.byte();
  const std::uint8_t flags = input.byte();
  const std::uint16_t sparsity = input.two_bytes();
  const float bound = std::abs(input.any_float());
  adopt(options, [&](auto& o) { o.rounding = static_cast<Rounding>(rounding % 3); });
  adopt(options, [&](auto& o) { o.scale_rule = static_cast<ScaleRule>(rounding / 3 % 4); });
  adopt(options, [&](auto& o) { o.rotate = (flags & 1) != 0; });
  adopt(options, [&](auto& o) { o.clip = (flags & 2) != 0; });
  adopt(options, [&](auto& o) { o.draws = static_cast<std::uint8_t>(1 + flags / 4 % 4); });
  adopt(options, [&](auto& o) {
    o.group = kGroups[sparsity % kGroups.size()];
    o.kept = static_cast<std::uint16_t>(1 + sparsity / kGroups.size() % (o.group - 1u));
  });
  if ((flags & 16) != 0) adopt(options, [&](auto& o) { o.bound = bound; });
  return options;
}

}  // namespace

std::uint8_t Input::byte() {
  if (left_.empty()) return 0;
  const std::uint8_t value = left_.front();
  left_ = left_.subspan(1);
  return value;
}
std::uint16_t Input::two_bytes() {
  const std::uint8_t low = byte();
  return static_cast<std::uint16_t>(low | byte() << 8);
}
std::uint32_t Input::four_bytes() {
  const std::uint16_t low = two_bytes();
  return low | std::uint32_t{two_bytes()} << 16;
}
float Input::any_float() {
  return std::bit_cast<float>(four_bytes());
}

codec::Format read_format(Input& input) {
  const CodecOptions options = read_options(input);
  const std::uint8_t use = input.byte();
  constexpr std::array kNative = {DataType::f32, DataType::f16, DataType::bf16};
  const DataType type = options.codec == Codec::native ? kNative[use / 2 % 3] : DataType::f32;
  return codec::format_of(options, type, use % 2 == 0 ? codec::Purpose::sum : codec::Purpose::copy);
}

codec::Place read_place(Input& input) {
  codec::Place place;
  place.seed = input.byte();
  place.step = input.byte();
  place.source = input.byte();
  const std::uint32_t packet = input.four_bytes();
  place.first_element = std::uint64_t{packet} << 5;
  return place;
}

const codec::InstructionSet& read_instruction_set(Input& input) {
  static const std::vector<codec::InstructionSet> sets = codec::instruction_sets();
  return sets[input.byte() % sets.size()];
}

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool same(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return same(x, y); });
}

}  // namespace leeway::fuzz
