#include "impairment/gilbert_loss.h"

#include "base/philox.h"
#include "impairment/hash_stream.h"

namespace leeway::impairment {
namespace {

// Number of flows whose last answer is kept. Without the last answer of a flow, lost() walks back
// to the last redraw.
constexpr std::size_t kAnswers = 1024;

// Returns the probability that the state is drawn anew for the next packet. It is 1 - h with the h
// of gilbert_loss.h.
double redraw_probability(double rate, double burst) {
  const double kept_good = burst * (1.0 - rate);
  return kept_good <= 1.0 ? 1.0 : 1.0 / kept_good;
}

}  // namespace

GilbertLoss::GilbertLoss(std::uint64_t seed, double burst)
    : seed_(seed), burst_(burst), answers_(kAnswers) {}

bool GilbertLoss::lost(const FlowAddress& flow, std::uint32_t position, double rate) {
  const double redraw = redraw_probability(rate, burst_);
  Answer& last = answer_of(flow);
  const bool usable = last.flow == flow && last.position <= position;
  bool bad = false;
  for (std::uint32_t at = position;; --at) {
    if (usable && at == last.position) {
      bad = last.bad;
      break;
    }
    const double u = draw(flow, at);
    if (at == 0) {
      bad = u < rate;
      break;
    }
    if (u < redraw) {
      bad = u < redraw * rate;  // u / redraw is uniform again
      break;
    }
  }
  last = {flow, position, bad};
  return bad;
}

double GilbertLoss::draw(const FlowAddress& flow, std::uint32_t position) const {
  const std::uint32_t question =
      question_word(HashStream::burst_loss, false, flow.phase, flow.attempt);
  return to_unit(
      keyed_hash(seed_, link_word(flow.source, flow.destination), question, flow.round, position));
}

GilbertLoss::Answer& GilbertLoss::answer_of(const FlowAddress& flow) {
  std::uint64_t mixed = (std::uint64_t{flow.source} << 48) ^
                        (std::uint64_t{flow.destination} << 32) ^
                        (std::uint64_t{flow.attempt} << 8) ^ flow.phase;
  mixed = (mixed ^ (std::uint64_t{flow.round} << 16)) * 0x9E3779B97F4A7C15u;
  return answers_[(mixed >> 32) % kAnswers];
}

}  // namespace leeway::impairment
