#include "protocol/round.h"

#include <cstdio>

#include "wire/codec_settings.h"
#include "wire/operation_kind.h"

namespace leeway::protocol {

void Round::reset(std::uint32_t new_number, const RoundPlan& new_plan, RoundClient* new_client,
                  int size, Instant now) {
  number = new_number;
  plan = &new_plan;
  tag_digest = wire::digest(plan->tag, plan->point_to_point());
  client = new_client;
  opened_at = now;
  gate_open_at = now;
  gates_closed = 0;
  done = false;
  ahead = false;
  talks = false;
  mentioned = false;
  ended = false;
  if (!failure.ok()) failure = Status();  // writes 318 bytes, so only if it is needed
  fail_at = Instant::infinite_future();
  told = {};
  disputed_by = kNoRank;
  refuted = false;
  inquire_at = Instant::infinite_future();
  inquiries = 0;
  bytes_sent = 0;
  for (int k = 0; k < wire::kFlowKinds; ++k) {
    PhaseState& phase = phases[k];
    phase.group = GroupPass{};
    phase.sends_open = 0;
    phase.passes_open = 0;
    phase.receives_open = 0;
    phase.settled = !plan->phases[k].active;
    phase.deadline_cut = false;
    if (!plan->phases[k].active) continue;
    const std::size_t flows = plan->point_to_point() ? 1 : static_cast<std::size_t>(size);
    phase.send.resize(flows);
    phase.receive.resize(flows);
  }
}

Rank PhaseState::cut_elsewhere() const {
  for (const ReceiveFlow& flow : receive) {
    if (flow.cut_by != kNoRank && !flow.complete()) return flow.cut_by;
  }
  return kNoRank;
}

bool Round::exchanges_with(Rank peer) const {
  for (const FlowKind kind : plan->active_kinds()) {
    if (send(kind, peer).packets != 0 || receive(kind, peer).packets != 0) return true;
  }
  return false;
}

bool Round::all_settled() const {
  if (plan->stands_in) return false;
  for (const PhaseState& phase : phases) {
    if (!phase.settled) return false;
  }
  return true;
}

bool Round::caller_may_go() const {
  if (!all_settled()) return false;
  for (const FlowKind kind : plan->active_kinds()) {
    const PhaseState& phase = this->phase(kind);
    if (phase.sends_open == 0) continue;
    const bool never_again = !plan->phase(kind).repairable || plan->phase(kind).payload_retained;
    if (!never_again || phase.passes_open != 0) return false;
    if (!plan->confirm_use) continue;
    for (const SendFlow& flow : phase.send) {
      if (flow.open() && awaits_word(kind, flow)) return false;
    }
  }
  return true;
}

bool Round::all_confirmed() const {
  for (const PhaseState& phase : phases) {
    if (phase.sends_open != 0) return false;
  }
  return true;
}

std::array<char, 140> describe(const wire::OperationTag& tag) {
  std::array<char, 140> text{};
  const auto name = [](std::string_view view) { return static_cast<int>(view.size()); };
  const auto dtype = to_string(tag.dtype);
  const auto op = to_string(tag.reduce_op);
  const auto codec = to_string(wire::unpack_settings(tag.codec, tag.codec_settings));
  const auto spread = to_string(wire::unpack_settings(tag.spread_codec, tag.spread_settings));
  const auto delivery = to_string(tag.delivery);
  const auto estimator = to_string(tag.estimator);
  std::array<char, 24> shape{};
  if (tag.shape != 0 && tag.operation == wire::OperationKind::all_to_all) {
    std::snprintf(shape.data(), shape.size(), " in uneven blocks");
  } else if (tag.shape != 0) {
    std::snprintf(shape.data(), shape.size(), " in blocks #%08x", tag.shape);
  }
  // The text of a message is shorter: it has no reduction, no halves and one delivery class.
  if (tag.operation == wire::OperationKind::send || tag.operation == wire::OperationKind::recv) {
    std::snprintf(text.data(), text.size(), "%s %.*s[%llu] %s", wire::to_string(tag.operation),
                  name(dtype), dtype.data(), static_cast<unsigned long long>(tag.count),
                  codec.c_str());
    return text;
  }
  const int written = std::snprintf(
      text.data(), text.size(), "%s %.*s[%llu]%s %.*s %s/%s %.*s %.*s",
      wire::to_string(tag.operation), name(dtype), dtype.data(),
      static_cast<unsigned long long>(tag.count), shape.data(), name(op), op.data(), codec.c_str(),
      spread.c_str(), name(delivery), delivery.data(), name(estimator), estimator.data());
  std::size_t end = std::min<std::size_t>(text.size(), written);
  const auto add = [&](const char* format, unsigned value) {
    const int more = std::snprintf(text.data() + end, text.size() - end, format, value);
    end = std::min<std::size_t>(text.size(), end + more);
  };
  if (tag.spread != tag.delivery) {
    const int more = std::snprintf(text.data() + end, text.size() - end, " spread %s",
                                   to_string(tag.spread).data());
    end = std::min<std::size_t>(text.size(), end + more);
  }
  if (tag.root != kNoRank) add(" root %u", tag.root);
  if (tag.confirm_use) add(" confirm_use", 0);
  if (tag.parts == wire::kBySites) {
    add(" by sites", 0);
  } else if (tag.parts != 0) {
    add(" in %u slices", tag.parts);
  }
  return text;
}

}  // namespace leeway::protocol
