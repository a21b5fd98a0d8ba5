#include "rendezvous/store_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "leeway/rendezvous.h"
#include "unit/rendezvous/loopback_peer.h"

namespace leeway::rendezvous {
namespace {

ByteSpan bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A request that a reader saw, with copies of its keys and values.
struct Taken {
  StoreOperation operation;
  std::string key;
  std::string value;
  StoreRequest rest;
};

std::vector<Taken> read_requests(FrameReader& reader, const std::string& bytes, bool& ours) {
  std::vector<Taken> taken;
  ours = reader.feed_requests(bytes_of(bytes), [&](const StoreRequest& request) {
    taken.push_back({request.operation,
                     std::string(request.key),
                     {reinterpret_cast<const char*>(request.value.data()), request.value.size()},
                     request});
  });
  return taken;
}

std::string two_requests() {
  StoreRequest put;
  put.operation = StoreOperation::put;
  put.number = 7;
  put.readers = 3;
  put.with_connection = true;
  put.key = "leeway/0/a%2F";
  const std::string value = "the value";
  put.value = bytes_of(value);
  std::string bytes = greeting();
  append_request(put, bytes);
  return bytes + request_of(StoreOperation::get, "b", {}, 8);
}

TEST(FrameReader, GivesBackWhatWasAppended) {
  FrameReader reader;
  bool ours = false;
  const auto taken = read_requests(reader, two_requests(), ours);
  EXPECT_TRUE(ours);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].operation, StoreOperation::put);
  EXPECT_EQ(taken[0].key, "leeway/0/a%2F");
  EXPECT_EQ(taken[0].value, "the value");
  EXPECT_EQ(taken[0].rest.number, 7u);
  EXPECT_EQ(taken[0].rest.readers, 3u);
  EXPECT_TRUE(taken[0].rest.with_connection);
  EXPECT_FALSE(taken[0].rest.quiet);
  EXPECT_EQ(taken[1].operation, StoreOperation::get);
  EXPECT_EQ(taken[1].key, "b");
  EXPECT_EQ(reader.buffered(), 0u);
}

TEST(FrameReader, DoesNotMindHowTheBytesAreCut) {
  const std::string all = two_requests();
  for (std::size_t piece = 1; piece < all.size(); ++piece) {
    FrameReader reader;
    std::size_t requests = 0;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      bool ours = false;
      requests += read_requests(reader, all.substr(at, piece), ours).size();
      ASSERT_TRUE(ours) << piece;
      EXPECT_LT(reader.buffered(), all.size());
    }
    EXPECT_EQ(requests, 2u) << piece;
    EXPECT_EQ(reader.buffered(), 0u);
  }
}

TEST(FrameReader, RefusesAtTheFirstByteThatIsNotOurs) {
  for (const std::string& bytes :
       {std::string("G"), std::string("LX"), std::string("\0", 1), std::string("LWRS\0\2", 6)}) {
    FrameReader reader;
    bool ours = true;
    EXPECT_TRUE(read_requests(reader, bytes, ours).empty());
    EXPECT_FALSE(ours);
    EXPECT_EQ(reader.buffered(), 0u);
    (void)read_requests(reader, two_requests(), ours);
    EXPECT_FALSE(ours) << "once refused, for ever";
  }
}

// The reader must keep no bytes of a message that cannot be valid, whatever length it announces.
TEST(FrameReader, RefusesLengthsBeforeItKeepsAnything) {
  const auto header = [](std::size_t key_bytes, std::uint32_t value_bytes) {
    std::string bytes = greeting() + std::string(16, '\0');
    bytes[8] = static_cast<char>(StoreOperation::put);
    bytes[10] = static_cast<char>(key_bytes >> 8);
    bytes[11] = static_cast<char>(key_bytes);
    for (int i = 0; i < 4; ++i) bytes[12 + i] = static_cast<char>(value_bytes >> (24 - 8 * i));
    return bytes;
  };
  const auto accepts = [](const std::string& bytes) {
    FrameReader reader;
    bool ours = false;
    (void)read_requests(reader, bytes, ours);
    if (!ours) {
      EXPECT_EQ(reader.buffered(), 0u);
    }
    return ours;
  };
  EXPECT_TRUE(accepts(header(1, 0)));
  EXPECT_TRUE(accepts(header(Rendezvous::kKeyBytesMax, Rendezvous::kValueBytesMax)));
  EXPECT_FALSE(accepts(header(0, 5)));
  EXPECT_FALSE(accepts(header(Rendezvous::kKeyBytesMax + 1, 5)));
  EXPECT_FALSE(accepts(header(1, Rendezvous::kValueBytesMax + 1)));
  EXPECT_FALSE(accepts(header(1, 0xFFFFFFFF)));
}

TEST(FrameReader, ReadsAnswersAndRefusesImpossibleOnes) {
  const auto answer = [](StoreOutcome outcome, const std::string& value) {
    const auto header = answer_header(outcome, 5, value.size());
    return greeting() + std::string(reinterpret_cast<const char*>(header.data()), header.size()) +
           value;
  };
  const auto accepts = [](const std::string& bytes, std::string* value = nullptr) {
    FrameReader reader;
    return reader.feed_answers(bytes_of(bytes), [value](const StoreAnswer& one) {
      EXPECT_EQ(one.number, 5u);
      if (value != nullptr)
        value->assign(reinterpret_cast<const char*>(one.value.data()), one.value.size());
    });
  };
  std::string value;
  EXPECT_TRUE(accepts(answer(StoreOutcome::found, "abc"), &value));
  EXPECT_EQ(value, "abc");
  EXPECT_TRUE(accepts(answer(StoreOutcome::absent, "")));
  EXPECT_FALSE(accepts(answer(StoreOutcome::absent, "abc")));
  EXPECT_FALSE(accepts(answer(static_cast<StoreOutcome>(4), "")));
}

}  // namespace
}  // namespace leeway::rendezvous
