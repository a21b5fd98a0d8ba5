// Tries every order in which the messages of two processes can arrive, and every loss of them,
// while the keys change all the time.
#include <gtest/gtest.h>

#include <deque>

#include "sealing/null_cipher.h"
#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

using namespace std::chrono_literals;

// Plays one sequence of actions. Messages that stay in flight are lost. Datagrams that arrive must
// be opened, unless two phases have begun since they were sealed. In the end both processes must be
// in the same phase.
class EveryOrder {
 public:
  static constexpr unsigned kWake = 6;
  static constexpr unsigned kActions = 7;

  // Makes `steps` steps of an exchange of keys without loss, and then `actions`. Returns the number
  // of actions that were possible.
  std::size_t play(int steps, std::span<const unsigned> actions) {
    EXPECT_TRUE(pair_.pass(1));
    for (int i = 0; i < steps; ++i) EXPECT_TRUE(act(kWake) && arrive(1 - i % 2, /*first=*/true));
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!act(actions[i])) return i;
    }
    for (int i = 0; i < 3; ++i) pair_.pass_time(1s);
    EXPECT_TRUE(pair_.pass(0) && pair_.pass(1));
    EXPECT_EQ(pair_.end(0).sending_phase(), pair_.end(1).sending_phase());
    EXPECT_GT(pair_.end(0).sending_phase(), 0u);
    return actions.size();
  }

 private:
  struct Sent {
    Bytes datagram;
    std::uint64_t phase = 0;
  };

  bool act(unsigned action) {
    const Rank end = action % 2;
    switch (action / 2) {
      case 0:
        lines_[1 - end].push_back({pair_.seal(end, bytes_of("x")), pair_.end(end).sending_phase()});
        return true;
      case 1:
        return arrive(end, /*first=*/true);
      case 2:
        return arrive(end, /*first=*/false);
      default:
        pair_.now = pair_.now + 30ms;
        for (const Rank from : {0, 1}) {
          for (Bytes& message : pair_.messages(from))
            lines_[1 - from].push_back({std::move(message), pair_.end(from).sending_phase()});
        }
        return true;
    }
  }
  bool arrive(Rank at, bool first) {
    auto& line = lines_[at];
    if (line.size() < (first ? 1 : 2)) return false;
    Sent sent = first ? line.front() : line.back();
    first ? line.pop_front() : line.pop_back();
    const bool opened =
        pair_.ends[at].open_from_anywhere(pair_.now, 1 - at, sent.datagram).from != kNoRank;
    EXPECT_TRUE(opened || sent.phase + 1 < pair_.end(at).receiving_phase());
    const std::uint64_t gap = pair_.end(0).sending_phase() - pair_.end(1).sending_phase();
    EXPECT_LE(gap, 1u);
    return true;
  }

  sim::NullExchange exchange_{1};
  PairOfTwo pair_{{.datagrams = 1}, sim::null_cipher(), exchange_};
  std::array<std::deque<Sent>, 2> lines_;
};

TEST(KeyChangeSearch, NoOrderAndNoLossOfMessagesPartsTheTwo) {
  std::uint64_t played = 0;
  for (int steps = 0; steps < 4; ++steps) {
    std::array<unsigned, 6> actions{};
    for (bool more = true; more && !HasFailure();) {
      const std::size_t done = EveryOrder().play(steps, actions);
      played += done == actions.size();
      // The next sequence skips all sequences that begin with the same actions up to the impossible
      // one.
      std::size_t at = std::min(done, actions.size() - 1);
      std::fill(actions.begin() + static_cast<std::ptrdiff_t>(at) + 1, actions.end(), 0u);
      while (++actions[at] == EveryOrder::kActions && at > 0) actions[at--] = 0;
      more = actions[at] < EveryOrder::kActions;
    }
  }
  EXPECT_GT(played, 40'000u);
}

}  // namespace
}  // namespace leeway::seal
