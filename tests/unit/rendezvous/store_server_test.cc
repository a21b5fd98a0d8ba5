// Tests the server without sockets: with a hand clock, and numbers for connections.
#include "rendezvous/store_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

using namespace std::chrono_literals;

class StoreServerTest : public ::testing::Test {
 protected:
  StoreServerTest() { reset({}); }

  void reset(const RendezvousLimits& limits) {
    limits_ = limits;
    server_.reset();
    table_.emplace(limits.bytes_max);
    server_.emplace(limits_, *table_);
  }

  void accept(StoreServer::Id id) { server_->on_accept(now_, id); }
  void say(StoreServer::Id id, const std::string& bytes) {
    server_->on_bytes(now_, id, std::as_bytes(std::span(bytes)));
  }
  void greet(StoreServer::Id id) {
    accept(id);
    say(id, greeting());
  }
  void pass(Duration time) {
    now_ += time;
    server_->on_wake(now_);
  }

  // Sends all answers, and returns "outcome:value" of each one to this connection.
  std::vector<std::string> heard(StoreServer::Id id) {
    for (StoreServer::Answer& answer : server_->poll_answers()) {
      std::vector<std::byte> bytes = answer.head;
      if (answer.value) bytes.insert(bytes.end(), answer.value->begin(), answer.value->end());
      const bool ours = readers_[answer.to].feed_answers(bytes, [&](const StoreAnswer& one) {
        static constexpr const char* kNames[] = {"done", "found", "absent", "full"};
        heard_[answer.to].push_back(
            std::string(kNames[static_cast<int>(one.outcome)]) + ":" +
            std::string(reinterpret_cast<const char*>(one.value.data()), one.value.size()));
      });
      EXPECT_TRUE(ours);
      server_->on_sent(now_, answer.to, 1);
    }
    return std::exchange(heard_[id], {});
  }
  // Returns why the connection was closed, or an empty string.
  std::string closed(StoreServer::Id id) {
    for (const StoreServer::Closing& closing : server_->poll_closings())
      closed_[closing.id] = closing.reason;
    return closed_[id];
  }

  RendezvousLimits limits_;
  Instant now_;
  std::optional<StoreTable> table_;
  std::optional<StoreServer> server_;
  std::map<StoreServer::Id, FrameReader> readers_;
  std::map<StoreServer::Id, std::vector<std::string>> heard_;
  std::map<StoreServer::Id, std::string> closed_;
};

using Heard = std::vector<std::string>;

TEST_F(StoreServerTest, GetsWhatAnotherPut) {
  greet(1);
  greet(2);
  say(1, request_of(StoreOperation::put, "key", "value"));
  EXPECT_EQ(heard(1), Heard{"done:"});
  say(2, request_of(StoreOperation::look, "key"));
  EXPECT_EQ(heard(2), Heard{"found:value"});
}

TEST_F(StoreServerTest, AnswersAGetWhenTheKeyComes) {
  greet(1);
  greet(2);
  say(1, request_of(StoreOperation::get, "key", {}, 5));
  EXPECT_EQ(heard(1), Heard{});
  say(2, request_of(StoreOperation::put, "key", "value"));
  EXPECT_EQ(heard(1), Heard{"found:value"});
}

TEST_F(StoreServerTest, AnswersAGetWhenThisProcessPuts) {
  greet(1);
  say(1, request_of(StoreOperation::get, "key"));
  const std::string value = "ours";
  ASSERT_TRUE(server_->put_here(now_, "key", std::as_bytes(std::span(value)), 0));
  EXPECT_EQ(heard(1), Heard{"found:ours"});
}

TEST_F(StoreServerTest, ForgetsACancelledGet) {
  greet(1);
  greet(2);
  say(1, request_of(StoreOperation::get, "key", {}, 5));
  say(1, request_of(StoreOperation::cancel, "", {}, 5));
  say(1, request_of(StoreOperation::cancel, "", {}, 6));  // no such get: it may be on its way
  say(2, request_of(StoreOperation::put, "key", "value"));
  EXPECT_EQ(heard(1), Heard{});
  EXPECT_EQ(closed(1), "");
}

