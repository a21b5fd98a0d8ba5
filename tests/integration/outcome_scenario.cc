// Returns digests of results, and reports without times. Injected losses depend only on a packet's
// address. So ranks with the same losses must return the same facts over every transport.
#include <vector>

#include "base/crc32c.h"
#include "integration/scenario.h"

namespace leeway::integration {
namespace {

std::vector<float> outcome_contribution(Rank rank, std::size_t count, std::uint32_t round) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t mixed =
        i * 7919 + rank * std::size_t{104'729} + round * std::size_t{1'299'709};
    values[i] = static_cast<float>(mixed % 20'011) / 4096.0f - 2.0f;
  }
  return values;
}

// Leaves out figures of the report that depend on time. If a half is exact, these are the counts of
// repairs: a rank may request a packet twice, and whether an answer is lost depends on the number
// of the request. Noise, including variance_estimate, is always left out, because the sample of
// packets on which it is measured depends on how many calls were open.
Facts facts_of(const CollectiveReport& report, bool has_exact_half) {
  Facts facts = {{"sequence", report.sequence},
                 {"contributors", report.contributors.histogram},
                 {"loss", report.loss},
                 {"cut", report.deadline_cut},
                 {"complete", report.complete},
                 {"missing", report.elements_missing},
                 {"untouched", report.elements_untouched}};
  if (!has_exact_half) facts["loss_first_pass"] = report.loss_first_pass;
  for (const PeerReport& peer : report.peers) {
    facts["peers"].push_back({peer.rank, peer.expected, peer.arrived});
    if (!has_exact_half) facts["peers"].back().push_back(peer.repaired);
  }
  return facts;
}

}  // namespace

Facts outcomes(const Arguments& arguments) {
  const auto group = join();
  const auto count = static_cast<std::size_t>(arguments.number("elements", 20'000));
  const auto size = static_cast<std::size_t>(group->size());
  const Delivery once = best_effort(std::chrono::seconds(20));
  Facts calls = Facts::array();
  double lost = 0.0;
  const auto add = [&](const char* name, const Result<CollectiveReport>& report,
                       const std::vector<float>& result, bool has_exact_half) {
    Facts call = {{"call", name}};
    if (report.ok()) {
      call["report"] = facts_of(*report, has_exact_half);
      call["result"] = crc32c(std::as_bytes(std::span(result)));
      lost += report->loss;
    } else {
      call["error"] = integration::facts_of(report.status());
    }
    calls.push_back(call);
  };
  for (std::uint32_t round = 0; round < 3; ++round) {
    const std::vector<float> input = outcome_contribution(group->rank(), count, round);
    std::vector<float> result(count);
    for (const char* codec : {"fp32", "bf16", "nvfp4"}) {
      CollectiveOptions lossy{.op = ReduceOp::avg, .delivery = once};
      lossy.codec = parse_codec(codec).value();
      lossy.estimator = round == 0 ? Estimator::ratio : Estimator::horvitz_thompson;
      add(codec, group->all_reduce(std::span(input), std::span(result), lossy), result, true);
    }
    add("exact", group->all_reduce(std::span(input), std::span(result)), result, true);
    std::vector<float> block(count / size);
    add("reduce_scatter",
        group->reduce_scatter(std::span(input).first(size * block.size()), std::span(block),
                              {.op = ReduceOp::avg, .delivery = once}),
        block, false);
    std::vector<float> all(count * size);
    add("all_gather", group->all_gather(std::span(input), std::span(all)), all, true);
    result = input;
    add("broadcast", group->broadcast(std::span(result), 1), result, true);
  }
  return {{"rank", group->rank()}, {"calls", calls}, {"lost", lost}};
}

}  // namespace leeway::integration
