// UDP groups that meet in stores of C callbacks, and in Leeway's own stores.
#include <gmock/gmock.h>

#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string>

#include "support/secret_line.h"
#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::HasSubstr;

// A program's store: a map under a lock.
struct Map {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  int destroyed = 0;

  static leeway_status put(void* user, const char* key, const void* data, std::size_t bytes) {
    auto& map = *static_cast<Map*>(user);
    std::lock_guard lock(map.mutex);
    map.values[key].assign(static_cast<const char*>(data), bytes);
    map.changed.notify_all();
    return LEEWAY_OK;
  }
  static leeway_status get(void* user, const char* key, std::int64_t patience_ns,
                           leeway_value* value) {
    auto& map = *static_cast<Map*>(user);
    std::unique_lock lock(map.mutex);
    const bool there = map.changed.wait_for(lock, std::chrono::nanoseconds(patience_ns),
                                            [&] { return map.values.contains(key); });
    if (!there) return leeway_fail(LEEWAY_DEADLINE_EXCEEDED, "no such key");
    return leeway_value_set(value, map.values[key].data(), map.values[key].size());
  }
  static void destroy(void* user) { ++static_cast<Map*>(user)->destroyed; }

  leeway_store_callbacks callbacks() {
    leeway_store_callbacks all = LEEWAY_STORE_CALLBACKS_INIT;
    all.user = this;
    all.put = put;
    all.get = get;
    all.destroy = destroy;
    return all;
  }
};

