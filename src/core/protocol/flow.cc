#include "protocol/flow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/limits.h"

namespace leeway::protocol {

bool ReceiveFlow::required_missing() const {
  if (required == nullptr) return false;
  for (std::size_t w = 0; w < arrived.words(); ++w) {
    if (required->word(w) & ~arrived.word(w)) return true;
  }
  return false;
}

bool ReceiveFlow::needs_more(Delivery::Kind delivery, double loss_max, bool fetch_empty) const {
  switch (delivery) {
    case Delivery::Kind::exact:
      return missing() > 0;
    case Delivery::Kind::bounded:
      return missing() > loss_max * packets || required_missing();
    case Delivery::Kind::best_effort:
      return required_missing() || (fetch_empty && first_pass_lost());
  }
  return false;
}

void ReceiveFlow::ask_for_all() {
  ++requested_pass;
  request_due = true;
  request_word = 0;
  request_end = static_cast<std::uint32_t>(arrived.words());
}

bool ReceiveFlow::ask_early(const ChunkWatch::Left& left) {
  const std::uint64_t lost = left.packets & ~arrived.word(left.word);
  if (lost == 0) return false;
  early.set_in_word(left.word, lost);
  // If an early request is due and not yet written, its words become part of this request.
  const bool due = request_due && early_pass == requested_pass;
  request_word = due ? std::min(request_word, left.word) : left.word;
  request_end = due ? std::max(request_end, left.word + 1) : left.word + 1;
  early_pass = ++requested_pass;
  request_due = true;
  return true;
}

std::size_t ReceiveFlow::next_request(bool all, std::span<std::uint64_t> words,
                                      wire::Repair& repair) {
  const bool is_early = early_pass == requested_pass;
  while (request_due) {
    const std::size_t count = std::min<std::size_t>(words.size(), request_end - request_word);
    bool any = false;
    for (std::size_t w = 0; w < count; ++w) {
      const std::size_t at = request_word + w;
      std::uint64_t wanted = ~arrived.word(at);
      if (!all) wanted &= required != nullptr ? required->word(at) : 0;
      if (parity != nullptr) wanted &= ~parity->covered_word(at);
      if (is_early) wanted &= early.take_word(at);
      const std::size_t rest = packets - at * 64;
      if (rest < 64) wanted &= (std::uint64_t{1} << rest) - 1;
      words[w] = wanted;
      any |= wanted != 0;
    }
    repair.attempt = requested_pass;
    repair.base = request_word * 64;
    request_word += static_cast<std::uint32_t>(count);
    repair.last = request_word == request_end;
    request_due = !repair.last;
    if (any) return count;
  }
  return 0;
}

std::optional<PacketIndex> SendFlow::next_repair(double delivered) {
  if (wanted_count == 0) return std::nullopt;
  while (wanted.word(wanted_from / 64) >> (wanted_from % 64) == 0)
    wanted_from = (wanted_from / 64 + 1) * 64;
  wanted_from += static_cast<std::uint32_t>(
      std::countr_zero(wanted.word(wanted_from / 64) >> (wanted_from % 64)));
  wanted.clear(wanted_from);
  --wanted_count;
  ++repair_position.value;
  const double most = limits::kRepairsPerPacket * static_cast<double>(packets) /
                      std::max(delivered, limits::kRepairedShareMin);
  if (static_cast<double>(++repairs) > most && wanted_count > 0) {
    wanted.clear();
    wanted_count = 0;
  }
  return PacketIndex{wanted_from};
}

SendFlow::Request SendFlow::take_request(const wire::Repair& repair, ByteSpan words) {
  const bool early = first_pass() && !passed();
  if (!open() || repair.attempt < pass) return Request::ignored;
  if (early && (left.size() == 0 || repair.attempt < aside)) return Request::ignored;
  const std::uint32_t first_word = repair.base / 64;
  if (first_word + repair.words > wanted.words()) return Request::refused;
  if (early && repair.attempt > aside) {  // a new request, for another chunk
    aside = repair.attempt;
    wanted_base = 0;
  }
  if (!early && repair.attempt > pass) {  // a new request replaces the rest of the one before
    pass = repair.attempt;
    wanted.clear();
    wanted_count = 0;
    wanted_base = 0;
    repair_position = {};
  }
  // This part of the request was merged before, so the datagram is a copy.
  if (first_word < wanted_base) return Request::ignored;
  wanted_base = first_word + repair.words;
  for (std::uint32_t w = 0; w < repair.words; ++w) {
    std::uint64_t bits;
    std::memcpy(&bits, words.data() + w * sizeof(bits), sizeof(bits));
    if (early) bits &= left.word(first_word + w);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t index =
          (first_word + w) * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (index < packets && !wanted.test_and_set(index)) ++wanted_count;
    }
  }
  wanted_from = 0;
  end_due = false;
  end_tries = 0;
  return Request::taken;
}

}  // namespace leeway::protocol
