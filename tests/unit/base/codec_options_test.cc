// Tests the text form of codecs, and the settings that each of them may have.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "leeway/codec.h"

namespace leeway {
namespace {

TEST(ParseCodec, ReadsWhatItWritesInTheSameOrder) {
  for (const char* text :
       {"native", "fp32:rotate", "fp16:stochastic", "bf16:nearest", "fp8_e4m3:bound=0.5",
        "fp8_e5m2_block:nearest:rotate", "mxfp4:floor", "mxfp4:nearest:even:rotate",
        "mxfp8_e4m3:stochastic:ceil", "nvfp4_te:nearest:bound=1", "luq:draws=4", "int8:clip",
        "sparse:2/4", "sparse:26/256:rotate", "automatic"}) {
    const auto options = parse_codec(text);
    ASSERT_TRUE(options.ok()) << text << ": " << options.status().c_str();
    EXPECT_EQ(to_string(*options), text);
    EXPECT_EQ(parse_codec(to_string(*options)).value(), *options);
  }
}

TEST(ParseCodec, LeavesWhatWasNotNamedAtItsDefault) {
  const CodecOptions options = parse_codec("sparse").value();
  EXPECT_EQ(options, CodecOptions(Codec::sparse));
  EXPECT_EQ(to_string(options), "sparse:2/4");
  EXPECT_EQ(parse_codec("nvfp4").value(), CodecOptions(Codec::nvfp4));
}

struct Refused {
  const char* text;
  const char* because;
};

class ParseCodecRefusal : public ::testing::TestWithParam<Refused> {};

TEST_P(ParseCodecRefusal, SaysWhatIsWrong) {
  const auto options = parse_codec(GetParam().text);
  ASSERT_FALSE(options.ok()) << GetParam().text;
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(options.status().text().find(GetParam().because), std::string_view::npos)
      << options.status().c_str();
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseCodecRefusal,
    ::testing::Values(
        Refused{"", "unknown codec"}, Refused{"nvfp5", "unknown codec \"nvfp5\""},
        Refused{"nvfp4:", "unknown setting \"\""}, Refused{"nvfp4:sideways", "\"sideways\""},
        Refused{"nvfp4:floor", "MX"}, Refused{"native:nearest", "no choice of rounding"},
        Refused{"luq:stochastic", "no choice of rounding"},
        Refused{"mxfp4:stochastic:floor", "biases"}, Refused{"native:rotate", "rotated"},
        Refused{"automatic:rotate", "rotated"}, Refused{"nvfp4:clip", "int8"},
        Refused{"nvfp4:draws=2", "luq"}, Refused{"luq:draws=0", "1 .. 4"},
        Refused{"luq:draws=5", "1 .. 4"}, Refused{"luq:draws=2x", "draws=2x"},
        Refused{"luq:draws=300", "draws=300"}, Refused{"nvfp4:1/2", "\"1/2\""},
        Refused{"sparse:4/4", "group - 1"}, Refused{"sparse:0/4", "group - 1"},
        Refused{"sparse:1/3", "2, 4, 8"}, Refused{"sparse:1/64", "2, 4, 8"},
        Refused{"sparse:1", "\"1\""}, Refused{"nvfp4:bound=-1", "bound"},
        Refused{"nvfp4:bound=inf", "bound"}, Refused{"nvfp4:bound=nan", "bound"},
        Refused{"mxfp4:bound=1", "no packet scale"}, Refused{"fp32:bound=1", "no packet scale"}));

TEST(ValidateCodec, AcceptsEveryCodecWithoutSettings) {
  for (int i = 0; i < kCodecCount; ++i) {
    EXPECT_TRUE(validate(CodecOptions(static_cast<Codec>(i))).ok())
        << to_string(static_cast<Codec>(i));
  }
}

}  // namespace
}  // namespace leeway
