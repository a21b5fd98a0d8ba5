// A communicator over a transport that the library does not know: queues between threads that lose
// datagrams, written against the public headers alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "leeway/communicator.h"
#include "support/secret_line.h"
#include "support/train_datagrams.h"
#include "unit/rendezvous/loopback_ranks.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

// The datagrams that wait for one rank.
struct Queue {
  struct Datagram {
    Rank from;
    std::vector<std::byte> bytes;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Datagram> datagrams;
  bool called = false;
};

class QueueTransport final : public DatagramTransport {
 public:
  static constexpr TransportLimits kLimits{.datagram_bytes_max = 4096,
                                           .train_bytes_max = 1u << 20,
                                           .train_datagrams_max = 64,
                                           .train_slices_max = 256,
                                           .receive_buffer_bytes = 1u << 20};

  QueueTransport(std::vector<std::shared_ptr<Queue>> queues, Rank self, double loss,
                 TransportLimits limits = kLimits, std::string name = "queues")
      : queues_(std::move(queues)), self_(self), lost_(loss), limits_(limits), name_(name) {
    random_.seed(self);
  }
  ~QueueTransport() override { ++destroyed; }

  std::string_view name() const override { return name_; }
  const TransportLimits& limits() const override { return limits_; }

  std::size_t send(std::span<const Train> trains) override {
    for (const Train& train : trains) {
      support::for_each_datagram(train, [&](ByteSpan datagram) {
        ++counters_.datagrams_sent;
        if (lost_(random_)) return;
        Queue& queue = *queues_[train.to];
        const std::lock_guard lock(queue.mutex);
        queue.datagrams.push_back({self_, {datagram.begin(), datagram.end()}});
        queue.changed.notify_one();
      });
    }
    return trains.size();
  }

  std::size_t receive(std::span<Received> out) override {
    Queue& own = *queues_[self_];
    const std::lock_guard lock(own.mutex);
    lent_.clear();
    while (lent_.size() < out.size() && !own.datagrams.empty()) {
      lent_.push_back(std::move(own.datagrams.front()));
      own.datagrams.pop_front();
    }
    for (std::size_t i = 0; i < lent_.size(); ++i) out[i] = {lent_[i].from, lent_[i].bytes};
    counters_.datagrams_received += lent_.size();
    return lent_.size();
  }

  void wait(Duration timeout) override {
    Queue& own = *queues_[self_];
    std::unique_lock lock(own.mutex);
    own.changed.wait_for(lock, timeout, [&] { return own.called || !own.datagrams.empty(); });
    own.called = false;
  }
  void wake() override {
    Queue& own = *queues_[self_];
    const std::lock_guard lock(own.mutex);
    own.called = true;
    own.changed.notify_one();
  }
  TransportCounters counters() const override { return counters_; }

  static inline std::atomic<int> destroyed = 0;

