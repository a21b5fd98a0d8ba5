#include "codec.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace leeway::python {
namespace {

constexpr std::size_t kPacketElementsMax = 16384;  // as reductions send

// Splits a tensor into packets of `packet_elements` elements; the last may be shorter.
class Packets {
 public:
  Packets(CodecOptions options, DataType dtype, std::size_t count, std::size_t packet_elements,
          PacketPlace place)
      : options_(options), dtype_(dtype), count_(count), step_(packet_elements), place_(place) {
    if (step_ == 0 || step_ % 32 != 0 || step_ > kPacketElementsMax) {
      throw Failure(Status::error(StatusCode::kInvalidArgument,
                                  "packet_elements: %zu is no multiple of 32 from 32 to %zu", step_,
                                  kPacketElementsMax));
    }
  }
  std::size_t packets() const { return count_ / step_ + (count_ % step_ != 0); }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (std::size_t at = 0; at < count_; at += step_) sum += bytes_at(at);
    return sum;
  }
  // Calls use(first element, elements, first byte, bytes, place) for each packet.
  template <typename Use>
  void for_each(const Use& use) const {
    std::size_t byte = 0;
    for (std::size_t at = 0; at < count_; at += step_) {
      PacketPlace place = place_;
      place.first_element += at;
      check(use(at, std::min(step_, count_ - at), byte, bytes_at(at), place));
      byte += bytes_at(at);
    }
  }

 private:
  std::size_t bytes_at(std::size_t at) const {
    return value_of(encoded_bytes(options_, dtype_, std::min(step_, count_ - at)));
  }

  CodecOptions options_;
  DataType dtype_;
  std::size_t count_;
  std::size_t step_;
  PacketPlace place_;
};

template <typename Element>
nb::object new_array(std::unique_ptr<Element[]> data, std::size_t count) {
  Element* const elements = data.get();
  const nb::capsule owner(data.release(),
                          [](void* memory) noexcept { delete[] static_cast<Element*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, Element, nb::ndim<1>>(elements, {count}, owner));
}

nb::object encode(nb::handle array, nb::handle codec, std::size_t packet_elements,
                  std::uint64_t seed, std::uint32_t step, Rank rank, std::uint64_t first_element) {
  const Array input = to_array(array, false, "array");
  const CodecOptions options = to_codec(codec, "codec");
  const Packets packets(options, input.dtype, input.count, packet_elements,
                        {seed, step, rank, first_element});
  const std::size_t bytes = packets.bytes();
  auto out = std::make_unique<std::uint8_t[]>(bytes);
  {
    WithoutGil free;
    const std::size_t size = size_of(input.dtype);
    packets.for_each([&](std::size_t at, std::size_t count, std::size_t byte, std::size_t length,
                         const PacketPlace& place) {
      return encode_packet(
          options, {static_cast<const std::byte*>(input.data) + at * size, count, input.dtype},
          place, {reinterpret_cast<std::byte*>(out.get()) + byte, length});
    });
  }
  return new_array(std::move(out), bytes);
}

nb::object decode(nb::handle array, nb::handle codec, std::size_t count,
                  std::size_t packet_elements, std::uint64_t seed, std::uint32_t step, Rank rank,
                  std::uint64_t first_element) {
  const Array input = to_array(array, false, "bytes");
  const CodecOptions options = to_codec(codec, "codec");
  const Packets packets(options, DataType::f32, count, packet_elements,
                        {seed, step, rank, first_element});
  const std::size_t given = input.count * size_of(input.dtype);
  if (packets.packets() > given) {  // each has a byte; to add up 2^60 of them would take for ever
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "bytes: %zu bytes are too few for %zu elements", given, count));
  }
  if (given != packets.bytes()) {
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "bytes: %zu elements were encoded to %zu bytes, not %zu", count,
                                packets.bytes(), given));
  }
  auto out = std::make_unique<float[]>(count);
  {
    WithoutGil free;
    packets.for_each([&](std::size_t at, std::size_t elements, std::size_t byte, std::size_t length,
                         const PacketPlace& place) {
      return decode_packet(options, {static_cast<const std::byte*>(input.data) + byte, length},
                           place, {out.get() + at, elements, DataType::f32});
    });
  }
  return new_array(std::move(out), count);
}

}  // namespace

CodecOptions to_codec(nb::handle value, const char* what) {
  if (!nb::isinstance<nb::str>(value)) {
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "%s: %s; give a text such as \"nvfp4\" or \"mxfp4:rotate\"", what,
                                nb::repr(value).c_str()));
  }
  return value_of(parse_codec(nb::cast<std::string>(value)));
}

void bind_codec(nb::module_& module) {
  nb::list names;
  for (int i = 0; i < kCodecCount; ++i) {
    const std::string_view name = to_string(static_cast<Codec>(i));
    names.append(nb::str(name.data(), name.size()));
  }
  module.attr("CODECS") = nb::tuple(names);
  module.def(
      "encode", &encode, "array"_a, "codec"_a, nb::kw_only(), "packet_elements"_a = 1024,
      "seed"_a = 0, "step"_a = 0, "rank"_a = 0, "first_element"_a = 0,
      "The payload bytes of float32, float16 or bfloat16 elements, as reductions send them:\n"
      "uint8, packet by packet of `packet_elements` (a multiple of 32, at most 16384). The same\n"
      "seed, step, rank and place give the same bytes.");
  module.def("decode", &decode, "bytes"_a, "codec"_a, "count"_a, nb::kw_only(),
             "packet_elements"_a = 1024, "seed"_a = 0, "step"_a = 0, "rank"_a = 0,
             "first_element"_a = 0,
             "What a receiver makes of encode()'s bytes: `count` elements of float32.");
}

}  // namespace leeway::python
