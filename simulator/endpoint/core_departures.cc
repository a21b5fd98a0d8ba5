// The way of a train from the core to the network.
#include "endpoint/core_endpoints.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/contracts.h"
#include "wire/packet.h"

namespace leeway::sim {
namespace {

Traffic traffic_of(ByteSpan datagram) {
  wire::Prefix prefix;
  LEEWAY_ASSERT(wire::peek_prefix(datagram, prefix) == wire::Refusal::none);  // the core made it
  return prefix.type == wire::PacketType::data ? Traffic::data : Traffic::control;
}

}  // namespace

// Schedules pump() after all other events of this instant. So one pump answers all datagrams that
// arrive together, like a receiver that first empties its socket.
void CoreEndpoints::want_pump(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  if (process.pump_due || process.paused || process.dead) return;
  process.pump_due = true;
  queue_.push(now, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::pump));
}

void CoreEndpoints::pump(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  process.pump_due = false;
  if (process.paused || process.dead) return;
  if (process.roaming != nullptr) {
    send_onward(now, rank);
    change_keys(now, rank);
    roam(now, rank);
  }
  process.node->on_wake(now);
  while (process.uplink.has_room(now, network_) && process.node->poll_train(now, buffer_))
    launch(now, rank, buffer_.train());
  for (const Seat* seat : process.seats) {
    CoreObserver* const observer = communicators_[seat->communicator].observer;
    if (observer != nullptr) observer->on_pumped(now, seat->rank, seat->member->engine());
  }
  // clients may join and leave communicators in this loop
  for (std::size_t i = process.seats.size(); i-- > 0 && !process.dead;) {
    if (i < process.seats.size()) settle(now, *process.seats[i]);
  }
  if (!process.dead && !process.pump_due) arm(now, rank);
}

void CoreEndpoints::launch(Instant now, std::uint32_t rank, const Train& train) {
  const bool seals = processes_[rank].seals != nullptr;
  const Rank relay = seals ? processes_[rank].roaming->via(train.to) : kNoRank;
  if (relay != kNoRank) return send_relayed(now, rank, train, relay);
  const ByteSpan bytes = seals ? seal_train(now, rank, train) : in_a_row(train);
  const std::size_t segment_bytes = train.segment_bytes + (seals ? seal::kOverheadBytes : 0);
  for (std::size_t at = 0; at < bytes.size(); at += segment_bytes) {
    const ByteSpan datagram = bytes.subspan(at, std::min(segment_bytes, bytes.size() - at));
    const bool shared = train.to == kEveryRank;
    const auto& hearers = processes_[rank].hearers;
    if (shared && hearers.empty()) continue;  // the first switch drops it
    const ByteSpan contents = seals ? contents_of(datagram) : datagram;
    const Traffic traffic = traffic_of(contents);
    tell_cut(train, rank, contents);
    const bool header_alone = !contents_ && traffic == Traffic::data;
    const std::uint64_t word =
        seals ? note_sent(now, rank, processes_[rank].roaming->address_of(train.to),
                          datagram.size(), /*path_message=*/false)
              : lane_of(rank);
    const Packet packet{.from = rank_of(rank),
                        .to = train.to,
                        .bytes = static_cast<std::uint32_t>(datagram.size()) + kHeaderBytes,
                        .payload = network_.payloads().put(
                            header_alone ? datagram.first(wire::kDataHeaderBytes) : datagram),
                        .word = word,
                        .traffic = traffic,
                        .ecn_capable = ecn_capable_};
    shared ? network_.send_shared(now, packet, hearers) : network_.send(now, packet);
  }
}

// Sends path messages as the library's transport does (transport/sealed).
void CoreEndpoints::roam(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  process.roaming->set_busy(now, process.node->busy());
  process.roaming->on_wake(now);
  while (const auto outgoing = process.roaming->poll()) {
    std::array<std::byte, seal::kPathMessageBytesMax> message;
    const std::size_t bytes = seal::encode_path_message(outgoing->message, message);
    sealed_.resize(bytes + seal::kOverheadBytes);
    (void)process.seals->seal_path_message(outgoing->slot, ByteSpan(message).first(bytes), sealed_);
    if (outgoing->via == kNoRank) {
      send_path_message(now, rank, outgoing->slot, outgoing->to, sealed_, /*core=*/false);
    } else {
      seal_for_relay(rank, outgoing->slot, outgoing->via, sealed_);
      send_path_message(now, rank, outgoing->via, process.roaming->address_of(outgoing->via),
                        relayed_, /*core=*/false);
    }
  }
  while (const auto move = process.roaming->poll_move()) {
    const std::size_t further = move->via == kNoRank ? 0 : seal::kRelayOverheadBytes;
    if (!move->same_host) process.node->on_new_path(now, move->slot, move->via, further);
  }
  while (const auto share = process.shares.poll())
    process.node->on_relay_share(now, share->relay, share->bytes_per_second);
}

// Sends the messages that change keys.
void CoreEndpoints::change_keys(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  process.seals->on_wake(now);
  while (const auto message = process.seals->poll_message()) {
    process.roaming->on_sent(now, message->slot);
    const Rank relay = process.roaming->via(message->slot);
    const Rank to = relay == kNoRank ? message->slot : relay;
    const NetworkAddress& address = process.roaming->address_of(to);
    if (relay != kNoRank) {
      process.roaming->on_sent(now, relay);
      seal_for_relay(rank, message->slot, relay, message->datagram);
    }
    send_path_message(now, rank, to, address,
                      relay == kNoRank ? message->datagram : ByteSpan(relayed_),
                      /*core=*/true);
  }
}

