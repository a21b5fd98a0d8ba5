#include "device_codec/image.h"

#ifdef LEEWAY_KERNELS

// Makes the assembler copy the file of kernels into the library.
asm(R"(
  .pushsection .rodata.leeway_kernels, "a"
  .balign 64
leeway_kernels_begin:
  .incbin ")" LEEWAY_KERNELS R"("
leeway_kernels_end:
  .popsection
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte leeway_kernels_begin[];
[[gnu::visibility("hidden")]] extern const std::byte leeway_kernels_end[];
}

namespace leeway::device_codec {

ByteSpan built_image() {
  return {leeway_kernels_begin, leeway_kernels_end};
}

}  // namespace leeway::device_codec

#else

namespace leeway::device_codec {

ByteSpan built_image() {
  return {};
}

}  // namespace leeway::device_codec

#endif