// Two ranks over UDP meet in `store` and add up.
void meet_in(leeway_rendezvous* store, const char* name) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([=] {
      leeway_options options = LEEWAY_OPTIONS_INIT;
      options.rank = rank;
      options.world_size = 2;
      options.transport = LEEWAY_TRANSPORT_UDP;
      options.bind_address = "127.0.0.1";
      options.communicator_name = name;
      options.store = store;
      leeway_communicator* communicator = nullptr;
      ASSERT_DONE(leeway_create(&options, &communicator));
      EXPECT_EQ(leeway_transport_of(communicator), LEEWAY_TRANSPORT_UDP);
      std::vector<float> values(5000, rank + 1.0f);
      EXPECT_DONE(leeway_all_reduce(communicator, testing::input_of(values),
                                    testing::output_of(values), nullptr, nullptr));
      EXPECT_EQ(values.back(), 3.0f);
      leeway_communicator_free(communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CRendezvous, RanksMeetInAStoreOfCallbacks) {
  Map map;
  const leeway_store_callbacks callbacks = map.callbacks();
  leeway_rendezvous* store = nullptr;
  ASSERT_DONE(leeway_rendezvous_create(&callbacks, &store));
  meet_in(store, "callbacks");
  EXPECT_FALSE(map.values.empty());
  EXPECT_EQ(map.destroyed, 0);
  leeway_rendezvous_free(store);
  EXPECT_EQ(map.destroyed, 1);
}

TEST(CRendezvous, RanksMeetAtATcpServer) {
  leeway_rendezvous *server = nullptr, *client = nullptr;
  ASSERT_DONE(leeway_rendezvous_serve_tcp("127.0.0.1:0", &server));
  ASSERT_DONE(leeway_rendezvous_connect_tcp(leeway_rendezvous_address(server), &client));
  meet_in(client, "tcp");
  leeway_rendezvous_free(client);
  leeway_rendezvous_free(server);
}

TEST(CRendezvous, TcpServerWithASecretHearsItsHoldersAlone) {
  const std::string file = ::testing::TempDir() + "c_abi_secret";
  std::ofstream(file) << secret_digits('5') << "\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  leeway_tcp_security security = LEEWAY_TCP_SECURITY_INIT;
  security.secret_file = file.c_str();
  leeway_rendezvous *server = nullptr, *member = nullptr, *stranger = nullptr;
  ASSERT_DONE(leeway_rendezvous_serve_tcp_secure("127.0.0.1:0", &security, &server));
  const char* const address = leeway_rendezvous_address(server);
  ASSERT_DONE(leeway_rendezvous_connect_tcp_secure(address, &security, &member));
  ASSERT_DONE(leeway_rendezvous_connect_tcp(address, &stranger));
  EXPECT_DONE(leeway_rendezvous_put(member, "key", "value", 5));
  char data[8] = {};
  std::size_t bytes = 0;
  EXPECT_FAILS(leeway_rendezvous_get(stranger, "key", 100'000'000, data, sizeof data, &bytes),
               LEEWAY_INVALID_ARGUMENT, "secret");
  EXPECT_DONE(leeway_rendezvous_get(server, "key", 0, data, sizeof data, &bytes));
  security.secret_file = "/nowhere";
  leeway_rendezvous* none = nullptr;
  EXPECT_FAILS(leeway_rendezvous_serve_tcp_secure("127.0.0.1:0", &security, &none),
               LEEWAY_INVALID_ARGUMENT, "/nowhere");
  leeway_rendezvous_free(stranger);
  leeway_rendezvous_free(member);
  leeway_rendezvous_free(server);
  std::filesystem::remove(file);
}

TEST(CRendezvous, ValuesArePutGotAndErased) {
  const std::string folder = ::testing::TempDir() + "c_abi_store";
  std::filesystem::remove_all(folder);
  leeway_rendezvous* store = nullptr;
  ASSERT_DONE(leeway_rendezvous_in_folder(folder.c_str(), &store));
  EXPECT_STREQ(leeway_rendezvous_address(store), "");
  char data[8] = {};
  std::size_t bytes = 0;
  EXPECT_EQ(leeway_rendezvous_get(store, "key", 0, data, sizeof data, &bytes),
            LEEWAY_DEADLINE_EXCEEDED);
  EXPECT_DONE(leeway_rendezvous_put(store, "key", "value", 5));
  EXPECT_FAILS(leeway_rendezvous_get(store, "key", 0, data, 4, &bytes), LEEWAY_RESOURCE_EXHAUSTED,
               "5 bytes");
  EXPECT_EQ(bytes, 5u);
  EXPECT_DONE(leeway_rendezvous_get(store, "key", 0, data, sizeof data, &bytes));
  EXPECT_STREQ(data, "value");
  EXPECT_DONE(leeway_rendezvous_erase(store, "key"));
  EXPECT_EQ(leeway_rendezvous_get(store, "key", 0, data, sizeof data, &bytes),
            LEEWAY_DEADLINE_EXCEEDED);
  leeway_rendezvous_free(store);
  std::filesystem::remove_all(folder);
}

TEST(CRendezvous, ErrorsOfCallbacksKeepCodeAndText) {
  Map map;
  leeway_store_callbacks callbacks = map.callbacks();
  leeway_rendezvous* store = nullptr;
  callbacks.put = [](void*, const char*, const void*, std::size_t) {
    return leeway_fail(LEEWAY_UNAVAILABLE, "the store sleeps");
  };
  callbacks.get = [](void*, const char*, std::int64_t, leeway_value*) -> leeway_status {
    return LEEWAY_OK;
  };
  ASSERT_DONE(leeway_rendezvous_create(&callbacks, &store));
  EXPECT_FAILS(leeway_rendezvous_put(store, "key", "value", 5), LEEWAY_UNAVAILABLE,
               "the store sleeps");
  std::size_t bytes = 0;
  EXPECT_FAILS(leeway_rendezvous_get(store, "key", 0, nullptr, 0, &bytes), LEEWAY_INTERNAL,
               "leeway_value_set");
  leeway_rendezvous_free(store);
  callbacks.put = [](void*, const char*, const void*, std::size_t) -> leeway_status { return 77; };
  ASSERT_DONE(leeway_rendezvous_create(&callbacks, &store));
  EXPECT_FAILS(leeway_rendezvous_put(store, "key", "value", 5), LEEWAY_INTERNAL, "77");
  leeway_rendezvous_free(store);
  callbacks.put = nullptr;
  map.destroyed = 0;
  EXPECT_FAILS(leeway_rendezvous_create(&callbacks, &store), LEEWAY_INVALID_ARGUMENT,
               "put is NULL");
  EXPECT_EQ(store, nullptr);
  EXPECT_EQ(map.destroyed, 0);
}

}  // namespace
}  // namespace leeway::c_abi