// Sends the datagrams that the process forwards as a relay.
void CoreEndpoints::send_onward(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  const congestion::Uplink* const uplink = process.node->uplink();
  process.forwarding.set_uplink(uplink == nullptr ? 0 : uplink->pace().bits_per_second);
  for (const Onward& onward : process.onward) {
    if (!onward.is_share) process.node->note_forwarded(now, onward.length);
    process.roaming->on_sent(now, onward.to);
    const std::uint64_t word = note_sent(now, rank, process.roaming->address_of(onward.to),
                                         onward.length, onward.is_share);
    network_.send(now, {.from = rank,
                        .to = onward.to,
                        .bytes = onward.length + kHeaderBytes,
                        .payload = onward.payload,
                        .word = word,
                        .traffic = Traffic::control,
                        .ecn_capable = ecn_capable_});
  }
  process.onward.clear();
}

// Sends a train through a relay. A relay may drop datagrams, and observers of the network cannot
// see which ones. So observers are told that all datagrams of the train are lost.
void CoreEndpoints::send_relayed(Instant now, std::uint32_t rank, const Train& train, Rank relay) {
  const seal::Roaming& roaming = *processes_[rank].roaming;
  const ByteSpan bytes = seal_train(now, rank, train);
  const std::size_t segment_bytes = train.segment_bytes + seal::kOverheadBytes;
  for (std::size_t at = 0; at < bytes.size(); at += segment_bytes) {
    const ByteSpan datagram = bytes.subspan(at, std::min(segment_bytes, bytes.size() - at));
    if (communicators_[0].observer != nullptr)
      tell_loss(train.to, rank, wire::epoch_of(contents_of(datagram)).value_or(0));
    seal_for_relay(rank, train.to, relay, datagram);
    send_path_message(now, rank, relay, roaming.address_of(relay), relayed_, /*core=*/true);
  }
  processes_[rank].roaming->on_sent(now, relay);
}

// Writes the datagram, sealed once more for the relay, into relayed_.
void CoreEndpoints::seal_for_relay(std::uint32_t rank, Rank to, Rank relay, ByteSpan datagram) {
  Process& process = processes_[rank];
  process.shares.on_sent(relay, 1);
  std::array<std::byte, seal::kRelayHeadBytes> head;
  seal::encode_relay_head(
      {seal::RelayHead::Kind::onward, Ecn::none, process.forwarding.name_of(to)}, head);
  const std::array<Slice, 2> pieces = {Slice{head.data(), head.size()},
                                       Slice{datagram.data(), datagram.size()}};
  relayed_.resize(datagram.size() + seal::kRelayOverheadBytes);
  (void)process.seals->seal_path_message(relay, pieces, relayed_);
}

// Sends the sealed message to `address` of process `to`. If `core` is true, the message contains a
// datagram of the core, which may go only to an address that has answered.
void CoreEndpoints::send_path_message(Instant now, std::uint32_t rank, Rank to,
                                      const NetworkAddress& address, ByteSpan sealed, bool core) {
  const std::uint64_t word = note_sent(now, rank, address, sealed.size(), !core);
  network_.send(now, {.from = rank,
                      .to = to,
                      .bytes = static_cast<std::uint32_t>(sealed.size()) + kHeaderBytes,
                      .payload = network_.payloads().put(sealed),
                      .word = word,
                      .traffic = Traffic::control,
                      .ecn_capable = ecn_capable_});
}

std::uint64_t CoreEndpoints::note_sent(Instant now, std::uint32_t rank, const NetworkAddress& to,
                                       std::size_t bytes, bool path_message) {
  addresses_->on_sent(rank, to, bytes, path_message);
  return Addresses::pack(addresses_->outbound(now, rank, to), to);
}

ByteSpan CoreEndpoints::seal_train(Instant now, std::uint32_t rank, const Train& train) {
  sealed_.resize(seal::Associations::sealed_bytes(train));
  (void)processes_[rank].seals->seal(now, train, sealed_);
  processes_[rank].roaming->on_sent(now, train.to);
  return sealed_;
}

ByteSpan CoreEndpoints::in_a_row(const Train& train) {
  if (train.slices.size() == 1) return {train.slices[0].data, train.slices[0].bytes};
  train_bytes_.clear();
  for (const Slice& slice : train.slices)
    train_bytes_.insert(train_bytes_.end(), slice.data, slice.data + slice.bytes);
  return train_bytes_;
}

// Schedules the process's next wake-up: its next timer, or the time when the uplink has room again.
void CoreEndpoints::arm(Instant now, std::uint32_t rank) {
  Process& process = processes_[rank];
  Instant wake = process.node->next_wake();
  const Instant writable = process.uplink.writable_at();
  if (writable > now) wake = std::min(wake, writable);
  if (process.roaming != nullptr)
    wake = std::min({wake, process.roaming->next_wake(), process.seals->next_wake()});
  const Instant at = std::max(wake, now + Duration(1));
  if (at >= process.wake_at) return;  // an earlier wake-up is armed, and will check again
  process.wake_at = at;
  queue_.push(at, rank, static_cast<std::uint32_t>(EventKind::endpoint),
              static_cast<std::uint64_t>(Step::wake));
}

}  // namespace leeway::sim