TEST_F(StoreServerTest, LastPutWinsAndEraseForgets) {
  greet(1);
  say(1, request_of(StoreOperation::put, "key", "one") +
             request_of(StoreOperation::put, "key", "two") +
             request_of(StoreOperation::look, "key") + request_of(StoreOperation::erase, "key") +
             request_of(StoreOperation::look, "key"));
  EXPECT_EQ(heard(1), (Heard{"done:", "done:", "found:two", "done:", "absent:"}));
  EXPECT_EQ(table_->bytes(), 0u);
}

std::string put_with_connection(std::string_view key, std::string_view value) {
  StoreRequest request;
  request.operation = StoreOperation::put;
  request.with_connection = true;
  request.quiet = true;
  request.key = key;
  request.value = std::as_bytes(std::span(value));
  std::string bytes;
  append_request(request, bytes);
  return bytes;
}

TEST_F(StoreServerTest, AKeyGoesWithItsConnectionUnlessAnotherPutItAnew) {
  greet(1);
  greet(2);
  greet(3);
  say(1, put_with_connection("a", "1") + put_with_connection("b", "1"));
  EXPECT_EQ(heard(1), Heard{}) << "a quiet put has no answer";
  say(2, put_with_connection("b", "2"));
  server_->on_closed(1);
  say(3, request_of(StoreOperation::look, "a") + request_of(StoreOperation::look, "b"));
  EXPECT_EQ(heard(3), (Heard{"absent:", "found:2"}));
}

TEST_F(StoreServerTest, AKeyThatHadAllItsReadersGivesWayWhenRoomIsNeeded) {
  limits_.bytes_max = 2000;
  reset(limits_);
  greet(1);
  greet(2);
  say(2, request_of(StoreOperation::get, "key", {}, 1));
  StoreRequest request;
  request.operation = StoreOperation::put;
  request.readers = 2;
  request.key = "key";
  const std::string kilobyte(1000, 'x');
  request.value = std::as_bytes(std::span(kilobyte));
  std::string bytes;
  append_request(request, bytes);
  const std::string look = request_of(StoreOperation::look, "key");
  const std::string other = request_of(StoreOperation::put, "other", kilobyte);
  say(1, bytes + other);
  EXPECT_EQ(heard(1), (Heard{"done:", "full:"})) << "one reader of two was told";
  say(1, look + look);
  EXPECT_EQ(heard(1).size(), 2u) << "there is room enough";
  say(1, other + look);
  EXPECT_EQ(heard(1), (Heard{"done:", "absent:"}));
}

