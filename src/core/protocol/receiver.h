// Receives data and the ENDs behind it, and asks for what is missing. Datagrams are untrusted until
// they are checked against the plan. One that does not fit the plan is refused and counted.
#pragma once

#include "protocol/early_datagrams.h"
#include "protocol/inquiry.h"
#include "protocol/progress.h"
#include "protocol/recovery.h"
#include "protocol/watched_tags.h"

namespace leeway::protocol {

class Receiver {
 public:
  Receiver(EndpointState& state, Settling& settling, Progress& progress, Inquiry& inquiry,
           WatchedTags& tags)
      : state_(state),
        settling_(settling),
        progress_(progress),
        inquiry_(inquiry),
        tags_(tags),
        recovery_(state.counters),
        early_(state.config.size, state.config.datagram_bytes) {}

  // All parameters fit into registers. When one was on the stack, the processor waited for all
  // earlier stores before it could read it: those of the last packet's payload. Together with the
  // same change in UcxSender::send_one(), this saves an all-reduce over shared memory 5 % of its
  // time.
  void on_data(Instant now, Rank from, const wire::DataHeader& header, ByteSpan datagram);
  void on_end(Instant now, Rank from, const wire::End& end);
  // Gives up an open flow, or asks for more of it, when that is due.
  void wake(Instant now, Round& round, FlowKind kind, Rank peer);

  // Takes in datagrams that came before the operation opened.
  void replay_early(Instant now, Round& round);
  // Drops early datagrams of collectives below this number, which will not be opened.
  void skip_collectives_below(std::uint32_t number) { early_.skip_collectives_below(number); }
  // Notes the messages of a tag that came before the tag was watched.
  void note_early(std::uint32_t tag);

 private:
  void accept_data(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                   ByteSpan payload);
  void accept_parity(Instant now, Round& round, Rank from, const wire::DataHeader& header,
                     ByteSpan payload);
  void after_arrival(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  template <typename Header>
  bool same_length(Instant now, Round& round, Rank from, const Header& header);
  bool take_length(Instant now, Round& round, Rank from, std::uint32_t packets, std::uint32_t tail);
  void without_round(Rank from, const wire::DataHeader& header, ByteSpan datagram);
  void touch(Rank from, std::uint32_t tag);
  void watch_chunks(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  void note_last_copy(Instant now, Round& round, Rank from, const wire::DataHeader& header);
  void tell_settled(Rank peer);
  void dispute(Instant now, Round& round, Rank from);
  void ask_again(Instant now, Round& round, FlowKind kind, Rank peer);
  void on_abandoned(Instant now, Round& round, FlowKind kind, Rank peer);

  EndpointState& state_;
  Settling& settling_;
  Progress& progress_;
  Inquiry& inquiry_;
  WatchedTags& tags_;
  Recovery recovery_;
  EarlyDatagrams early_;
};

}  // namespace leeway::protocol
