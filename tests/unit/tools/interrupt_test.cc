#include "interrupt.h"

#include <gtest/gtest.h>

#include <csignal>

namespace leeway::tools {
namespace {

TEST(InterruptGuard, EverySignalThatAsksForTheEndSetsTheFlag) {
  for (const int signal : kInterrupts) {
    std::signal(signal, SIG_DFL);
    InterruptGuard guard;
    EXPECT_FALSE(guard.flag());
    std::raise(signal);
    EXPECT_TRUE(guard.flag());
    EXPECT_EQ(guard.exit_code(), 128 + signal);
  }
}

TEST(InterruptGuard, WhatIsIgnoredStaysIgnored) {
  for (const int signal : kInterrupts) {
    std::signal(signal, SIG_IGN);
    {
      InterruptGuard guard;
      std::raise(signal);
      EXPECT_FALSE(guard.flag());
    }
    EXPECT_TRUE(is_ignored(signal));
    std::signal(signal, SIG_DFL);
  }
}

}  // namespace
}  // namespace leeway::tools
