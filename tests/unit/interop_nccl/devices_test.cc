#include "interop/nccl/devices.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "interop/nccl/debug.h"

namespace leeway::nccl {
namespace {

class NcclDevices : public testing::Test {
 protected:
  void SetUp() override {
    if (stager() != nullptr) GTEST_SKIP() << "there is a CUDA driver";
    operation_.count = 1;
    operation_.stream = &stream_;
  }
  int stream_ = 0;
  float value_ = 0;
  Operation operation_;
};

TEST_F(NcclDevices, HostMemoryMayHaveAStream) {
  operation_.send = operation_.receive = &value_;
  EXPECT_EQ(find_memory(operation_, "AllReduce"), kSuccess);
  EXPECT_EQ(operation_.memory, Operation::Memory::host);
}

// This page stands for a device's address: the processor cannot read it.
TEST_F(NcclDevices, UnreadableMemoryIsSaidToNeedADriver) {
  void* const page = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  operation_.send = operation_.receive = page;
  EXPECT_EQ(find_memory(operation_, "AllReduce"), kInvalidArgument);
  const std::string text = last_error();
  EXPECT_NE(text.find("AllReduce"), std::string::npos) << text;
  EXPECT_NE(text.find("no CUDA driver"), std::string::npos) << text;
  EXPECT_NE(text.find("Install the driver"), std::string::npos) << text;
  operation_.count = 0;
  EXPECT_EQ(find_memory(operation_, "AllReduce"), kSuccess);
  ::munmap(page, 4096);
}

}  // namespace
}  // namespace leeway::nccl
