// `{}` in the place of the options must mean the default options, for every collective, blocking
// and asynchronous.
#include <gtest/gtest.h>

#include <thread>
#include <type_traits>

#include "leeway/communicator.h"

namespace leeway {
namespace {

static_assert(!std::is_default_constructible_v<TensorView>);
static_assert(!std::is_default_constructible_v<ConstTensorView>);

void expect_ok(const Result<CollectiveReport>& report) {
  EXPECT_TRUE(report.ok()) << report.status().c_str();
}

// Makes every call once, in the same order on both ranks.
void call_everything(Communicator& communicator) {
  std::vector<float> one(4, 1.0f);
  std::vector<float> two(8, 1.0f);
  const std::span x(one);
  const std::span xx(two);
  const Rank peer = 1 - communicator.rank();
  expect_ok(communicator.all_reduce(x, {}));
  expect_ok(communicator.all_reduce_async(x, {}).wait());
  EXPECT_EQ(one[0], 4.0f);
  std::vector<float> other(4);
  expect_ok(communicator.all_reduce(x, std::span(other), {}));
  expect_ok(communicator.all_reduce_async(x, std::span(other), {}).wait());
  EXPECT_EQ(other[0], 8.0f);
  expect_ok(communicator.reduce_scatter(xx, x, {}));
  expect_ok(communicator.reduce_scatter_async(xx, x, {}).wait());
  expect_ok(communicator.all_gather(x, xx, {}));
  expect_ok(communicator.all_gather_async(x, xx, {}).wait());
  expect_ok(communicator.broadcast(x, 0, {}));
  expect_ok(communicator.broadcast_async(x, 0, {}).wait());
  expect_ok(communicator.reduce(x, std::span(other), 0, {}));
  expect_ok(communicator.reduce_async(x, std::span(other), 0, {}).wait());
  expect_ok(communicator.gather(x, xx, 0, {}));
  expect_ok(communicator.gather_async(x, xx, 0, {}).wait());
  expect_ok(communicator.scatter(xx, x, 0, {}));
  expect_ok(communicator.scatter_async(xx, x, 0, {}).wait());
  std::vector<float> exchanged(8);
  expect_ok(communicator.all_to_all(xx, std::span(exchanged), {}));
  expect_ok(communicator.all_to_all_async(xx, std::span(exchanged), {}).wait());
  if (communicator.rank() == 0) {
    expect_ok(communicator.send(x, peer, {}));
    expect_ok(communicator.recv_async(x, peer, {}).wait());
  } else {
    expect_ok(communicator.recv(x, peer, {}));
    expect_ok(communicator.send_async(x, peer, {}).wait());
  }
  expect_ok(communicator.barrier({std::chrono::seconds(60)}));
}

TEST(DefaultOptionsInBraces, AreTakenByEveryCollective) {
  auto group = Communicator::create_inproc(2);
  ASSERT_TRUE(group.ok());
  std::thread other([&] { call_everything(*(*group)[1]); });
  call_everything(*(*group)[0]);
  other.join();
}

}  // namespace
}  // namespace leeway
