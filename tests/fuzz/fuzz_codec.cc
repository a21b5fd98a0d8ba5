// Decoding must handle all bytes. Any bytes of a packet's length decode, in every format and on
// every instruction set, to the values that the definition gives.
//
// Input: instruction set, format, place, a scale, the number of elements, a value to which each
// decoded one is added, then the payload.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/contracts.h"
#include "codec/codec.h"
#include "codec/scaled.h"
#include "codec/scaled_layout.h"
#include "codec_input.h"

using namespace leeway;
using leeway::fuzz::same;

namespace {

constexpr std::size_t kElementsUsual = 1024;

struct Packet {
  codec::Format format;
  codec::Place place;
  float scale = 1.0f;
  std::vector<float> before;  // values to which the packet's are added
  // On the heap with exactly the packet's size, so that an address sanitizer sees every access
  // beyond it.
  std::vector<std::byte> payload;
};

// Reads a length: mostly short, to test tails and odd blocks, and sometimes the longest.
std::size_t read_elements(fuzz::Input& input) {
  const std::uint16_t number = input.two_bytes();
  const bool is_long = number >= 0xFFF0;
  return is_long ? codec::kPacketElementsMax - (0xFFFF - number) : number % (kElementsUsual + 1);
}

float finite(float value) {
  return value - value == 0.0f ? value : 0.25f;
}

Packet read_packet(fuzz::Input& input) {
  Packet packet{fuzz::read_format(input), fuzz::read_place(input)};
  packet.scale = finite(input.any_float());
  const std::size_t elements = read_elements(input);
  packet.before.assign(elements, finite(input.any_float()));
  // Receivers refuse payloads of a wrong length, so each input is brought to the packet's length.
  const auto payload = input.rest();
  packet.payload.resize(packet.format.encoded_bytes(packet.before.size()));
  if (const std::size_t length = std::min(payload.size(), packet.payload.size()); length > 0) {
    std::memcpy(packet.payload.data(), payload.data(), length);
  }
  return packet;
}

struct Results {
  std::vector<float> decoded;
  std::vector<float> first;  // accumulate_first, restored
  std::vector<float> sum;    // accumulate, in the rotated domain
};

Results decode_all_ways(const Packet& packet) {
  const std::size_t elements = packet.before.size();
  Results results{std::vector<float>(elements), std::vector<float>(elements), packet.before};
  codec::decode(packet.format, packet.payload, packet.place, results.decoded);
  codec::accumulate_first(packet.format, packet.payload, 1.0f, results.first);
  codec::restore(packet.format, packet.place, results.first);
  codec::accumulate(packet.format, packet.payload, packet.scale, results.sum);
  return results;
}

void expect_definition(const Packet& packet, const Results& results) {
  if (!codec::is_scaled(packet.format.options.codec)) return;
  std::vector<float> values(packet.before.size());
  codec::scalar::assign_scaled(packet.format, packet.payload.data(), 1.0f, values);
  codec::restore(packet.format, packet.place, values);
  LEEWAY_ASSERT(same(values, results.decoded));
  values = packet.before;
  codec::scalar::accumulate_scaled(packet.format, packet.payload.data(), packet.scale, values);
  LEEWAY_ASSERT(same(values, results.sum));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  const codec::InstructionSet& set = fuzz::read_instruction_set(input);
  const Packet packet = read_packet(input);
  const Results best = decode_all_ways(packet);
  LEEWAY_ASSERT(same(best.decoded, best.first));
  expect_definition(packet, best);

  const codec::RunOn run_on(set);
  const Results other = decode_all_ways(packet);
  LEEWAY_ASSERT(same(best.decoded, other.decoded));
  LEEWAY_ASSERT(same(best.first, other.first));
  LEEWAY_ASSERT(same(best.sum, other.sum));
  return 0;
}
