#include "codec/scaled.h"

#include "codec/scaled_layout.h"

namespace leeway::codec {

bool is_scaled(Codec codec) { return scaled_layout(codec).element.code_bits != 0; }

void encode_scaled(const Format& format, std::span<const float> in, const Place& place, std::byte* out) {
  scalar::encode_scaled(format, in, place, out);
}
void accumulate_scaled(const Format& format, const std::byte* in, float scale, std::span<float> sum) {
  scalar::accumulate_scaled(format, in, scale, sum);
}
void assign_scaled(const Format& format, const std::byte* in, float scale, std::span<float> out) {
  scalar::assign_scaled(format, in, scale, out);
}

}  // namespace leeway::codec
