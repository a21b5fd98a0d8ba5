// Tests the promises of leeway/rendezvous.h with every store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "leeway/rendezvous.h"
#include "unit/rendezvous/loopback_peer.h"
#include "unit/rendezvous/plain_store.h"

namespace leeway::rendezvous {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Under the thread sanitizer, a forked child that starts a thread is ended.
#if defined(__SANITIZE_THREAD__)
constexpr bool kForkedChildMayStartThreads = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kForkedChildMayStartThreads = false;
#else
constexpr bool kForkedChildMayStartThreads = true;
#endif
#else
constexpr bool kForkedChildMayStartThreads = true;
#endif

// A store, and a second object for it as another process would have.
struct Stores {
  std::shared_ptr<Rendezvous> one;
  std::shared_ptr<Rendezvous> other;
  std::filesystem::path folder;
};

struct Kind {
  const char* name;
  std::function<Stores()> open;
  bool forgets;
};

Stores open_file() {
  std::string folder = (std::filesystem::temp_directory_path() / "leeway-store-XXXXXX").string();
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  return {std::make_shared<FileRendezvous>(folder), std::make_shared<FileRendezvous>(folder),
          folder};
}
Stores open_inproc() {
  auto store = std::make_shared<InprocRendezvous>();
  return {store, store, {}};
}
Stores open_plain() {
  auto store = std::make_shared<PlainStore>();
  return {store, store, {}};
}
Stores open_server() {
  auto server = *TcpRendezvous::serve("127.0.0.1:0");
  auto client = *TcpRendezvous::connect(server->address());
  return {server, client, {}};
}
Stores open_client() {
  Stores stores = open_server();
  std::swap(stores.one, stores.other);
  return stores;
}

class Store : public ::testing::TestWithParam<Kind> {
 protected:
  ~Store() override {
    if (!stores_.folder.empty()) std::filesystem::remove_all(stores_.folder);
  }
  Rendezvous& one() { return *stores_.one; }
  Rendezvous& other() { return *stores_.other; }

  const Stores stores_ = GetParam().open();
};

ByteSpan value_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(const Result<std::vector<std::byte>>& value) {
  if (!value.ok()) return "error: " + std::string(value.status().text());
  return {reinterpret_cast<const char*>(value->data()), value->size()};
}

TEST_P(Store, GetsWhatWasPutAndTheLastOfIt) {
  ASSERT_TRUE(one().put("a/b.c_d-e%2F", value_of("first")).ok());
  EXPECT_EQ(text_of(other().get("a/b.c_d-e%2F", 0s)), "first");
  ASSERT_TRUE(other().put("a/b.c_d-e%2F", value_of("second")).ok());
  EXPECT_EQ(text_of(one().get("a/b.c_d-e%2F", 1s)), "second");
  ASSERT_TRUE(one().put("empty", {}).ok());
  EXPECT_EQ(text_of(other().get("empty", 0s)), "");
}

TEST_P(Store, SaysInTimeThatAKeyIsNotThere) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(one().get("absent", 0s).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(one().get("absent", -1s).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(one().get("absent", 60ms).status().code(), StatusCode::kDeadlineExceeded);
  const Duration took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, 60ms);
  EXPECT_LT(took, 2s);
}

TEST_P(Store, WaitsForAKeyWhileOthersUseTheStore) {
  auto waiting = std::async(std::launch::async, [this] { return one().get("late", 10s); });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(one().put("busy", value_of(std::to_string(i))).ok());
    ASSERT_EQ(text_of(one().get("busy", 0s)), std::to_string(i));
  }
  ASSERT_TRUE(other().put("late", value_of("here")).ok());
  EXPECT_EQ(text_of(waiting.get()), "here");
}

TEST_P(Store, CarriesTheLongestValueAndTheLongestKey) {
  const std::string key(Rendezvous::kKeyBytesMax, 'k');
  std::vector<std::byte> value(Rendezvous::kValueBytesMax);
  value.front() = std::byte{1};
  value.back() = std::byte{2};
  ASSERT_TRUE(other().put(key, value).ok());
  EXPECT_EQ(*one().get(key, 10s), value);
}

TEST_P(Store, GetsEachOfManyKeysOnce) {
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back("many/" + std::to_string(i));
  for (int i = 0; i < 100; i += 2) ASSERT_TRUE(other().put(keys[i], value_of(keys[i])).ok());
  std::thread putting([&] {
    for (int i = 99; i > 0; i -= 2) EXPECT_TRUE(other().put(keys[i], value_of(keys[i])).ok());
  });
  std::vector<int> seen(keys.size());
  const Status status = one().get_each(keys, 10s, [&](std::size_t index, auto value) {
    EXPECT_EQ(text_of(value), keys[index]);
    ++seen[index];
    return true;
  });
  putting.join();
  EXPECT_TRUE(status.ok()) << status.c_str();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100);
}