TEST_F(StoreServerTest, ClosesWhatDoesNotSpeakItsProtocol) {
  greet(1);
  accept(2);
  say(2, "GET / HTTP/1.1\r\n");
  EXPECT_EQ(closed(2), "not a message of ours");
  EXPECT_EQ(server_->counters().strangers, 1u);
  say(1, std::string(16, '\xff'));
  EXPECT_EQ(closed(1), "not a message of ours");
  EXPECT_EQ(server_->counters().refused, 1u);
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(StoreServerTest, ClosesAStrangerThatKeepsSilentTooLong) {
  accept(1);
  now_ += 2s;
  accept(2);
  say(2, "LWRS");
  ASSERT_TRUE(server_->next_wake().has_value());
  EXPECT_EQ((*server_->next_wake() - now_), 1s);
  pass(1s);
  EXPECT_EQ(closed(1), "no greeting in time");
  EXPECT_EQ(closed(2), "");
  pass(2s);
  EXPECT_EQ(closed(2), "no greeting in time");
  EXPECT_FALSE(server_->next_wake().has_value());
}

TEST_F(StoreServerTest, ClosesAStrangerAtRandomWhereThereAreTooMany) {
  limits_.half_open_max = 8;
  reset(limits_);
  greet(1);
  for (StoreServer::Id id = 2; id < 100; ++id) accept(id);
  EXPECT_EQ(server_->connections(), 9u);
  EXPECT_EQ(closed(1), "");
  int early_ones_left = 0;
  for (StoreServer::Id id = 2; id < 90; ++id) early_ones_left += closed(id).empty();
  EXPECT_GT(early_ones_left, 0);  // closing the oldest first would close all of them
  EXPECT_EQ(closed(99), "");
}

TEST_F(StoreServerTest, LetsNoNetworkHaveMoreThanItsShareOfStrangers) {
  limits_.half_open_max = 8;
  limits_.half_open_network_max = 2;
  reset(limits_);
  constexpr std::uint64_t kFlood = 77;
  server_->on_accept(now_, 1, 5);
  for (StoreServer::Id id = 2; id < 50; ++id) server_->on_accept(now_, id, kFlood);
  EXPECT_EQ(server_->connections(), 3u);
  EXPECT_EQ(closed(1), "");
  EXPECT_EQ(server_->counters().strangers, 46u);
  // Connections from this host have only the common limit.
  for (StoreServer::Id id = 50; id < 55; ++id) server_->on_accept(now_, id, 0);
  EXPECT_EQ(server_->connections(), 8u);
}

TEST_F(StoreServerTest, ClosesAMessageThatDripsFromItsFirstByteOn) {
  greet(1);
  const std::string whole = request_of(StoreOperation::put, "key", std::string(100, 'x'));
  for (std::size_t i = 0; i < 30; ++i) {
    say(1, whole.substr(i, 1));
    pass(1s);
  }
  EXPECT_EQ(closed(1), "its message never became complete");
}

TEST_F(StoreServerTest, ClosesTheIdleAndKeepsThoseThatWaitOrAreAwaited) {
  greet(1);
  greet(2);
  greet(3);
  say(2, request_of(StoreOperation::get, "key"));
  say(3, put_with_connection("mine", ""));
  now_ += 59s;
  say(1, request_of(StoreOperation::look, "key"));
  (void)heard(1);
  pass(59s);
  EXPECT_EQ(closed(1), "") << "it asked in between";
  pass(1s);
  EXPECT_EQ(closed(1), "idle");
  pass(1h);
  EXPECT_EQ(closed(2) + closed(3), "");
}

TEST_F(StoreServerTest, ClosesAConnectionThatDoesNotReadItsAnswers) {
  greet(1);
  say(1, request_of(StoreOperation::look, "key"));
  pass(29s);
  EXPECT_EQ(closed(1), "");
  pass(1s);
  EXPECT_EQ(closed(1), "it does not read its answers");
}

TEST_F(StoreServerTest, TakesTheLongestIdlesPlaceForANewConnection) {
  limits_.connections_max = 2;
  reset(limits_);
  greet(1);
  greet(2);
  say(1, request_of(StoreOperation::get, "key"));
  accept(3);
  EXPECT_EQ(closed(2), "too many connections, and this one idle longest");
  say(3, greeting() + request_of(StoreOperation::get, "key"));
  accept(4);
  EXPECT_EQ(closed(4), "too many connections");
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(StoreServerTest, HoldsNoMoreThanItMay) {
  limits_.bytes_max = 2000;
  reset(limits_);
  greet(1);
  greet(2);
  const std::string kilobyte(1000, 'x');
  say(1, request_of(StoreOperation::put, "one", kilobyte) +
             request_of(StoreOperation::put, "two", kilobyte));
  EXPECT_EQ(heard(1), (Heard{"done:", "full:"}));
  EXPECT_EQ(server_->counters().full, 1u);
  // Incomplete messages count, too.
  say(2, request_of(StoreOperation::put, "two", kilobyte).substr(0, 900));
  EXPECT_EQ(closed(2), "no room for its message");
  EXPECT_LE(server_->bytes(), 2000u);
}

// Incomplete messages once did not count beside a stored key, so the server held too much.
TEST_F(StoreServerTest, HoldsNoMoreThanItMayBesideAnIncompleteMessage) {
  limits_.bytes_max = 2000;
  reset(limits_);
  greet(1);
  greet(2);
  say(2, request_of(StoreOperation::put, "two", std::string(1000, 'x')).substr(0, 900));
  say(1, request_of(StoreOperation::put, "one", std::string(1000, 'x')));
  EXPECT_LE(server_->bytes(), 2000u);
  EXPECT_EQ(heard(1), Heard{"full:"});
}

// A replaced value still takes memory while it is being sent, so it must count.
TEST_F(StoreServerTest, CountsReplacedValuesThatAreStillBeingSent) {
  limits_.bytes_max = 3000;
  reset(limits_);
  greet(1);
  const std::string kilobyte(1000, 'x');
  for (int i = 0; i < 10; ++i) {
    say(1,
        request_of(StoreOperation::put, "key", kilobyte) + request_of(StoreOperation::look, "key"));
  }
  EXPECT_LE(server_->bytes(), 3000u);
  EXPECT_GT(server_->counters().full, 0u);
  (void)heard(1);
  EXPECT_LT(server_->bytes(), 2000u);
}

TEST_F(StoreServerTest, ClosesAConnectionWithTooManyRequests) {
  limits_.requests_max = 8;
  reset(limits_);
  greet(1);
  std::string bytes;
  for (std::uint32_t i = 0; i < 9; ++i) bytes += request_of(StoreOperation::get, "key", {}, i);
  say(1, bytes);
  EXPECT_EQ(closed(1), "too many requests that wait");
  greet(2);
  say(2, request_of(StoreOperation::get, "key", {}, 1) +
             request_of(StoreOperation::get, "key", {}, 1));
  EXPECT_EQ(closed(2), "two requests of one number");
}

TEST_F(StoreServerTest, ClosesTheConnectionWithTheMostRequestsWhereThereAreTooMany) {
  limits_.all_requests_max = 8;
  reset(limits_);
  greet(1);
  greet(2);
  std::string bytes;
  for (std::uint32_t i = 0; i < 7; ++i) bytes += request_of(StoreOperation::get, "key", {}, i);
  say(1, bytes);
  for (std::uint32_t i = 0; i < 2; ++i) say(2, request_of(StoreOperation::get, "key", {}, i));
  EXPECT_EQ(closed(1), "too many requests that wait");
  EXPECT_EQ(closed(2), "");
  const std::string value = "ours";
  ASSERT_TRUE(server_->put_here(now_, "key", std::as_bytes(std::span(value)), 0));
  EXPECT_EQ(heard(2), (Heard{"found:ours", "found:ours"}));
}

// A quarter of a million gets may wait for one key, all of one member. When each get was searched
// for among all, ending them took 12 s.
TEST_F(StoreServerTest, ForgetsAQuarterOfAMillionWaitingGetsAtOnce) {
  const auto count = static_cast<std::uint32_t>(limits_.requests_max);
  const StoreServer::Id connections = limits_.all_requests_max / limits_.requests_max;
  std::string bytes;
  for (std::uint32_t i = 0; i < count; ++i) bytes += request_of(StoreOperation::get, "key", {}, i);
  for (StoreServer::Id id = 1; id <= connections; ++id) {
    greet(id);
    say(id, bytes);
  }
  const auto begun = std::chrono::steady_clock::now();
  for (StoreServer::Id id = connections; id > 0; --id) server_->on_closed(id);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 5s);
  EXPECT_EQ(server_->connections(), 0u);
}

TEST_F(StoreServerTest, IgnoresWhatComesAfterItClosed) {
  accept(1);
  say(1, "junk");
  say(1, greeting());
  server_->on_closed(1);
  server_->on_sent(now_, 1, 1);
  EXPECT_EQ(server_->connections(), 0u);
}

}  // namespace
}  // namespace leeway::rendezvous
