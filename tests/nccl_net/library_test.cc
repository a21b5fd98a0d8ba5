// Tests the plugin as a library: its names and properties, and that it does not change the
// program's state.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <strings.h>

#include <filesystem>

#include "traffic.h"

namespace nccl_net_test {
namespace {

class Version : public testing::TestWithParam<int> {};

TEST_P(Version, TellsTheSameProperties) {
  const Net net = load(GetParam());
  EXPECT_EQ(strcasecmp(net.name.c_str(), "leeway"), 0);  // as NCCL compares NCCL_NET
  int count = 0;
  ASSERT_EQ(net.devices(&count), kSuccess);
  ASSERT_GE(count, 1);
  for (int device = 0; device < count; ++device) {
    leeway_nccl_net_properties_v12 properties{};
    ASSERT_EQ(net.properties(device, &properties), kSuccess);
    EXPECT_GT(std::string(properties.name).size(), 0U);
    EXPECT_EQ(properties.pointer_kinds, 1);  // the host's memory
    EXPECT_GT(properties.speed, 0);
    EXPECT_GT(properties.latency, 0.0F);
    EXPECT_EQ(properties.comms_max, 65'536);
    EXPECT_EQ(properties.receives_max, 1);
    EXPECT_EQ(properties.guid, static_cast<std::uint64_t>(device));
    if (GetParam() < 11) continue;
    EXPECT_EQ(properties.message_bytes_max, std::size_t{1} << 40);
    EXPECT_EQ(properties.parts.count, 1);
    EXPECT_EQ(properties.parts.devices[0], device);
    EXPECT_EQ(properties.multi_request_max, 1);
  }
  leeway_nccl_net_properties_v12 none{};
  EXPECT_EQ(net.properties(count, &none), kInvalidArgument);
  EXPECT_EQ(net.properties(-1, &none), kInvalidArgument);
  EXPECT_EQ(take_warnings().size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Of, Version, testing::Range(kVersionFirst, kVersionLast + 1),
                         [](const auto& version) { return std::to_string(version.param); });

// Functions that the plugin does not support must be null, because NCCL calls all others.
TEST(Library, LacksWhatItCannotDo) {
  void* const library = open_plugin();
  const auto* const net =
      static_cast<const leeway_nccl_net_v12*>(::dlsym(library, "ncclNetPlugin_v12"));
  ASSERT_NE(net, nullptr);
  EXPECT_EQ(net->register_dmabuf, nullptr);
  EXPECT_EQ(net->device_registration, nullptr);
  EXPECT_EQ(net->receive_consumed, nullptr);
  EXPECT_EQ(net->make_virtual, nullptr);
  EXPECT_EQ(net->set_attributes, nullptr);
  EXPECT_NE(net->finalize, nullptr);
  EXPECT_EQ(::dlsym(library, "ncclNetPlugin_v5"), nullptr);
  EXPECT_EQ(::dlsym(library, "ncclCollNetPlugin_v12"), nullptr);
}

TEST(Library, LeavesTheGlobalScopeAlone) {
  const Net net = load();
  close(net, make_pair(net));
  for (const char* const name : {"leeway_nccl_net_functions_0", "ncclNetPlugin_v12",
                                 "_ZN6spdlog10get_levelEv", "leeway_version"}) {
    EXPECT_EQ(::dlsym(RTLD_DEFAULT, name), nullptr) << name;
  }
}

// NCCL closes the plugin when no communicator uses it, and opens it again later. The plugin must
// work each time.
TEST(Library, MayBeClosedAndOpenedAgain) {
  for (int turn = 0; turn < 3; ++turn) {
    void* const library = open_plugin();
    const Net net = load(library, 12);
    ASSERT_EQ(net.init(), kSuccess);
    const Pair pair = make_pair(net);
    ASSERT_TRUE(pair.sender != nullptr && pair.receiver != nullptr);
    close(net, pair);
    EXPECT_EQ(net.finalize(), kSuccess);
    EXPECT_EQ(::dlclose(library), 0);
  }
}

std::size_t entries(const char* folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(Library, ManyConnectionsShareSocketsAndThreads) {
  constexpr int kPairs = 128;
  const Net net = load();
  std::vector<Pair> pairs{make_pair(net)};
  const std::size_t threads = entries("/proc/self/task");
  const std::size_t files = entries("/proc/self/fd");
  while (pairs.size() < kPairs) pairs.push_back(make_pair(net));
  // The threads that set up a connection may still be running for a while.
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (entries("/proc/self/task") > threads && std::chrono::steady_clock::now() < end) {
  }
  EXPECT_LE(entries("/proc/self/task"), threads);
  EXPECT_LE(entries("/proc/self/fd"), files);
  for (const Pair& pair : pairs) {
    const auto data = pattern(3000, 5);
    std::vector<char> room(3000);
    void* const receiving = begin_receive(net, pair.receiver, room);
    void* const sending = begin_send(net, pair.sender, data);
    ASSERT_EQ(finish(net, receiving), kSuccess);
    ASSERT_EQ(finish(net, sending), kSuccess);
    EXPECT_EQ(room, data);
  }
  for (const Pair& pair : pairs) close(net, pair);
}

}  // namespace
}  // namespace nccl_net_test
