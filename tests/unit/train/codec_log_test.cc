#include "train/codec_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::tools::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CodecLog, CountsStepsInTheOrderOfFirstUse) {
  CodecLog log;
  EXPECT_THAT(log.used(), IsEmpty());
  for (const Codec codec : {Codec::nvfp4, Codec::bf16, Codec::nvfp4, Codec::nvfp4}) log.add(codec);
  EXPECT_THAT(log.used(), ElementsAre(CodecSteps{Codec::nvfp4, 3}, CodecSteps{Codec::bf16, 1}));
}

TEST(CodecLog, TellsSettingsOfOneCodecApart) {
  CodecLog log;
  log.add(*parse_codec("luq"));
  log.add(*parse_codec("luq:draws=2"));
  EXPECT_EQ(log.used().size(), 2u);
}

}  // namespace
}  // namespace leeway::tools::train
