#include "transport/ucx/wake_proof.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace leeway::transport {
namespace {

constexpr std::uint32_t kMark = 0x656B6157;  // "Wake"

// How long a waker lets its sleeper fall asleep. Twice as long after each attempt that proved
// nothing, since a busy machine may run the sleeper late.
constexpr Duration kDelayFirst = std::chrono::microseconds(200);
constexpr Duration kDelayMax = std::chrono::milliseconds(50);

// How long a sleeper sleeps before it looks whether its answer has come without a wake-up.
constexpr Duration kSleep = std::chrono::milliseconds(100);

// A sender writes its message first and wakes the receiver then, and may be interrupted between.
constexpr Duration kGrace = std::chrono::milliseconds(200);

// Looking for messages without UCX's wake-up, which is not proven yet: ranks may outnumber cores.
constexpr Duration kSpin = std::chrono::microseconds(50);
constexpr Duration kProofNap = std::chrono::microseconds(50);

Instant steady_now() {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch())
              .count()};
}

// Rank `self`'s partner in `round` of a tournament in which all pairs meet once; `size` if it has
// none in this round. Of an even number of places (one may be empty) the last stays, the others are
// paired so that their sum is the round's number.
Rank partner_of(Rank self, Rank round, Rank size) {
  const std::uint32_t places = size + size % 2;
  const std::uint32_t ring = places - 1;
  const auto halved = [&](std::uint32_t sum) { return sum * (places / 2) % ring; };
  std::uint32_t partner = 0;
  if (self == ring) {
    partner = halved(round);
  } else {
    partner = (round + ring - self) % ring;
    if (partner == self) partner = ring;
  }
  return static_cast<Rank>(std::min<std::uint32_t>(partner, size));
}

}  // namespace

UcxWakeProof::UcxWakeProof(UcxTransport& transport, Rank self, int size)
    : transport_(transport), self_(self), size_(static_cast<Rank>(size)), heard_(size_) {}

Status UcxWakeProof::run(Duration timeout) {
  deadline_ = steady_now() + timeout;
  bool in_time = greet();
  const Rank rounds = static_cast<Rank>(size_ - 1 + size_ % 2);
  for (Rank round = 0; round < rounds && in_time; ++round) {
    const Rank partner = partner_of(self_, round, size_);
    in_time = partner == size_ || meet(partner);
  }
  in_time = in_time && exchange_verdicts();
  if (failed()) {
    return Status::error(
        StatusCode::kUnavailable,
        "UCX: rank %u is not woken by what rank %u sends, although it arrives: do they share "
        "memory, but no network namespace? Give their containers one network "
        "(--network=host), or use LEEWAY_TRANSPORT=udp",
        unsigned{sleeper_}, unsigned{waker_});
  }
  if (in_time) return Status();
  return Status::error(StatusCode::kUnavailable,
                       "UCX: rank %u did not hear from all ranks within %.1f s", unsigned{self_},
                       std::chrono::duration<double>(timeout).count());
}

// Afterwards every connection is made, and a message needs its sender's help alone.
bool UcxWakeProof::greet() {
  return tell_all(Kind::hello) && await([this] {
           return std::all_of(heard_.begin(), heard_.end(), [this](const Heard& heard) {
             return heard.hello || &heard == &heard_[self_];
           });
         });
}

bool UcxWakeProof::meet(Rank peer) {
  if (self_ < peer) return sleep_until_woken_by(peer) && wake(peer);
  return wake(peer) && sleep_until_woken_by(peer);
}

bool UcxWakeProof::sleep_until_woken_by(Rank waker) {
  Duration delay = kDelayFirst;
  for (std::uint32_t attempt = 1; !failed(); ++attempt) {
    if (!tell(waker, Kind::ask, attempt, delay)) return false;
    const Outcome outcome = sleep_once(waker, attempt);
    if (outcome == Outcome::out_of_time) return false;
    if (outcome == Outcome::proven) break;
    if (outcome == Outcome::failed) {
      sleeper_ = self_;
      waker_ = waker;
    }
    delay = std::min(2 * delay, kDelayMax);
  }
  return tell(waker, Kind::done);
}

