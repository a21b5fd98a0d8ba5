// Tests when memory may be reused, and what callers are told. The transport reads, is full and dies
// as a test decides.
#include "driving/channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <numeric>
#include <set>
#include <thread>

namespace leeway::driving {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Takes and releases trains as a test decides. Use all members but wake() and `dead` under a
// Driver::Session.
class StubbornTransport final : public DatagramTransport {
 public:
  std::size_t room = SIZE_MAX;      // trains that send() still takes
  std::size_t taken = 0;            // since the beginning
  std::size_t reading = 0;          // the latest of these trains are still being read
  bool reads_on = false;            // a train that was taken is read until the test ends that
  bool changed_while_read = false;  // memory of a train changed while it was read
  bool outside_registered = false;  // a train began outside registered memory
  std::set<Rank> receivers;
  std::vector<ByteSpan> registered;
  std::atomic<bool> dead{false};
  std::function<void()> before_wait;

  void let_go(std::size_t trains) {
    for (; trains > 0; --trains, --reading) {
      if (bytes_of(held_.front().train) != held_.front().bytes) changed_while_read = true;
      held_.pop_front();
    }
  }

  std::string_view name() const override { return "stubborn"; }
  const TransportLimits& limits() const override { return limits_; }
  Status register_memory(ByteSpan memory) override {
    registered.push_back(memory);
    return Status();
  }
  void forget_memory(ByteSpan memory) override {
    std::erase_if(registered, [&](ByteSpan known) { return known.data() == memory.data(); });
  }
  bool knows(std::size_t bytes) const {
    return std::any_of(registered.begin(), registered.end(),
                       [&](ByteSpan memory) { return memory.size() == bytes; });
  }
  std::size_t send(std::span<const Train> trains) override {
    if (dead) return trains.size();
    const std::size_t count = std::min(room, trains.size());
    for (const Train& train : trains.first(count)) take(train);
    room -= count;
    return count;
  }
  std::size_t borrowed() override { return dead ? 0 : reading; }
  std::size_t receive(std::span<Received>) override { return 0; }
  void wait(Duration) override {
    if (before_wait) before_wait();
    std::this_thread::sleep_for(100us);
  }
  void wake() override {}
  TransportCounters counters() const override { return {}; }
  const Status& status() const override {
    static const Status gone =
        Status::error(StatusCode::kUnavailable, "device rxe7 is gone: plug it in");
    return dead ? gone : DatagramTransport::status();
  }

 private:
  struct Held {
    std::vector<Slice> slices;
    Train train;
    std::vector<std::byte> bytes;
  };

  static std::vector<std::byte> bytes_of(const Train& train) {
    std::vector<std::byte> bytes;
    for (const Slice& slice : train.slices)
      bytes.insert(bytes.end(), slice.data, slice.data + slice.bytes);
    return bytes;
  }

  void take(const Train& train) {
    ++taken;
    receivers.insert(train.to);
    const std::byte* const first = train.slices.front().data;
    const auto contains = [first](ByteSpan memory) {
      return first >= memory.data() && first < memory.data() + memory.size();
    };
    outside_registered |= std::none_of(registered.begin(), registered.end(), contains);
    if (!reads_on) return;
    ++reading;
    held_.push_back({{train.slices.begin(), train.slices.end()}, train, bytes_of(train)});
    held_.back().train.slices = held_.back().slices;
  }

  TransportLimits limits_{1472, 65507, 64, 256, 1u << 20};
  std::deque<Held> held_;
};

protocol::EndpointConfig config_of(int size) {
  protocol::EndpointConfig config;
  config.size = size;
  config.window_bytes.assign(static_cast<std::size_t>(size), 1u << 20);
  return config;
}

Channel channel_over(TransportKind kind, int size, StubbornTransport* transport) {
  std::vector<Rank> slots(static_cast<std::size_t>(size));
  std::iota(slots.begin(), slots.end(), Rank{0});
  return {Driver::start(kind, std::unique_ptr<DatagramTransport>(transport)).value(),
          config_of(size), std::move(slots)};
}

// Rank 0 of a group whose other ranks are silent. probe_all() makes a train for each of them.
class DriverTest : public ::testing::Test {
 protected:
  static constexpr int kSize = 41;
  static constexpr std::size_t kRing = 16;

