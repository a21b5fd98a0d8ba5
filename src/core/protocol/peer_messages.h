// Messages (send/recv) between this rank and one peer. Any number may be open. Only some *talk*:
// they are sent, asked for and reported. So the cost of a datagram or a wake-up does not depend on
// how many messages are posted.
//
// Two kinds of messages talk. First, the oldest limits::kTalkingMessagesMax messages of each tag
// that has a *turn*. Tag 0 always has one, and in each direction the limits::kTalkingTagsMax other
// tags that have been open longest. Second, messages that the peer mentions, because both sides
// have them open. Without the second kind, two ranks that post the same tags in different orders
// could wait for each other's turns for ever.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/contracts.h"
#include "base/limits.h"
#include "base/time.h"
#include "protocol/round.h"
#include "protocol/serial_number.h"

namespace leeway::protocol {

// Open messages of one direction, by rising number. Allocates only in push().
class MessageList {
 public:
  std::size_t size() const { return rounds_.size() - first_; }
  bool empty() const { return size() == 0; }
  Round& operator[](std::size_t i) const { return *rounds_[first_ + i]; }

  // Number of messages, from the oldest on, that may talk.
  std::size_t foremost() const {
    return std::min<std::size_t>(size(), limits::kTalkingMessagesMax);
  }