TEST_P(Store, GetsNoMoreOfManyKeysThanAreWantedOrThere) {
  const std::vector<std::string> keys = {"x", "absent", "y", "z"};
  for (const char* key : {"x", "y", "z"}) ASSERT_TRUE(one().put(key, value_of(key)).ok());
  int taken = 0;
  EXPECT_TRUE(one().get_each(keys, 10s, [&](std::size_t, auto) { return ++taken < 2; }).ok());
  EXPECT_EQ(taken, 2);
  std::vector<std::size_t> found;
  const auto take = [&](std::size_t index, auto) {
    found.push_back(index);
    return true;
  };
  EXPECT_TRUE(one().get_each(keys, 50ms, take).ok());
  EXPECT_THAT(found, UnorderedElementsAre(0, 2, 3));
  found.clear();
  EXPECT_TRUE(one().get_each(keys, 0ms, take).ok());
  EXPECT_THAT(found, UnorderedElementsAre(0, 2, 3));
  EXPECT_TRUE(one().get_each({}, 10s, take).ok());
  EXPECT_EQ(text_of(one().get("x", 0s)), "x") << "the store is as it was";
}

TEST_P(Store, ErasesWhatItCanForget) {
  ASSERT_TRUE(one().put("key", value_of("value")).ok());
  ASSERT_TRUE(other().erase("key").ok());
  ASSERT_TRUE(other().erase("never was").ok() || GetParam().forgets);
  EXPECT_EQ(one().get("key", 0s).ok(), !GetParam().forgets);
}

INSTANTIATE_TEST_SUITE_P(Each, Store,
                         ::testing::Values(Kind{"File", open_file, true},
                                           Kind{"Inproc", open_inproc, true},
                                           Kind{"Plain", open_plain, false},
                                           Kind{"TcpServer", open_server, true},
                                           Kind{"TcpClient", open_client, true}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(Stores, RefuseKeysAndValuesThatNoStoreTakes) {
  const std::vector<Stores> all = {open_inproc(), open_server(), open_client(), open_file()};
  const std::vector<std::byte> long_value(Rendezvous::kValueBytesMax + 1);
  for (const Stores& stores : all) {
    for (const std::string& key : {std::string(), std::string("a b"), std::string("a\n"),
                                   std::string(241, 'k'), std::string("a+b")}) {
      EXPECT_EQ(stores.one->put(key, {}).code(), StatusCode::kInvalidArgument) << key;
    }
    EXPECT_EQ(stores.one->put("key", long_value).code(), StatusCode::kInvalidArgument);
    if (!stores.folder.empty()) std::filesystem::remove_all(stores.folder);
  }
}

TEST(FileRendezvous, SaysWhyItCannotWrite) {
  FileRendezvous store("/dev/null/folder");
  const Status status = store.put("key", {});
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.c_str(), HasSubstr("/dev/null/folder"));
}

TEST(TcpRendezvous, RefusesAddressesThatMakeNoSense) {
  for (const char* address : {"", "host", "host:", "host:x", "host:70000", "[::1]", "::1:5"}) {
    EXPECT_EQ(TcpRendezvous::serve(address).status().code(), StatusCode::kInvalidArgument)
        << address;
    EXPECT_EQ(TcpRendezvous::connect(address).status().code(), StatusCode::kInvalidArgument)
        << address;
  }
  EXPECT_EQ(TcpRendezvous::connect("127.0.0.1:0").status().code(), StatusCode::kInvalidArgument);
}

TEST(TcpRendezvous, KnowsItsRoundTripOnceItWasUsed) {
  const auto server = *TcpRendezvous::serve("127.0.0.1:0");
  const auto client = *TcpRendezvous::connect(server->address());
  EXPECT_EQ(client->round_trip(), Duration(0));
  ASSERT_TRUE(client->put("key", value_of("value")).ok());
  EXPECT_GT(client->round_trip(), Duration(0));
  EXPECT_EQ(server->round_trip(), Duration(0));
}

TEST(TcpRendezvous, SharesOneServerAnAddressAndClosesItWithTheLastUser) {
  const std::string address = rendezvous_at(free_port());
  auto one = *TcpRendezvous::serve(address);
  auto two = *TcpRendezvous::serve(address);
  EXPECT_EQ(one->address(), address);
  ASSERT_TRUE(one->put("key", value_of("value")).ok());
  one.reset();
  EXPECT_EQ(text_of(two->get("key", 0s)), "value");
  two.reset();
  auto three = *TcpRendezvous::serve(address);
  EXPECT_FALSE(three->get("key", 0s).ok()) << "a new server";
}

TEST(TcpRendezvous, SharesAServerAtAPortOfTheSystemsChoiceByTheAddressThatItGot) {
  for (const char* anywhere : {"127.0.0.1:0", ":0"}) {
    auto one = *TcpRendezvous::serve(anywhere);
    const auto two = TcpRendezvous::serve(one->address());
    ASSERT_TRUE(two.ok()) << two.status().c_str();
    ASSERT_TRUE(one->put("key", value_of("value")).ok());
    one.reset();
    EXPECT_EQ(text_of((*two)->get("key", 0s)), "value");
  }
}

// The server cannot answer, because it does not read values for which it has no room.
TEST(TcpRendezvous, AClientHearsThatTheStoreMayBeFull) {
  const auto server = *TcpRendezvous::serve("127.0.0.1:0");
  const auto client = *TcpRendezvous::connect(server->address());
  const std::vector<std::byte> value(std::size_t{8} << 20);
  Status status;
  for (int i = 0; i < 16 && status.ok(); ++i)
    status = client->put("key" + std::to_string(i), value);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(std::string(status.c_str()).find("no room for \"key"), std::string::npos)
      << status.c_str();
}

TEST(TcpRendezvous, OpensAndClosesFromManyThreadsAtOnce) {
  const std::string address = rendezvous_at(free_port());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&address] {
      for (int round = 0; round < 20; ++round) {
        const auto store = TcpRendezvous::serve(address);
        ASSERT_TRUE(store.ok()) << store.status().c_str();
        EXPECT_TRUE((*store)->put("key", {}).ok());
      }
    });
  }
}