  void probe_all() {
    Driver::Session session(driver_);
    channel_.engine().endpoint().probe_all();
    session.pump();
  }
  // Steps the driver often enough to send all that can be sent.
  void pump() {
    Driver::Session session(driver_);
    for (int i = 0; i < 100; ++i) session.pump();
  }
  template <typename Change>
  void with_transport(Change&& change) {
    Driver::Session session(driver_);
    change(*transport_);
  }
  void expect_taken(std::size_t trains) {
    with_transport([&](StubbornTransport& transport) { EXPECT_EQ(transport.taken, trains); });
  }
  void TearDown() override {
    with_transport([](StubbornTransport& transport) {
      transport.let_go(transport.reading);
      EXPECT_FALSE(transport.changed_while_read);
      EXPECT_FALSE(transport.outside_registered);
      // A dead transport keeps the driver from repeating its good-bye for seconds.
      transport.dead = true;
    });
  }

  StubbornTransport* transport_ = new StubbornTransport;  // the driver's
  Channel channel_ = channel_over(TransportKind::verbs, kSize, transport_);
  Driver& driver_ = *channel_.driver();
};

TEST_F(DriverTest, SendsEverythingThroughATransportThatCopies) {
  probe_all();
  pump();
  with_transport([](StubbornTransport& transport) {
    EXPECT_GE(transport.taken, std::size_t{kSize - 1});
    EXPECT_EQ(transport.receivers.size(), std::size_t{kSize - 1});
    EXPECT_LE(transport.registered.size(), 4u);  // other memory was never needed
  });
}

TEST_F(DriverTest, KeepsAtMostARingOfTrainsBorrowedAndReusesOnlyWhatWasLetGo) {
  with_transport([](StubbornTransport& transport) { transport.reads_on = true; });
  probe_all();
  pump();
  expect_taken(kRing);
  pump();
  expect_taken(kRing);
  with_transport([](StubbornTransport& transport) { transport.let_go(5); });
  pump();
  expect_taken(kRing + 5);
  with_transport([](StubbornTransport& transport) { transport.let_go(1); });
  pump();
  expect_taken(kRing + 6);
  with_transport([](StubbornTransport& transport) {
    EXPECT_FALSE(transport.changed_while_read);
    EXPECT_EQ(transport.registered.size(), kRing);
    transport.let_go(transport.reading);
  });
  pump();
  with_transport([](StubbornTransport& transport) { transport.let_go(transport.reading); });
  pump();
  with_transport([](StubbornTransport& transport) {
    EXPECT_EQ(transport.receivers.size(), std::size_t{kSize - 1});
    EXPECT_EQ(transport.registered.size(), kRing);
  });
}

TEST_F(DriverTest, GivesNobodyMemoryBackWhileTrainsAreBorrowed) {
  with_transport([](StubbornTransport& transport) {
    transport.reads_on = true;
    transport.room = 3;
  });
  probe_all();
  // The call ends at once, because rank 999 does not exist.
  const auto refused = channel_.submit({.kind = collective::OperationKind::send, .peer = 999});
  const auto given_back = [&] {
    pump();
    return refused->done.load();
  };
  EXPECT_FALSE(given_back());
  with_transport([](StubbornTransport& transport) { transport.let_go(3); });
  EXPECT_FALSE(given_back());  // further trains are prepared, but not taken
  with_transport([](StubbornTransport& transport) {
    transport.reads_on = false;
    transport.room = SIZE_MAX;
  });
  EXPECT_TRUE(given_back());
}

TEST_F(DriverTest, OffersWhatAShortSendLeftAgainInOrder) {
  with_transport([](StubbornTransport& transport) {
    transport.reads_on = true;
    transport.room = 0;
  });
  probe_all();
  pump();
  expect_taken(0);
  for (std::size_t trains = 1; trains <= kSize - 1; ++trains) {
    with_transport([](StubbornTransport& transport) {
      transport.room = 1;
      if (transport.reading > 10) transport.let_go(3);
    });
    pump();
    expect_taken(trains);
  }
  with_transport([](StubbornTransport& transport) {
    EXPECT_EQ(transport.receivers.size(), std::size_t{kSize - 1});  // each once
  });
}

TEST_F(DriverTest, ANewOperationWaitsForTheTrainsOfFinishedOnes) {
  with_transport([](StubbornTransport& transport) { transport.reads_on = true; });
  probe_all();
  std::vector<float> data(8, 1.0f);
  const auto open_rounds = [&] {
    Driver::Session session(driver_);
    return channel_.engine().endpoint().rounds().open_count();
  };
  (void)channel_.submit({.kind = collective::OperationKind::all_reduce,
                         .input = std::span<const float>(data),
                         .output = std::span(data)});
  pump();
  EXPECT_EQ(open_rounds(), 0u);
  with_transport([](StubbornTransport& transport) {
    transport.reads_on = false;
    transport.let_go(transport.reading);
  });
  pump();
  EXPECT_EQ(open_rounds(), 1u);
}

// ---- callers ----

// An operation of rank 0 of two; its peer is silent.
class DriverOperations : public ::testing::Test {
 protected:
  std::shared_ptr<internal::WorkState> start(const Delivery& delivery) {
    collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce,
                                   .input = std::span<const float>(data_),
                                   .output = std::span(data_)};
    spec.options.delivery = delivery;
    spec.options.op = ReduceOp::avg;
    return channel_.submit(spec);
  }
  static void expect_death(const Result<CollectiveReport>& outcome) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(outcome.status().c_str(), HasSubstr("device rxe7 is gone: plug it in"));
  }

  std::vector<float> data_ = std::vector<float>(10'000, 1.0f);
  StubbornTransport* transport_ = new StubbornTransport;
  Channel channel_ = channel_over(TransportKind::verbs, 2, transport_);
};

