#include "base/thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>

namespace leeway {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void until_stopped(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, stop, [] { return false; });
}

// Returns the exit status of a child that runs `live` and calls exit(3), or 128 plus the number of
// the signal that killed it.
int status_of_child(void (*live)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    live();
    std::exit(3);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(Thread, RunsItsWorkAndIsJoined) {
  std::atomic<bool> ran{false};
  auto thread = Thread::start("test", [&](const std::stop_token&) { ran = true; });
  ASSERT_TRUE(thread.ok()) << thread.status().c_str();
  EXPECT_FALSE(thread->is_this());
  thread->join();
  EXPECT_TRUE(ran);
  EXPECT_FALSE(thread->joinable());
}

TEST(Thread, IsStoppedAndJoinedWithItsHandle) {
  std::atomic<bool> ended{false};
  {
    const auto thread = Thread::start("test", [&](const std::stop_token& stop) {
      until_stopped(stop);
      ended = true;
    });
    ASSERT_TRUE(thread.ok());
  }
  EXPECT_TRUE(ended);
}

TEST(Thread, MayBeLetGoOfByItself) {
  std::atomic<bool> let_go{false};
  std::atomic<bool> held{false};
  auto* const handle = new Thread;
  auto thread = Thread::start("test", [&](const std::stop_token&) {
    while (!held) std::this_thread::yield();
    EXPECT_TRUE(handle->is_this());
    delete handle;
    let_go = true;
  });
  ASSERT_TRUE(thread.ok());
  *handle = std::move(*thread);
  held = true;
  while (!let_go) std::this_thread::yield();
}

TEST(Thread, NoneToBeHadNamesTheLimit) {
  limit_threads(1);
  auto first = Thread::start("sing", [](const std::stop_token&) {});
  const auto second = Thread::start("dance", [](const std::stop_token&) {});
  limit_threads(-1);
  EXPECT_TRUE(first.ok());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(second.status().c_str(), AllOf(HasSubstr("to dance"), HasSubstr("RLIMIT_NPROC is")));
}

TEST(RunTogether, RunsAllOfThemAlsoWithoutThreads) {
  for (const int threads : {-1, 0, 1}) {
    std::atomic<int> sum{0};
    limit_threads(threads);
    run_together("test", {[&] { sum += 1; }, [&] { sum += 10; }, [&] { sum += 100; }});
    limit_threads(-1);
    EXPECT_EQ(sum, 111) << threads;
  }
}

TEST(RunBehind, RunsHereWithoutThreads) {
  bool ran = false;
  limit_threads(0);
  run_behind("test", [&] { ran = true; });
  limit_threads(-1);
  EXPECT_TRUE(ran);
}

// exit() runs handlers in reverse order of registration. This one is registered before the
// library's, so this one runs last.
void (*last_words)() = nullptr;
[[maybe_unused]] const int registered = std::atexit([] {
  if (last_words != nullptr) last_words();
});

std::atomic<bool>* stopped_by_exit = nullptr;

TEST(ThreadAtExit, IsStopped) {
  EXPECT_EQ(status_of_child([] {
              stopped_by_exit = new std::atomic<bool>(false);
              last_words = [] {
                if (!*stopped_by_exit) ::_exit(4);
              };
              auto thread = Thread::start("test", [](const std::stop_token& stop) {
                until_stopped(stop);
                *stopped_by_exit = true;
              });
              if (!thread.ok()) ::_exit(5);
              thread->detach();
            }),
            3);
}

TEST(ThreadAtExit, IsWaitedForHalfASecond) {
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(status_of_child([] {
              auto thread = Thread::start("test", [](const std::stop_token&) { ::pause(); });
              if (!thread.ok()) ::_exit(5);
              thread->detach();
            }),
            3);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(ThreadAtExit, MayCallExitItself) {
  EXPECT_EQ(status_of_child([] {
              auto thread = Thread::start("test", [](const std::stop_token&) { std::exit(3); });
              if (!thread.ok()) ::_exit(5);
              thread->detach();
              ::pause();
            }),
            3);
}

TEST(ThreadAtExit, StartsNoMore) {
  EXPECT_EQ(status_of_child([] {
              last_words = [] {
                const auto late = Thread::start("test", [](const std::stop_token&) {});
                if (late.status().code() != StatusCode::kCancelled) ::_exit(4);
              };
              (void)Thread::start("test", [](const std::stop_token&) {});
            }),
            3);
}

TEST(ThreadInAForkedChild, IsNotWaitedFor) {
  static Thread* parents = nullptr;
  auto thread = Thread::start("test", until_stopped);
  ASSERT_TRUE(thread.ok());
  parents = new Thread(std::move(*thread));
  EXPECT_EQ(status_of_child([] {
              delete parents;
              auto own = Thread::start("test", until_stopped);
              if (!own.ok()) ::_exit(5);
            }),
            3);
  delete parents;
}

}  // namespace
}  // namespace leeway