  void push(Round& round) {
    if (first_ > rounds_.size() / 2) {
      rounds_.erase(rounds_.begin(), rounds_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    rounds_.push_back(&round);
  }

  // Returns null if no message of this number is open.
  Round* find(std::uint32_t number) const {
    const auto at = lower_bound(number);
    return at != rounds_.end() && (*at)->number == number ? *at : nullptr;
  }

  // Removes a message. Returns the place that it had in the list.
  std::size_t erase(const Round& round) {
    const auto at = lower_bound(round.number);
    LEEWAY_ASSERT(at != rounds_.end() && *at == &round);
    const auto place = static_cast<std::size_t>(at - begin());
    if (place == 0) {
      ++first_;
    } else {
      rounds_.erase(at);
    }
    return place;
  }

 private:
  friend class PeerMessages;
  enum class Turn : std::uint8_t { none, waits, has };

  std::vector<Round*>::const_iterator begin() const {
    return rounds_.begin() + static_cast<std::ptrdiff_t>(first_);
  }
  std::vector<Round*>::const_iterator lower_bound(std::uint32_t number) const {
    return std::lower_bound(
        begin(), rounds_.end(), number,
        [](const Round* round, std::uint32_t wanted) { return after(wanted, round->number); });
  }

  std::vector<Round*> rounds_;
  std::size_t first_ = 0;  // messages before this place are closed
  Turn turn_ = Turn::none;
  std::size_t open_at_ = 0;  // place among the open streams of its direction, if not empty
};

// Messages of one tag, both directions. Sends and receives are numbered apart.
struct MessageStream {
  std::uint32_t tag = 0;
  MessageList sends;
  MessageList receives;
  std::uint32_t sends_opened = 0;  // sends ever opened: number of the next one
  std::uint32_t receives_opened = 0;
  // Number of receives that the peer reported for our sends. For tag 0, Link keeps the number.
  std::uint32_t peer_opened_below = 0;
  // One above the highest message number heard from the peer while the tag was watched.
  std::uint32_t heard_below = 0;

  // Returns true if a message of the peer was heard for which no receive was posted.
  bool unmatched() const { return after(heard_below, receives_opened); }
  MessageList& list(bool send) { return send ? sends : receives; }
};

// All streams between this rank and one peer.
class PeerMessages {
 public:
  // Messages that begin to talk are added to `starting`.
  explicit PeerMessages(std::vector<Round*>& starting);

  // Returns null if no message of this tag has been opened.
  MessageStream* find(std::uint32_t tag) {
    return tag == 0 ? zero_ : const_cast<MessageStream*>(find_other(tag));
  }
  const MessageStream* find(std::uint32_t tag) const { return tag == 0 ? zero_ : find_other(tag); }
  // Makes the stream if there is none.
  MessageStream& stream(std::uint32_t tag);
  // Returns the number of streams. A stream is never forgotten, because its numbers go on.
  std::size_t streams() const { return streams_.size(); }

  // Streams with open sends.
  std::span<MessageStream* const> sending() const { return towards(true).open; }
  // The messages that talk, oldest first. Some may have ended.
  std::span<Round* const> talking() const { return talking_; }
  template <typename Visit>
  void for_each_open(Visit&& visit) const {
    for (const bool send : {true, false}) {
      for (MessageStream* const stream : towards(send).open) {
        const MessageList& list = stream->list(send);
        for (std::size_t i = 0; i < list.size(); ++i) visit(list[i]);
      }
    }
  }

  // Adds a message that opens. `wanted` says that the peer has posted the receive of this send.
  void push(Round& round, bool wanted);
  // Notes that the peer mentioned this message: it is sending it, or has posted its receive.
  void mention(Round& round);
  // Notes that the peer has posted the receives below this number. Returns true if the number has
  // grown.
  bool mention_sends(MessageStream& stream, std::uint32_t opened_below);
  // Counts a send that is done for its caller although the peer may still lack some of it.
  void run_ahead(Round& round);
  std::uint32_t ahead() const { return ahead_; }  // number of such sends that have not ended
  // Removes a message that has ended.
  void erase(Round& round);

  // Puts this stream first among touched(), the streams that reports list because some of their
  // messages have ended.
  void touch(MessageStream& stream);
  std::span<MessageStream* const> touched() const { return {touched_.data(), touched_count_}; }
  // Messages that a report listed. If not all fit, the next report begins behind these.
  struct Listed {
    std::size_t receives = 0;  // places in talking() that the report passed
    std::size_t sends = 0;     // streams of sending()
    std::size_t given_up = 0;  // places of given_up(), from the first on
    std::size_t refused = 0;   // places of refused(), from the first on
  };
  // Places in talking() and in sending() with which the next report begins. Of given_up() and
  // refused() the next report lists the first places.
  Listed report_from() const { return report_from_; }
  // Makes the next report begin behind `listed`. Call it when a report was sent in all its copies.
  void rotate(const Listed& listed);
  // Notes that a message to the peer has ended here before the peer had all of it.
  // limits::kGivenUpReports reports tell the peer this.
  void give_up(std::uint32_t tag, std::uint32_t number);
  // Like give_up(), for a message that does not match the peer's receive. Reports also tell the
  // type and length of the message. After a later give_up() of it they tell this again, because the
  // receive may be posted late.
  void give_up_unmatched(const Round& round);
  struct GivenUp {
    std::uint32_t tag = 0;
    std::uint32_t number = 0;
    int reports = 0;                                // reports that still have to say it
    std::optional<wire::OperationTag> unmatched{};  // what did not match
  };
  // The messages given up, first those that have waited longest to be listed.
  std::span<const GivenUp> given_up() const { return given_up_; }
  // Notes that a receive from the peer has failed here because the message does not match.
  // limits::kRefusedReports reports list the receive, so that the send fails, too.
  void refuse(const Round& round);
  // Notes that the send of a refused message has failed, so that no report need list it any more.
  void note_refusal_heard(std::uint32_t tag, std::uint32_t number);
  // The refused receives, first those that have waited longest to be listed.
  std::span<const GivenUp> refused() const { return refused_; }
  // Returns the lowest number among the receives of this tag in refused() from place `listed` on,
  // or `otherwise` if that is lower or there is none. A report that lists only the first `listed`
  // of refused() must not count the others as posted: a posted receive without an entry is done for
  // the sender.
  std::uint32_t unlisted_below(std::uint32_t tag, std::size_t listed,
                               std::uint32_t otherwise) const;
  // Remembers the streams in the peer's latest report, for streams that are opened here only later.
  void remember(std::span<const wire::OpenedStream> said);

  // A time no later than the earliest deadline of the open messages.
  Instant deadline_at = Instant::infinite_future();
  Instant reported_at{0};  // when a report last announced the receives to the peer

 private:
  // The streams with open messages in one direction.
  struct Direction {
    std::vector<MessageStream*> open;
    std::deque<MessageStream*> waiting;  // for a turn, longest first; some may have closed
    std::size_t turns = 0;               // streams that have one, without tag 0
  };

  const MessageStream* find_other(std::uint32_t tag) const;
  Direction& towards(bool send) { return directions_[send ? 0 : 1]; }
  const Direction& towards(bool send) const { return directions_[send ? 0 : 1]; }
  void start(Round& round);
  void give_turn(MessageStream& stream, bool send);
  void close(MessageStream& stream, bool send);

  std::unordered_map<std::uint32_t, MessageStream> streams_;
  MessageStream* zero_;
  std::array<Direction, 2> directions_;
  std::vector<Round*>& starting_;
  std::vector<Round*> talking_;
  std::size_t open_count_ = 0;
  std::size_t mentioned_receives_ = 0;
  std::array<MessageStream*, limits::kReportedStreamsMax> touched_{};
  std::size_t touched_count_ = 0;
  Listed report_from_;
  std::uint32_t ahead_ = 0;
  std::vector<GivenUp> given_up_;
  std::vector<GivenUp> unmatched_;  // the latest that did not match, latest last
  std::vector<GivenUp> refused_;    // receives
  std::array<wire::OpenedStream, limits::kReportedStreamsMax> said_{};
  std::size_t said_count_ = 0;
};

}  // namespace leeway::protocol
