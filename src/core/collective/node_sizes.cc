// Length of datagrams on each path, and what becomes of those that are too long (WIRE 10). It
// concerns processes, whatever their communicators.
#include <algorithm>

#include "base/contracts.h"
#include "collective/node.h"
#include "protocol/pieces.h"

namespace leeway::collective {
namespace {

constexpr std::size_t kSizeAnswersMax = 64;

}  // namespace

void Node::on_process_datagram(Instant now, Rank slot, ByteSpan datagram, Ecn ecn) {
  wire::Prefix prefix;
  wire::Refusal refusal = wire::decode_prefix(datagram, nullptr, prefix);
  if (refusal == wire::Refusal::none && (slot >= paths_.size() || paths_[slot] == nullptr))
    refusal = wire::Refusal::epoch;
  if (refusal != wire::Refusal::none) return refuse(refusal);
  if (paths_[slot]->dead()) return;
  if (prefix.type == wire::PacketType::piece) return on_piece(now, slot, prefix, datagram, ecn);
  wire::Size size;
  refusal = wire::decode_size(datagram, size);
  refusal == wire::Refusal::none ? on_size(now, slot, prefix, size) : refuse(refusal);
}

void Node::on_size(Instant now, Rank slot, const wire::Prefix& prefix, const wire::Size& size) {
  using Role = wire::Size::Role;
  const auto answer = [&](Role role, std::uint16_t bytes) {  // WIRE 10.2: one for one, no longer
    if (answers_.size() >= kSizeAnswersMax) return;
    answers_.push_back({{.type = wire::PacketType::size,
                         .epoch = prefix.epoch,
                         .source = prefix.destination,
                         .destination = prefix.source,
                         .sequence = prefix.sequence},
                        slot,
                        {.role = role, .bytes = bytes}});
  };
  if (size.role == Role::probe) return answer(Role::answer, size.bytes);
  if (size.role == Role::answer) {
    protocol::PathSize& path = paths_[slot]->size;
    if (!path.on_answer(now, prefix.sequence, size.bytes)) refuse(wire::Refusal::field);
    return look_at_size_by(path.wake_at());
  }
  Member* const member = find(prefix.epoch);
  const auto closed = std::find_if(closed_.begin(), closed_.end(),
                                   [&](const Closed& one) { return one.epoch == prefix.epoch; });
  if (member == nullptr && closed != closed_.end() && size.role == Role::mine)
    return answer(Role::yours, closed->size);
  const Rank from = member == nullptr ? kNoRank : member->rank_in(slot);
  if (from == kNoRank) return refuse(wire::Refusal::epoch);
  if (size.bytes >= limits::kDatagramBytesMin) member->sizes_[from] = size.bytes;
  const std::uint16_t own = member->sizes_[member->config().self];
  if (size.role == Role::yours && member->first_told_ != 0 &&
      prefix.sequence - member->first_told_ <= size_questions_ - member->first_told_)
    member->knows_size_[from] = true;
  if (size.role == Role::mine && own != 0) answer(Role::yours, own);
}

// WIRE 10.7
void Node::on_piece(Instant now, Rank slot, const wire::Prefix& prefix, ByteSpan datagram,
                    Ecn ecn) {
  wire::Piece piece;
  ByteSpan content;
  const wire::Refusal refusal = wire::decode_piece(datagram, piece, content);
  if (refusal != wire::Refusal::none) return refuse(refusal);
  const ByteSpan whole = paths_[slot]->arriving.add(prefix.sequence, piece, content);
  if (whole.empty()) return;
  if (wire::is_for_process(whole)) return refuse(wire::Refusal::type);
  ++size_counters_.pieces_joined;
  on_datagram(now, slot, whole, ecn);
}

void Node::on_refused(Instant now, Rank slot, std::size_t bytes) {
  if (slot >= paths_.size() || paths_[slot] == nullptr) return;
  paths_[slot]->size.on_refused(now, bytes);
  look_at_size_by(paths_[slot]->size.wake_at());
}

const Member* Node::member_with(Rank slot) const {
  const auto found = std::find_if(members_.begin(), members_.end(), [&](const auto& member) {
    return member->rank_in(slot) != kNoRank;
  });
  return found == members_.end() ? nullptr : found->get();
}

bool Node::write_size(Instant now, protocol::TrainBuffer& out) {
  const bool written = (sizes_due_ && write_size_probe(now, out)) ||
                       (asks_size_ != nullptr && write_size_question(out));
  if (!written) return false;
  if (uplink_ != nullptr) uplink_->on_group_sent(now, out.total_bytes());
  ++trains_;
  return true;
}

bool Node::write_size_probe(Instant now, protocol::TrainBuffer& out) {
  sizes_at_ = Instant::infinite_future();
  for (Rank slot = 0; slot < paths_.size(); ++slot) {
    protocol::Path* const path = paths_[slot].get();
    if (path == nullptr || path->dead()) continue;
    if (path->size.wake_at() <= now) {
      const Member* const member = member_with(slot);
      if (member == nullptr) {
        path->size.postpone(now);
      } else if (const auto probe = path->size.poll(now, path->rtt.timeout())) {
        out.start(slot);
        const wire::Prefix prefix{.type = wire::PacketType::size,
                                  .epoch = member->config().epoch,
                                  .source = member->config().self,
                                  .destination = member->rank_in(slot),
                                  .sequence = probe->number};
        const wire::Size size{.bytes = static_cast<std::uint16_t>(probe->bytes)};
        out.append(wire::encode_size(prefix, size, out.scratch(probe->bytes)), {});
        ++size_counters_.probes_sent;
        return true;  // there may be more
      }
    }
    look_at_size_by(path->size.wake_at());
  }
  sizes_due_ = false;
  return false;
}

// Cuts datagrams that are too long for a path that has become narrower since the communicator was
// made.
void Node::fit_to_path(Instant now, protocol::TrainBuffer& out) {
  protocol::Path& path = *paths_[out.to()];
  const auto datagrams = static_cast<std::uint32_t>(out.datagrams());
  std::size_t segment_bytes = out.segment_bytes();
  std::size_t last_bytes = out.total_bytes() - (datagrams - 1) * segment_bytes;
  if (segment_bytes > path.size.bytes()) {
    const std::size_t bytes = out.total_bytes();
    protocol::cut_train(out, path.size.bytes(), whole_);
    const bool rest_is_whole = last_bytes <= out.segment_bytes();
    size_counters_.datagrams_cut += datagrams - (rest_is_whole ? 1 : 0);
    segment_bytes = out.segment_bytes();
    last_bytes = std::min(last_bytes, segment_bytes);
    if (uplink_ != nullptr) uplink_->on_group_sent(now, out.total_bytes() - bytes);
  }
  path.size.on_sent(path.last_sequence(), datagrams, segment_bytes, last_bytes);
}

bool Node::agree_on_size(Member& member, bool measured) {
  const Rank self = member.config().self;
  std::uint16_t& own = member.sizes_[self];
  const bool known = own != 0;  // a size that was told stays as it is
  if (!known) own = static_cast<std::uint16_t>(least_size(member, measured));
  member.size_told_ = known;
  member.size_asked_ = 0;
  asks_size_ = &member;
  return own != 0;
}

void Node::tell_size(Member& member) {
  member.size_told_ = false;
  member.size_asked_ = 0;
  asks_size_ = &member;
}

Rank Node::too_narrow(const Member& member) const {
  for (Rank rank = 0; rank < member.slots_.size(); ++rank) {
    if (rank != member.config().self && paths_[member.slots_[rank]]->size.too_narrow()) return rank;
  }
  return kNoRank;
}

// Largest size that is no longer than all paths carry; 0 if not all of them are known.
std::size_t Node::least_size(const Member& member, bool measured) const {
  std::size_t least = member.config().datagram_bytes;
  for (Rank rank = 0; rank < member.slots_.size() && measured; ++rank) {
    if (rank == member.config().self) continue;
    const protocol::PathSize& path = paths_[member.slots_[rank]]->size;
    if (!path.settled()) return 0;
    least = std::min(least, path.bytes());
  }
  // Paths through a relay may carry less: datagrams travel in pieces there.
  return std::max(least, limits::kDatagramBytesMin);
}

bool Node::write_size_question(protocol::TrainBuffer& out) {
  Member& member = *asks_size_;
  const Rank self = member.config().self;
  while (member.size_asked_ < member.slots_.size()) {
    const Rank rank = member.size_asked_++;
    // Tells all ranks once the own size is known; later only asks those that have not told theirs.
    const bool news = member.sizes_[self] != 0 && !member.size_told_ && !member.knows_size_[rank];
    if (rank == self || (member.sizes_[rank] != 0 && !news)) continue;
    out.start(member.slots_[rank]);
    const wire::Prefix prefix{.type = wire::PacketType::size,
                              .epoch = member.config().epoch,
                              .source = self,
                              .destination = rank,
                              .sequence = ++size_questions_};
    const wire::Size size{.role = wire::Size::Role::mine, .bytes = member.sizes_[self]};
    if (size.bytes != 0 && member.first_told_ == 0) member.first_told_ = size_questions_;
    out.append(wire::encode_size(prefix, size, out.scratch(wire::kSizeBytes)), {});
    return true;
  }
  asks_size_ = nullptr;
  return false;
}

std::vector<Rank> Member::untold_sizes() const {
  std::vector<Rank> untold;
  for (Rank rank = 0; rank < sizes_.size(); ++rank) {
    if (rank != config().self && sizes_[rank] == 0) untold.push_back(rank);
  }
  return untold;
}

bool Member::all_know_size() const {
  if (sizes_[config().self] == 0) return true;
  for (Rank rank = 0; rank < sizes_.size(); ++rank) {
    if (rank != config().self && !knows_size_[rank] && !engine_.endpoint().link(rank).gone)
      return false;
  }
  return true;
}

std::optional<std::size_t> Member::agreed_bytes() const {
  const std::uint16_t least = *std::min_element(sizes_.begin(), sizes_.end());
  return least == 0 ? std::nullopt : std::optional<std::size_t>(least);
}

}  // namespace leeway::collective
