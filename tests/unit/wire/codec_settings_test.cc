#include "wire/codec_settings.h"

#include <gtest/gtest.h>

#include <string>

namespace leeway::wire {
namespace {

TEST(CodecSettings, AreTheBitsOfTheWireSpecification) {  // WIRE 3.8
  EXPECT_EQ(pack_settings(Codec::native), 0x0220);       // 2 of 4 kept, everything else 0
  CodecOptions luq(Codec::luq);
  luq.draws = 3;
  EXPECT_EQ(pack_settings(luq), 0x0224);
  CodecOptions sparse(Codec::sparse);
  sparse.kept = 255;
  sparse.group = 256;
  sparse.rotate = true;
  EXPECT_EQ(pack_settings(sparse), 0xFF81);
}

TEST(CodecSettings, AreReadAsTheyWereWritten) {
  for (const char* text : {"nvfp4", "nvfp4:rotate", "luq:draws=4", "sparse:1/2", "sparse:31/32",
                           "sparse:7/256:rotate"}) {
    const CodecOptions options = parse_codec(text).value();
    EXPECT_EQ(unpack_settings(options.codec, pack_settings(options)), options) << text;
  }
}

TEST(CodecSettings, LeaveOutWhatOnlyTheEncoderKnows) {
  CodecOptions encoder = parse_codec("nvfp4:nearest:bound=2").value();
  EXPECT_EQ(pack_settings(encoder), pack_settings(Codec::nvfp4));
}

TEST(CodecSettings, OfStrangersCanBePrinted) {
  for (int codec = 0; codec < kCodecCount; ++codec) {
    EXPECT_FALSE(to_string(unpack_settings(static_cast<Codec>(codec), 0xFFFF)).empty());
  }
}

}  // namespace
}  // namespace leeway::wire
