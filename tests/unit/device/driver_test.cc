#include "device/driver.h"

#include <gtest/gtest.h>

#include <thread>

#include "unit/device/double.h"

namespace leeway::device {
namespace {

TEST(DriverOpen, SaysWhatIsMissing) {
  const auto none = Driver::open("libno_such_driver.so.1");
  EXPECT_EQ(none.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(none.status().text().find("libno_such_driver"), std::string_view::npos);
  EXPECT_NE(none.status().text().find("host memory"), std::string_view::npos);
  const auto old = Driver::open("libc.so.6");  // a library with none of the functions
  EXPECT_NE(old.status().text().find("CUDA 12.0"), std::string_view::npos);
}

TEST(DriverOpen, FindsAllFunctions) {
  EXPECT_GE(the_driver().devices(), 1);
  EXPECT_GE(the_driver().version(), 12000);
}

TEST(DriverKindOf, TellsMemoryApart) {
  const Driver& driver = the_driver();
  int on_stack = 0;
  EXPECT_FALSE(driver.kind_of(&on_stack).on_streams());
  EXPECT_FALSE(driver.kind_of(nullptr).on_streams());
  const auto context = context_of(driver, 1);
  ASSERT_TRUE(context.ok());
  const ContextScope scope(driver, context->context);
  cuda::Address memory = 0;
  ASSERT_EQ(driver.call.cuMemAlloc(&memory, 100), cuda::kSuccess);
  const PointerKind kind = driver.kind_of(reinterpret_cast<void*>(memory + 99));
  EXPECT_EQ(kind.where, PointerKind::Where::device);
  EXPECT_EQ(kind.ordinal, 1);
  ASSERT_EQ(driver.call.cuMemFree(memory), cuda::kSuccess);
  void* pinned = nullptr;
  ASSERT_EQ(driver.call.cuMemHostAlloc(&pinned, 100, 0), cuda::kSuccess);
  EXPECT_EQ(driver.kind_of(pinned).where, PointerKind::Where::pinned);
}

TEST(DriverContexts, AreThoseOfTheThreadOrPrimaryOnes) {
  const Driver& driver = the_driver();
  std::thread([&] {
    EXPECT_EQ(current_device(driver), 0);
    const auto second = context_of(driver, 2);
    ASSERT_TRUE(second.ok());
    const ContextScope scope(driver, second->context);
    EXPECT_EQ(current_device(driver), 2);
    EXPECT_EQ(context_of(driver, -1)->ordinal, 2);
    EXPECT_EQ(context_of(driver, 0)->ordinal, 0);
  }).join();
  EXPECT_EQ(context_of(driver, 999).status().code(), StatusCode::kUnavailable);
}

// The other tests prove little unless access to the double's memory faults, as with a device's
// memory.
TEST(DriverDouble, ProcessorFaultsOnDeviceMemory) {
  const Driver& driver = the_driver();
  const auto context = context_of(driver, 0);
  const ContextScope scope(driver, context->context);
  cuda::Address memory = 0;
  ASSERT_EQ(driver.call.cuMemAlloc(&memory, 8), cuda::kSuccess);
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(memory) = 1, "");
}

TEST(DriverDouble, ForbiddenThreadEndsTheProgram) {
  EXPECT_DEATH(
      {
        of_double<void (*)()>("cuda_double_forbid_calls")();
        int count = 0;
        (void)the_driver().call.cuDeviceGetCount(&count);
      },
      "cuDeviceGetCount is called by a thread");
}

}  // namespace
}  // namespace leeway::device
