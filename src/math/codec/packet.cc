// The public functions on payloads of single packets. They check their arguments.
#include "codec/codec.h"
#include "leeway/codec.h"

namespace leeway {
namespace {

// Returns OK if there can be a packet of this many elements, otherwise the reason why not.
Status check(const CodecOptions& options, DataType dtype, std::size_t elements) {
  if (const Status status = validate(options); !status.ok()) return status;
  if (options.codec == Codec::automatic) {
    return Status::error(StatusCode::kInvalidArgument,
                         "codec automatic: it is no format; choose one for a packet");
  }
  if (!codec::is_encodable(dtype)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "a packet of %s cannot be encoded; float, half and bfloat16 can",
                         to_string(dtype).data());
  }
  if (elements > kPacketElementsMax) {
    return Status::error(StatusCode::kInvalidArgument, "a packet has at most %zu elements, not %zu",
                         kPacketElementsMax, elements);
  }
  return Status();
}

Status check(const CodecOptions& options, DataType dtype, std::size_t elements,
             const PacketPlace& place, std::size_t bytes) {
  const auto expected = encoded_bytes(options, dtype, elements);
  if (!expected.ok()) return expected.status();
  if (bytes != *expected) {
    return Status::error(StatusCode::kInvalidArgument,
                         "%zu elements encode to %zu bytes, not %zu (encoded_bytes())", elements,
                         *expected, bytes);
  }
  if (place.first_element % codec::kPacketElementsMultiple != 0) {
    return Status::error(
        StatusCode::kInvalidArgument, "a packet begins at a multiple of %zu elements, not at %llu",
        codec::kPacketElementsMultiple, static_cast<unsigned long long>(place.first_element));
  }
  return Status();
}

codec::Place place_of(const PacketPlace& place) {
  return {.seed = place.seed,
          .step = place.step,
          .source = place.source,
          .first_element = place.first_element};
}

}  // namespace

inline namespace v0 {

Result<std::size_t> encoded_bytes(const CodecOptions& options, DataType dtype,
                                  std::size_t elements) {
  if (const Status status = check(options, dtype, elements); !status.ok()) return status;
  return codec::format_of(options, dtype, codec::Purpose::sum).encoded_bytes(elements);
}

Status encode_packet(const CodecOptions& options, ConstTensorView elements,
                     const PacketPlace& place, MutableByteSpan bytes) {
  const Status status = check(options, elements.dtype, elements.count, place, bytes.size());
  if (!status.ok()) return status;
  const auto* const data = static_cast<const std::byte*>(elements.data);
  codec::encode_elements(codec::format_of(options, elements.dtype, codec::Purpose::sum),
                         {data, elements.bytes()}, place_of(place), bytes);
  return Status();
}

Status decode_packet(const CodecOptions& options, ByteSpan bytes, const PacketPlace& place,
                     TensorView elements) {
  const Status status = check(options, elements.dtype, elements.count, place, bytes.size());
  if (!status.ok()) return status;
  auto* const data = static_cast<std::byte*>(elements.data);
  codec::decode_elements(codec::format_of(options, elements.dtype, codec::Purpose::sum), bytes,
                         place_of(place), {data, elements.bytes()});
  return Status();
}

}  // namespace v0
}  // namespace leeway
