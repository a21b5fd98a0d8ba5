// Ranks of one process for tests of the C functions.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "leeway/c.h"

namespace leeway::c_abi::testing {

// The communicators of all ranks, freed at the end of the object.
struct Group {
  explicit Group(int size, const leeway_options* options = nullptr) : ranks(size) {
    EXPECT_EQ(leeway_create_inproc(size, options, ranks.data()), LEEWAY_OK) << leeway_last_error();
  }
  ~Group() {
    for (leeway_communicator* communicator : ranks) leeway_communicator_free(communicator);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  void on_all(const std::function<void(leeway_communicator*)>& body) {
    std::vector<std::thread> threads;
    for (leeway_communicator* communicator : ranks) threads.emplace_back(body, communicator);
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<leeway_communicator*> ranks;
};

inline leeway_const_tensor input_of(const std::vector<float>& values) {
  return {values.data(), values.size(), LEEWAY_F32};
}
inline leeway_tensor output_of(std::vector<float>& values) {
  return {values.data(), values.size(), LEEWAY_F32};
}

}  // namespace leeway::c_abi::testing

// Expects the call to succeed; otherwise the error's text is shown.
#define EXPECT_DONE(call) EXPECT_EQ(call, LEEWAY_OK) << leeway_last_error()
#define ASSERT_DONE(call) ASSERT_EQ(call, LEEWAY_OK) << leeway_last_error()
// Expects the call to fail with a text that contains `part`.
#define EXPECT_FAILS(call, code, part) \
  EXPECT_EQ(call, code);               \
  EXPECT_THAT(leeway_last_error(), ::testing::HasSubstr(part))
