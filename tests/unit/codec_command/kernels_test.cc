// The scalar reference code that the benchmark times must give what the library gives.
#include "codec/kernels.h"

#include <gtest/gtest.h>

#include "codec/error_meter.h"
#include "codec/standard_data.h"

namespace leeway::tools::codecs {
namespace {

codec::Format format_of(const char* text, Rounding rounding) {
  return *format_with(parse_codec(text).value(), rounding);
}

TEST(DefiningKernels, AgreeWithTheLibrary) {
  const auto values = normal_values(300, 1);
  const Kernels library = library_kernels();
  for (const char* text : {"nvfp4", "fp8_e4m3", "luq", "fp16", "bf16"}) {
    const auto format =
        format_of(text, text == std::string("luq") ? Rounding::stochastic : Rounding::nearest);
    const auto definition = defining_kernels(format);
    ASSERT_TRUE(definition.has_value()) << text;
    std::vector<std::byte> expected(format.encoded_bytes(values.size()));
    std::vector<std::byte> payload(expected.size());
    library.encode(format, values, {}, expected);
    definition->encode(format, values, {}, payload);
    EXPECT_EQ(payload, expected) << text;

    std::vector<float> expected_values(values.size());
    std::vector<float> decoded(values.size());
    library.decode(format, payload, {}, expected_values);
    definition->decode(format, payload, {}, decoded);
    EXPECT_EQ(decoded, expected_values) << text;
    library.accumulate(format, payload, 0.75f, expected_values);
    definition->accumulate(format, payload, 0.75f, decoded);
    EXPECT_EQ(decoded, expected_values) << text;
  }
}

TEST(DefiningKernels, AreNoneWhereTheLibraryHasTheOnlyOnes) {
  EXPECT_FALSE(defining_kernels(format_of("sparse:2/4", Rounding::stochastic)).has_value());
  EXPECT_FALSE(defining_kernels(format_of("nvfp4:rotate", Rounding::nearest)).has_value());
  EXPECT_FALSE(defining_kernels(format_of("bf16", Rounding::stochastic)).has_value());
}

}  // namespace
}  // namespace leeway::tools::codecs