TEST_F(DriverOperations, ADeadTransportFailsWhatIsOpenAndWhatComesNamingTheDevice) {
  const auto open = start(exact(60s));
  const auto queued = start(best_effort(60s));
  EXPECT_FALSE(open->done.load());
  transport_->dead = true;
  expect_death(Driver::wait(*open));
  expect_death(Driver::wait(*queued));
  const auto later = start(exact(60s));
  expect_death(Driver::wait(*later));
}

// A driver calls back before it waits for datagrams, so that no caller waits for a finished call.
// The receive ends at its deadline without sending anything.
TEST_F(DriverOperations, CallsBackBeforeItSleeps) {
  collective::OperationSpec spec{.kind = collective::OperationKind::recv, .peer = 1};
  spec.output = std::span(data_);
  spec.options.delivery = exact(5ms);
  const auto work = channel_.submit(spec);
  std::atomic<bool> called{false};
  std::atomic<bool> slept{false};
  {
    const Driver::Session session(*channel_.driver());
    transport_->before_wait = [&] { slept = slept || (work->done && !called); };
  }
  work->call_when_done([&] { called = true; });
  while (!called) std::this_thread::yield();
  EXPECT_FALSE(slept);
  transport_->dead = true;
}

TEST_F(DriverOperations, ATransportThatDiesWhileItReadsGivesMemoryBack) {
  transport_->reads_on = true;  // set while the driver has no datagrams
  const auto open = start(best_effort(5ms));
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(open->done.load()) << "its deadline is over, but its memory is still being read";
  transport_->dead = true;
  const auto outcome = Driver::wait(*open);
  EXPECT_TRUE(open->done.load());
}

// A device must know all memory from which datagrams are gathered. A small input is copied, and
// datagrams are gathered from the copy.
TEST_F(DriverOperations, ATransportKnowsTheMemoryOfOperationsAsLongAsTheyHaveIt) {
  const auto reduce_scatter = [&](std::size_t elements) {
    std::vector<float> block(elements / 2);
    collective::OperationSpec spec{.kind = collective::OperationKind::reduce_scatter,
                                   .input = std::span<const float>(data_).first(elements),
                                   .output = std::span(block)};
    spec.options.delivery = best_effort(5ms);
    EXPECT_TRUE(Driver::wait(*channel_.submit(spec)).ok());
  };
  reduce_scatter(1000);
  EXPECT_TRUE(transport_->knows(1000 * sizeof(float)));
  reduce_scatter(10'000);
  EXPECT_TRUE(transport_->knows(10'000 * sizeof(float)));
  EXPECT_FALSE(transport_->knows(1000 * sizeof(float)));
}

TEST_F(DriverOperations, ATransportKnowsTheMemoryOfCallersUntilTheyTakeItBack) {
  const ByteSpan memory = std::as_bytes(std::span(data_));
  EXPECT_TRUE(channel_.register_memory(memory).ok());
  EXPECT_TRUE(transport_->knows(memory.size()));
  channel_.forget_memory(memory);
  EXPECT_FALSE(transport_->knows(memory.size()));
}

TEST(DriverPaths, NamesTheTransportAndWhatToLookAt) {
  const std::vector<std::pair<TransportKind, const char*>> remedies = {
      {TransportKind::udp, "LEEWAY_BIND"},
      {TransportKind::verbs, "4791"},
      {TransportKind::ucx, "UCX_NET_DEVICES"}};
  for (const auto& [kind, remedy] : remedies) {
    Channel channel = channel_over(kind, 3, new StubbornTransport);
    const Status status = channel.prove_paths(10ms);
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
    EXPECT_THAT(status.c_str(),
                HasSubstr("over " + std::string(to_string(kind)) + " to rank 1, and to 2 failed"));
    EXPECT_THAT(status.c_str(), HasSubstr(remedy));
  }
}

}  // namespace
}  // namespace leeway::driving