 private:
  const std::vector<std::shared_ptr<Queue>> queues_;
  const Rank self_;
  std::bernoulli_distribution lost_;
  const TransportLimits limits_;
  const std::string name_;
  std::mt19937 random_;
  std::vector<Queue::Datagram> lent_;
  TransportCounters counters_;
};

std::vector<std::shared_ptr<Queue>> queues_of(int size) {
  std::vector<std::shared_ptr<Queue>> queues;
  for (int i = 0; i < size; ++i) queues.push_back(std::make_shared<Queue>());
  return queues;
}

using Created = Result<std::unique_ptr<Communicator>>;
using Make = std::function<std::unique_ptr<DatagramTransport>(Rank)>;

// Runs each rank on a thread of its own and calls `body` with its communicator, or the error.
void on_ranks(int size, const Make& make, const std::function<void(Created)>& body,
              const std::function<void(Rank, Options&)>& change = nullptr) {
  Options options;
  options.world_size = size;
  options.rendezvous = "127.0.0.1:" + std::to_string(rendezvous::free_port());
  options.join_timeout = 20s;
  std::vector<std::jthread> ranks;
  for (Rank rank = 0; rank < size; ++rank) {
    Options own = options;
    own.rank = rank;
    if (change) change(rank, own);
    ranks.emplace_back([&body, &make, own, rank] { body(Communicator::create(own, make(rank))); });
  }
}

TEST(CustomTransport, CarriesExactAndLossyCallsWhereItLosesDatagrams) {
  constexpr int kSize = 3;
  const auto queues = queues_of(kSize);
  const int before = QueueTransport::destroyed;
  const Make make = [&](Rank rank) {
    return std::make_unique<QueueTransport>(queues, rank, /*loss=*/0.05);
  };
  on_ranks(kSize, make, [&](Created created) {
    ASSERT_TRUE(created.ok()) << created.status().c_str();
    Communicator& communicator = **created;
    EXPECT_EQ(communicator.transport(), TransportKind::custom);
    EXPECT_EQ(to_string(communicator.transport()), "custom");
    EXPECT_EQ(communicator.datagram_bytes(), 4096u);
    std::vector<float> data(100'000, static_cast<float>(communicator.rank() + 1));
    const auto exact = communicator.all_reduce(std::span(data));
    ASSERT_TRUE(exact.ok()) << exact.status().c_str();
    EXPECT_THAT(data, Each(6.0f));
    EXPECT_GT(exact->loss_first_pass, 0.0);
    std::vector<float> average(100'000, 2.0f);
    const auto lossy = communicator.all_reduce(std::span(average),
                                               {.op = ReduceOp::avg, .delivery = best_effort(2s)});
    ASSERT_TRUE(lossy.ok()) << lossy.status().c_str();
    EXPECT_THAT(average, Each(2.0f));
    const auto counters = communicator.counters();
    EXPECT_EQ(counters.front().first, "datagrams_sent");
    EXPECT_GT(counters.front().second, 100u);
  });
  EXPECT_EQ(QueueTransport::destroyed, before + kSize);
}

// Payloads must not appear in clear in datagrams that pass through the caller's transport.
TEST(CustomTransport, CarriesSealedDatagramsWhereThereIsASecret) {
  constexpr int kSize = 3;
  const auto queues = queues_of(kSize);
  const std::string file = ::testing::TempDir() + "custom_secret_" + std::to_string(getpid());
  std::ofstream(file) << secret_digits('4') << "\n";
  chmod(file.c_str(), 0600);
  const Make make = [&](Rank rank) {
    return std::make_unique<QueueTransport>(queues, rank, /*loss=*/0.02);
  };
  const auto body = [&](Created created) {
    ASSERT_TRUE(created.ok()) << created.status().c_str();
    Communicator& communicator = **created;
    EXPECT_EQ(communicator.datagram_bytes(), 4096u - 32u);
    std::vector<float> data(100'000, static_cast<float>(communicator.rank() + 1));
    const auto exact = communicator.all_reduce(std::span(data));
    ASSERT_TRUE(exact.ok()) << exact.status().c_str();
    EXPECT_THAT(data, Each(6.0f));
    for (const auto& [name, value] : communicator.counters()) {
      if (name == "sealed" || name == "opened") {
        EXPECT_GT(value, 50u) << name;
      } else if (name == "refused_forged" || name == "refused_unsealed") {
        EXPECT_EQ(value, 0u) << name;
      }
    }
  };
  on_ranks(kSize, make, body, [&](Rank, Options& options) { options.secret_file = file; });
  std::remove(file.c_str());
}

TEST(CustomTransport, IsDestroyedAndExplainedWhereItsLimitsAreTooSmall) {
  TransportLimits limits = QueueTransport::kLimits;
  limits.train_datagrams_max = 8;
  const int before = QueueTransport::destroyed;
  const auto created = Communicator::create(
      Options(), std::make_unique<QueueTransport>(queues_of(1), Rank{0}, 0.0, limits));
  EXPECT_EQ(QueueTransport::destroyed, before + 1);
  EXPECT_EQ(created.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(created.status().c_str(),
              AllOf(HasSubstr("queues"), HasSubstr("train_datagrams_max = 8; at least 64")));
}

TEST(CustomTransport, OfNothingIsRefused) {
  const auto created = Communicator::create(Options(), nullptr);
  EXPECT_EQ(created.status().code(), StatusCode::kInvalidArgument);
}

TEST(CustomTransport, IsNotNamedInTheOptions) {
  Options options;
  options.transport = TransportKind::custom;
  EXPECT_EQ(Communicator::create(options).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(parse_transport("custom").ok());
}

TEST(CustomTransport, WorksAlone) {
  const auto created =
      Communicator::create(Options(), std::make_unique<QueueTransport>(queues_of(1), Rank{0}, 0.0));
  ASSERT_TRUE(created.ok()) << created.status().c_str();
  EXPECT_TRUE((*created)->barrier().ok());
}

TEST(CustomTransport, OfAnotherNameIsAMismatchThatNamesBoth) {
  const auto queues = queues_of(2);
  const Make make = [&](Rank rank) {
    return std::make_unique<QueueTransport>(queues, rank, 0.0, QueueTransport::kLimits,
                                            rank == 0 ? "pipes" : "tubes");
  };
  on_ranks(2, make, [](const Created& created) {
    EXPECT_EQ(created.status().code(), StatusCode::kMismatch);
    EXPECT_THAT(created.status().c_str(), AllOf(HasSubstr("pipes"), HasSubstr("tubes")));
  });
}

TEST(CustomTransport, DoesNotMeetRanksOfTheLibrarysTransports) {
  const auto queues = queues_of(2);
  Options options;
  options.world_size = 2;
  options.rendezvous = "127.0.0.1:" + std::to_string(rendezvous::free_port());
  options.transport = TransportKind::udp;
  options.rank = 0;
  std::jthread root([&] {
    const auto created = Communicator::create(options);
    EXPECT_EQ(created.status().code(), StatusCode::kMismatch);
  });
  Options other = options;
  other.rank = 1;
  const auto created =
      Communicator::create(other, std::make_unique<QueueTransport>(queues, Rank{1}, 0.0));
  EXPECT_EQ(created.status().code(), StatusCode::kMismatch);
  EXPECT_THAT(created.status().c_str(), AllOf(HasSubstr("custom"), HasSubstr("udp")));
}

TEST(CustomTransport, ThatHearsNothingIsAnErrorThatNamesTheSilentRanks) {
  const auto queues = queues_of(2);
  const Make make = [&](Rank rank) {
    return std::make_unique<QueueTransport>(queues, rank, /*loss=*/1.0);
  };
  on_ranks(
      2, make,
      [](const Created& created) {
        EXPECT_EQ(created.status().code(), StatusCode::kUnavailable);
        EXPECT_THAT(created.status().c_str(),
                    AllOf(HasSubstr("path over custom to rank"), HasSubstr("no datagram came")));
      },
      [](Rank, Options& options) { options.join_timeout = 1s; });
}

}  // namespace
}  // namespace leeway
