#include "device/signal.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/device/double.h"

namespace leeway::device {
namespace {

TEST(SignalWords, NewerValuesSatisfyOlderWaits) {
  Words words;
  const Signal before(&words, 0, 0xffffffff);
  const Signal after(&words, 0, 1);  // the counter has wrapped around
  words.ready = words.released = 0xffffffff;
  EXPECT_TRUE(before.settled());
  EXPECT_FALSE(after.ready());
  words.ready = words.released = 1;
  EXPECT_TRUE(before.settled());
  EXPECT_TRUE(after.settled());
}

TEST(SignalWords, DoneIsOfTheHost) {
  Words words;
  const Signal signal(&words, 0, 1);
  EXPECT_FALSE(signal.done());
  signal.finish();
  EXPECT_TRUE(signal.done());
  EXPECT_FALSE(signal.settled());
}

TEST(SignalWords, DroppedStepLetsAllGoOnAndSaysSo) {
  Words words;
  const Signal signal(&words, 0, 4);
  signal.tell(&Words::begun);
  EXPECT_EQ(words.begun, signal.value());
  signal.drop();
  for (const Word word : {&Words::begun, &Words::landed, &Words::done}) {
    EXPECT_TRUE(signal.is(word));
    EXPECT_NE(words.*word, signal.value()) << "kernels would take it for work to do";
  }
  const Signal next(&words, 0, signal.value() + Signal::kStride);
  EXPECT_FALSE(next.done());
}

TEST(SignalWords, StreamsSeeEachWordInItsPlace) {
  Words words;
  constexpr cuda::Address kLine = 640;
  const Signal signal(&words, kLine, 1);
  EXPECT_EQ(signal.address(&Words::ready), kLine + offsetof(Words, ready));
  EXPECT_EQ(signal.address(&Words::reduced), kLine + offsetof(Words, reduced));
}

TEST(SignalsTake, LineIsUsedAgainOnceItIsSettled) {
  const Driver& driver = the_driver();
  const ContextScope scope(driver, context_of(driver, 0)->context);
  Signals signals(driver);
  std::vector<Signal> open;
  std::set<Words*> lines;
  for (int i = 0; i < 200; ++i) {
    open.push_back(signals.take().value());
    EXPECT_TRUE(lines.insert(open.back().words()).second);
  }
  Words& free = *open[7].words();
  free.ready = free.released = open[7].value();
  for (int i = 0; i < 200; ++i) {
    const Signal next = signals.take().value();
    if (next.words() != &free) continue;
    EXPECT_EQ(next.value(), open[7].value() + Signal::kStride);
    EXPECT_FALSE(next.ready());
    return;
  }
  FAIL() << "the line that was settled is not used";
}

}  // namespace
}  // namespace leeway::device