TEST(TcpRendezvous, ServesAnyAddressUnderAPortOfTheSystemsChoice) {
  const auto server = TcpRendezvous::serve(":0");
  ASSERT_TRUE(server.ok()) << server.status().c_str();
  const auto client = TcpRendezvous::connect((*server)->address());
  ASSERT_TRUE(client.ok()) << (*server)->address();
  ASSERT_TRUE((*client)->put("key", value_of("value")).ok());
  EXPECT_EQ(text_of((*server)->get("key", 0s)), "value");
}

TEST(TcpRendezvous, WaitsForAServerThatComesLate) {
  const std::string address = rendezvous_at(free_port());
  auto waiting = std::async(std::launch::async, [&address] {
    return (*TcpRendezvous::connect(address))->get("key", 20s);
  });
  std::this_thread::sleep_for(30ms);
  const auto server = *TcpRendezvous::serve(address);
  ASSERT_TRUE(server->put("key", value_of("value")).ok());
  EXPECT_EQ(text_of(waiting.get()), "value");
}

TEST(TcpRendezvous, ForgetsWhatAProcessTakesAlong) {
  const auto server = *TcpRendezvous::serve("127.0.0.1:0");
  auto client = *TcpRendezvous::connect(server->address());
  ASSERT_TRUE(client->put_briefly("mine", {}, {.with_this_process = true}).ok());
  ASSERT_TRUE(client->put("stays", {}).ok());
  client.reset();
  const auto end = std::chrono::steady_clock::now() + 10s;
  while (server->get("mine", 0s).ok() && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(server->get("mine", 0s).ok());
  EXPECT_TRUE(server->get("stays", 0s).ok());
}

// A child of a parent that is gone must not hold the parent's port, and may serve there itself.
TEST(TcpRendezvous, AForkedChildDoesNotHoldItsParentsPort) {
  const std::string address = rendezvous_at(free_port());
  auto server = *TcpRendezvous::serve(address);
  std::array<int, 2> to_child{}, to_parent{};
  ASSERT_EQ(::pipe(to_child.data()) + ::pipe(to_parent.data()), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    (void)!::write(to_parent[1], &byte, 1);
    (void)!::read(to_child[0], &byte, 1);  // until the parent is done
    if (kForkedChildMayStartThreads) {
      const auto own = TcpRendezvous::serve(address);
      ::_exit(own.ok() && (*own)->put("key", {}).ok() ? 0 : 1);
    }
    ::_exit(0);
  }
  ASSERT_EQ(::read(to_parent[0], &byte, 1), 1);
  server.reset();
  {
    const auto again = TcpRendezvous::serve(address);
    EXPECT_TRUE(again.ok()) << again.status().c_str();
  }
  ASSERT_EQ(::write(to_child[1], &byte, 1), 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) ::close(end);
}

TEST(TcpRendezvous, SaysNoToAForkedChild) {
  const auto server = *TcpRendezvous::serve("127.0.0.1:0");
  const pid_t child = ::fork();
  if (child == 0) {
    auto mine = server;
    const bool refused = mine->put("key", {}).code() == StatusCode::kUnavailable &&
                         !mine->get("key", 0s).ok() && !mine->erase("key").ok();
    mine.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(server->put("key", {}).ok());
}

}  // namespace
}  // namespace leeway::rendezvous
