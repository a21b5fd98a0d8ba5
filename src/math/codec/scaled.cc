// Lists the codecs of the block-scaled family. Encoding and decoding are in scaled_encode.cc and
// scaled_decode.cc.
#include "codec/scaled.h"

#include "codec/scaled_layout.h"

namespace leeway::codec {

bool is_scaled(Codec codec) {
  return scaled_layout(codec).element.code_bits != 0;
}

}  // namespace leeway::codec