UcxWakeProof::Outcome UcxWakeProof::sleep_once(Rank waker, std::uint32_t attempt) {
  while (!out_of_time()) {
    const UcxTransport::Sleep sleep = transport_.sleep(kSleep);
    const std::size_t others = take_in(waker);
    if (heard_[waker].answered != attempt) {
      if (sleep == UcxTransport::Sleep::refused) sched_yield();
      continue;
    }
    if (sleep == UcxTransport::Sleep::refused || others > 0) return Outcome::unclear;
    if (sleep == UcxTransport::Sleep::woken) return Outcome::proven;
    return transport_.signalled(kGrace) ? Outcome::unclear : Outcome::failed;
  }
  return Outcome::out_of_time;
}

bool UcxWakeProof::wake(Rank sleeper) {
  Heard& heard = heard_[sleeper];
  while (await([&] { return heard.done || heard.asked != 0; })) {
    if (heard.asked == 0) {
      heard.done = false;
      return true;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(heard.delay_us));
    if (!tell(sleeper, Kind::answer, std::exchange(heard.asked, 0))) return false;
  }
  return false;
}

bool UcxWakeProof::exchange_verdicts() {
  return tell_all(Kind::verdict) && await([this] {
           return std::all_of(heard_.begin(), heard_.end(), [this](const Heard& heard) {
             return heard.verdict || &heard == &heard_[self_];
           });
         });
}

bool UcxWakeProof::tell_all(Kind kind) {
  for (Rank peer = 0; peer < size_; ++peer) {
    if (peer != self_ && !tell(peer, kind)) return false;
  }
  return true;
}

bool UcxWakeProof::tell(Rank peer, Kind kind, std::uint32_t attempt, Duration delay) {
  const Message message{kMark,    kind,
                        attempt,  static_cast<std::uint32_t>(delay / std::chrono::microseconds(1)),
                        sleeper_, waker_};
  const Slice slice{reinterpret_cast<const std::byte*>(&message), sizeof(message)};
  const Train train{peer, sizeof(message), sizeof(message), {&slice, 1}};
  while (transport_.send({&train, 1}) == 0) {
    take_in(peer);
    if (out_of_time()) return false;
  }
  return true;
}

std::size_t UcxWakeProof::take_in(Rank peer) {
  std::array<Received, 64> arrived;
  std::size_t others = 0;
  for (std::size_t count = 1; count > 0;) {
    count = transport_.receive(arrived);
    for (const Received& datagram : std::span(arrived).first(count)) {
      others += datagram.from != peer;
      take(datagram);
    }
  }
  return others;
}

void UcxWakeProof::take(const Received& datagram) {
  Message message;
  if (datagram.bytes.size() != sizeof(message)) return;
  std::memcpy(&message, datagram.bytes.data(), sizeof(message));
  if (message.mark != kMark) return;  // a datagram of a rank whose proof is done, and which goes on
  Heard& heard = heard_[datagram.from];
  heard.hello |= message.kind == Kind::hello;
  heard.done |= message.kind == Kind::done;
  heard.verdict |= message.kind == Kind::verdict;
  if (message.kind == Kind::answer) heard.answered = message.attempt;
  if (message.kind == Kind::ask) {
    heard.asked = message.attempt;
    heard.delay_us = std::min(message.delay_us, 1'000'000u);
  }
  if (failed() || message.sleeper == kNoRank) return;
  sleeper_ = static_cast<Rank>(message.sleeper);
  waker_ = static_cast<Rank>(message.waker);
}

template <typename Condition>
bool UcxWakeProof::await(Condition condition) {
  const Instant start = steady_now();
  while (!condition()) {
    if (out_of_time()) return false;
    take_in(kNoRank);
    if (steady_now() - start < kSpin) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kProofNap);
    }
  }
  return true;
}

bool UcxWakeProof::out_of_time() const {
  return steady_now() >= deadline_ || stop_.stop_requested();
}

}  // namespace leeway::transport
