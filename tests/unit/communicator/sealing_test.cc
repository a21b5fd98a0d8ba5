// Groups with a secret: their datagrams are sealed, and data that cannot be sealed are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "seal/packet.h"
#include "support/secret_line.h"
#include "unit/keys/authority.h"
#include "unit/rendezvous/loopback_ranks.h"

namespace leeway {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;

class SealedGroup : public ::testing::Test {
 protected:
  using Group = std::vector<std::unique_ptr<Communicator>>;

  SealedGroup() {
    std::ofstream(file_) << secret_digits('7') << "\n";
    chmod(file_.c_str(), 0600);
  }
  ~SealedGroup() override { std::remove(file_.c_str()); }

  Options options_of(int rank, int size) {
    Options options;
    options.store = store_;
    options.communicator_name = "group " + std::to_string(size);
    options.transport = TransportKind::udp;
    options.bind_address = "127.0.0.1";
    options.rank = rank;
    options.world_size = size;
    options.join_timeout = 20s;
    options.secret_file = file_;
    return options;
  }

  // Makes every rank on a thread of its own.
  template <typename Change>
  Group meet(int size, Change&& change) {
    Group group(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        Options options = options_of(rank, size);
        change(options);
        auto made = Communicator::create(options);
        ASSERT_TRUE(made.ok()) << made.status().c_str();
        group[static_cast<std::size_t>(rank)] = std::move(*made);
      });
    }
    for (auto& thread : threads) thread.join();
    return group;
  }
  static void reduce(const Group& group) {
    std::vector<std::thread> threads;
    for (const auto& rank : group) {
      threads.emplace_back([&] {
        std::vector<float> data(100'000, 1.0f);
        const auto report = rank->all_reduce(std::span(data));
        ASSERT_TRUE(report.ok()) << report.status().c_str();
        EXPECT_THAT(data, Each(static_cast<float>(group.size())));
      });
    }
    for (auto& thread : threads) thread.join();
  }
  static void use(const keys::CertificateFiles& files, Options& options) {
    options.secret_file.clear();
    options.tls_ca = files.authority;
    options.tls_certificate = files.certificate;
    options.tls_key = files.key;
  }
  static std::uint64_t count(const Communicator& rank, std::string_view name) {
    for (const auto& [row, value] : rank.counters()) {
      if (row == name) return value;
    }
    return UINT64_MAX;
  }
  static void expect_sealed(const Group& group) {
    for (const auto& rank : group) {
      EXPECT_GE(count(*rank, "sealed"), count(*rank, "datagrams_sent"));  // some may wait
      EXPECT_GE(count(*rank, "opened"), 14u);  // data alone, two ranks, 32 KiB each
      // A rank that learns the others' keys a moment later cannot tell who sent the first
      // datagrams. Senders repeat those.
      EXPECT_LT(count(*rank, "refused_unknown_tag"), count(*rank, "opened"));
      for (const char* reason :
           {"refused_forged", "refused_replayed", "refused_unsealed", "refused_wrong_address"}) {
        EXPECT_EQ(count(*rank, reason), 0u) << reason;
      }
    }
  }

  const std::string file_ = ::testing::TempDir() + "leeway_sealing_" + std::to_string(getpid());
  std::shared_ptr<Rendezvous> store_ = std::make_shared<InprocRendezvous>();
};

TEST_F(SealedGroup, TwoAndFourRanksReduceOverSealedDatagrams) {
  for (const int size : {2, 4}) {
    const Group group = meet(size, [](Options&) {});
    reduce(group);
    expect_sealed(group);
  }
}

// Certificates replace the secret here, over rank 0's TCP listener.
TEST_F(SealedGroup, RanksWithCertificatesOfOneJobReduceOverSealedDatagrams) {
  keys::Authority authority;
  const std::string place = "127.0.0.1:" + std::to_string(rendezvous::free_port());
  const Group group = meet(3, [&](Options& options) {
    const auto files = authority.member_of("a");
    use(files, options);
    options.store = nullptr;
    options.rendezvous = place;
  });
  reduce(group);
  expect_sealed(group);
}

TEST_F(SealedGroup, CertificatesAndASecretGoTogetherOverAStoreToo) {
  keys::Authority authority;
  const Group group = meet(2, [&](Options& options) {
    const std::string secret = options.secret_file;
    use(authority.member_of("a"), options);
    options.secret_file = secret;
  });
  reduce(group);
  expect_sealed(group);
}

TEST_F(SealedGroup, CertificatesAloneAreRefusedOverAStore) {
  keys::Authority authority;
  Options options = options_of(0, 2);
  use(authority.member_of("a"), options);
  const auto refused = Communicator::create(options);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().c_str(), HasSubstr("leave the store out"));
}

TEST_F(SealedGroup, CertificateThatCannotBeUsedIsAnErrorAtOnce) {
  keys::Authority authority;
  Options options = options_of(0, 2);
  use(authority.issue("URI:urn:leeway:a", -100, -10), options);
  const auto refused = Communicator::create(options);
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.status().c_str(), HasSubstr("has expired"));
}

// Injected faults hit datagrams after they were opened, so no seal is refused.
TEST_F(SealedGroup, InjectedFaultsAreRepaired) {
  const Group group = meet(3, [](Options& options) {
    options.faults.loss = 0.05;
    options.faults.corrupt = 0.01;
  });
  reduce(group);
  expect_sealed(group);
}

TEST_F(SealedGroup, DatagramsLeaveRoomForTheSeal) {
  const auto of_1400 = [](Options& options) { options.datagram_bytes = 1400; };
  const Group group = meet(2, of_1400);
  EXPECT_EQ(group[0]->datagram_bytes(), 1400 - seal::kOverheadBytes);
  reduce(group);
}

TEST_F(SealedGroup, PartsOfAGroupAreSealedToo) {
  const Group group = meet(2, [](Options&) {});
  Group halves(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      auto made = group[static_cast<std::size_t>(rank)]->split(0, rank);
      ASSERT_TRUE(made.ok()) << made.status().c_str();
      halves[static_cast<std::size_t>(rank)] = std::move(*made);
    });
  }
  for (auto& thread : threads) thread.join();
  reduce(halves);
  expect_sealed(halves);
}

TEST_F(SealedGroup, MulticastIsRefused) {
  Options options = options_of(0, 2);
  options.multicast = true;
  const auto created = Communicator::create(options);
  EXPECT_EQ(created.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(created.status().c_str(), HasSubstr("multicast is not sealed"));
}

TEST_F(SealedGroup, UcxIsRefused) {
  Options options = options_of(0, 2);
  options.transport = TransportKind::ucx;
  const auto created = Communicator::create(options);
  EXPECT_EQ(created.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(created.status().c_str(), HasSubstr("ucx is not sealed"));
}

TEST_F(SealedGroup, DatagramsTooShortToSealAreRefused) {
  Options options = options_of(0, 2);
  options.datagram_bytes = 543;
  EXPECT_THAT(Communicator::create(options).status().c_str(), HasSubstr("less than 544"));
}

}  // namespace
}  // namespace leeway
