#include "transport/sealed/sealed_transport.h"

#include <algorithm>
#include <array>

namespace leeway::transport {
namespace {

constexpr std::array<const char*, seal::kRefusals> kSealRefusalNames = {"",
                                                                        "refused_too_short",
                                                                        "refused_unsealed",
                                                                        "refused_unknown_tag",
                                                                        "refused_wrong_address",
                                                                        "refused_too_old",
                                                                        "refused_replayed",
                                                                        "refused_key_phase",
                                                                        "refused_forged"};

// The core's trains have no more datagrams and bytes (include/leeway/transport.h).
constexpr std::size_t kDatagramsMax = 64;
constexpr std::size_t kTrainBytesMax = 65'507;

// Datagrams and trains shrink by what sealing adds. The core need not sum what the seal proves.
TransportLimits sealed_limits(TransportLimits limits) {
  limits.datagram_bytes_max -= seal::kOverheadBytes;
  limits.train_datagrams_max = std::min(limits.train_datagrams_max, kDatagramsMax);
  limits.train_bytes_max = std::min(limits.train_bytes_max, kTrainBytesMax) -
                           limits.train_datagrams_max * seal::kOverheadBytes;
  limits.multicast = false;
  limits.intact = true;
  return limits;
}

}  // namespace

SealedTransport::SealedTransport(std::unique_ptr<DatagramTransport> inner, ClockFunction clock,
                                 const seal::Rotation& rotation)
    : inner_(std::move(inner)),
      clock_(std::move(clock)),
      name_(inner_->name()),
      limits_(sealed_limits(inner_->limits())),
      seals_(0, rotation),
      trains_(kSlots),
      ready_(kSlots) {}

void SealedTransport::meet(Rank slot, const seal::PairKeys& keys, const seal::CipherMaker& maker) {
  seals_.meet(clock_(), slot, keys, maker);
}

std::size_t SealedTransport::send(std::span<const Train> trains) {
  flush();
  if (released_ == sealed_) first_ = sealed_;  // begin with memory that is still in the cache
  const Instant now = clock_();
  std::size_t count = 0;
  for (; count < trains.size() && sealed_ - released_ < kSlots; ++count) {
    if (seals_.knows(trains[count].to)) {
      prepare(now, trains[count]);
    } else {
      ++to_strangers_;
    }
  }
  flush();
  return count;
}

void SealedTransport::prepare(Instant now, const Train& train) {
  const std::size_t slot = slot_of(sealed_);
  SealedTrain& out = trains_[slot];
  const std::size_t bytes = seal::Associations::sealed_bytes(train);
  if (out.memory.size() < bytes) {
    // Once for each slot: no train is longer
    if (!out.memory.empty()) inner_->forget_memory(out.memory);
    out.memory.resize(std::max(bytes, kTrainBytesMax));
    (void)inner_->register_memory(out.memory);  // else it copies
  }
  seals_.seal(now, train, out.memory);
  out.slice = {out.memory.data(), bytes};
  ready_[slot] = {train.to, train.segment_bytes + seal::kOverheadBytes, bytes,
                  std::span(&out.slice, 1)};
  ++sealed_;
}

// The slots are a ring: what goes on at its beginning is a call of its own.
void SealedTransport::flush() {
  while (taken_ < sealed_) {
    const std::size_t first = slot_of(taken_);
    const std::size_t count = std::min<std::size_t>(sealed_ - taken_, kSlots - first);
    const std::size_t taken = inner_->send(std::span(ready_).subspan(first, count));
    taken_ += taken;
    if (taken < count) break;
  }
  released_ = taken_ - inner_->borrowed();
}

std::size_t SealedTransport::receive(std::span<Received> out) {
  if (taken_ < sealed_) flush();
  const std::size_t count = inner_->receive(out);
  if (count == 0) return 0;
  const Instant now = clock_();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const MutableByteSpan plain = seals_.open(now, out[i].from, out[i].bytes);
    if (!plain.empty()) out[kept++] = {out[i].from, plain};
  }
  return kept;
}

void SealedTransport::wait(Duration timeout) {
  inner_->wait(timeout);
  if (taken_ < sealed_) flush();
}

TransportCounters SealedTransport::counters() const {
  TransportCounters counters = inner_->counters();
  counters.send_errors += to_strangers_;
  return counters;
}

std::vector<std::pair<std::string, std::uint64_t>> SealedTransport::named_seal_counters() const {
  const seal::Counters& counted = seals_.counters();
  std::vector<std::pair<std::string, std::uint64_t>> rows = {{"sealed", counted.sealed},
                                                             {"opened", counted.opened}};
  for (int i = 1; i < seal::kRefusals; ++i)
    rows.emplace_back(kSealRefusalNames[i], counted.refused[i]);
  return rows;
}

}  // namespace leeway::transport
