#include "network/link_line.h"

#include "base/contracts.h"

namespace leeway::sim {
namespace {

// Names of random streams have up to 48 bits, and link numbers 32, so names with higher bits clash
// with no link's. Bit 40 marks a fate that links share. Bits 41 and up number a link's delays.
constexpr std::uint64_t kFateNames = std::uint64_t{1} << 40;
constexpr int kDelayNamesShift = 41;

bool is_fixed(const DelayOptions& delay) {
  return delay.jitter_ns == 0 && delay.values_ns.empty();
}

// Returns true if links of one fate must share a model for `loss`, so that they lose the same
// packets. They need no shared model for down times, which depend on the time alone.
bool is_shared(const LinkProperties& properties, const LossOptions& loss) {
  return properties.fate != LinkProperties::kOwnFate && !std::holds_alternative<WindowLoss>(loss);
}

LossModel losses(const LinkProperties& properties, bool shared) {
  std::vector<LossOptions> chosen;
  for (const LossOptions& loss : properties.losses) {
    if (is_shared(properties, loss) == shared) chosen.push_back(loss);
  }
  return LossModel::make(chosen, 0, 0).value();
}

GeometricDistance distance(double probability) {
  return GeometricDistance(Probability::of(probability));
}

}  // namespace

LinkTables::LinkTables(const LinkProperties& properties)
    : duplicate(distance(properties.duplicate)),
      reorder(distance(properties.reorder)),
      corrupt(distance(properties.corrupt)),
      own_losses(losses(properties, false)),
      shared_losses(losses(properties, true)) {}

LossModel make_shared_fate(const LinkTables& tables, std::uint32_t fate, std::uint64_t seed) {
  return tables.shared_losses.for_link(seed, kFateNames + fate);
}

LinkLine::LinkLine(const LinkProperties& properties, const LinkTables& tables, LossModel* fate,
                   Names names)
    : fate_(fate), reorder_by_ns_(properties.reorder_by_ns) {
  if (properties.limited) {
    queue_ = std::make_unique<Queue>(Queue::make(properties.queue, names.seed, names.link).value());
  }
  if (!tables.own_losses.loses_nothing()) {
    losses_ = std::make_unique<LossModel>(tables.own_losses.for_link(names.seed, names.link));
  }
  add_delays(properties, names);
  add_faults(properties, tables, names);
  const bool delays = fixed_delay_ns_ > 0 || !delays_.empty() || properties.reorder > 0;
  at_once_ = !properties.limited && !delays;
}

// The last delay that varies is applied last, so it alone decides whether the whole link keeps
// packets in order.
void LinkLine::add_delays(const LinkProperties& properties, Names names) {
  for (const DelayOptions& delay : properties.delays) {
    if (is_fixed(delay)) {
      fixed_delay_ns_ += delay.delay_ns;
      continue;
    }
    const std::uint64_t name = names.link | std::uint64_t{delays_.size()} << kDelayNamesShift;
    delays_.push_back(DelayModel::make(delay, names.seed, name).value());
    in_order_ = delay.keep_order;
  }
}

void LinkLine::add_faults(const LinkProperties& properties, const LinkTables& tables, Names names) {
  if (properties.duplicate == 0 && properties.reorder == 0 && properties.corrupt == 0) return;
  const auto hits = [&](double probability, const GeometricDistance& distance, Purpose purpose) {
    return probability > 0 ? std::optional<RareHit>(std::in_place, distance,
                                                    RandomStream(names.seed, names.link, purpose))
                           : std::nullopt;
  };
  faults_ = std::make_unique<Faults>();
  faults_->duplicate = hits(properties.duplicate, tables.duplicate, Purpose::duplicate);
  faults_->reorder = hits(properties.reorder, tables.reorder, Purpose::reorder);
  faults_->corrupt = hits(properties.corrupt, tables.corrupt, Purpose::corrupt);
  in_order_ = in_order_ && properties.reorder == 0;
}

// Does not touch in_order_, because packets that are in flight already may still arrive out of
// order.
void LinkLine::set_calm() {
  losses_.reset();
  fate_ = nullptr;
  faults_.reset();
}

LinkLine::Passage LinkLine::pass(std::int64_t now_ns, Packet& packet) {
  Passage passage;
  std::int64_t out_ns = now_ns;
  if (queue_ != nullptr && !enqueue(now_ns, packet, passage, out_ns)) return passage;
  if (lost(out_ns, packet.bytes)) {
    passage.step = PacketStep::lost;
    return passage;
  }
  passage.arrival_ns = delayed(out_ns);
  if (faults_ != nullptr) [[unlikely]]
    harm(out_ns, packet, passage);
  return passage;
}

// Takes the packet through the queue. Returns false if the queue drops it.
bool LinkLine::enqueue(std::int64_t now_ns, Packet& packet, Passage& passage,
                       std::int64_t& out_ns) {
  const sim::Passage queued = queue_->enqueue(now_ns, packet.bytes, packet.ecn_capable);
  passage.waiting_bytes = queue_->last_waiting_bytes();
  if (queued.dropped()) [[unlikely]] {
    const bool full = queued.fate == QueueFate::full;
    passage.step = full ? PacketStep::queue_full : PacketStep::queue_early;
    return false;
  }
  out_ns = queued.departure_ns;
  packet.bytes = queued.bytes;
  passage.marked = queued.fate == QueueFate::marked;
  passage.trimmed = queued.fate == QueueFate::trimmed;
  packet.marked = packet.marked || passage.marked;
  packet.trimmed = packet.trimmed || passage.trimmed;
  return true;
}

// Every model is asked about every packet, so that no model's draws depend on another model.
bool LinkLine::lost(std::int64_t out_ns, std::uint32_t bytes) {
  bool any = losses_ != nullptr && losses_->lost(out_ns, bytes);
  if (fate_ != nullptr) any |= fate_->lost(out_ns, bytes);
  return any;
}

void LinkLine::harm(std::int64_t out_ns, Packet& packet, Passage& passage) {
  if (faults_->corrupt && faults_->corrupt->next()) {
    passage.corrupted = packet.corrupt = true;
    packet.corrupt_bit = faults_->corrupt->random().u32();
  }
  if (faults_->duplicate && faults_->duplicate->next()) {
    passage.copied = true;
    passage.copy_arrival_ns = delayed(out_ns);
  }
  if (faults_->reorder && faults_->reorder->next()) {
    passage.held_back = true;
    passage.arrival_ns += reorder_by_ns_;
  }
}

std::int64_t LinkLine::delayed(std::int64_t out_ns) {
  std::int64_t at_ns = out_ns + fixed_delay_ns_;
  for (DelayModel& delay : delays_) at_ns = delay.arrival(at_ns);
  return at_ns;
}

}  // namespace leeway::sim
