#include "communicator/exact_lane.h"

#include <algorithm>
#include <string>

#include "base/philox.h"
#include "communicator/make_carrier.h"

namespace leeway::internal {
namespace {

// Keys the seed of the second carrier: both number their calls from 0, and must not draw the same
// random numbers.
constexpr std::uint32_t kExactStream = 0x45000000;

// How long ranks try to hear each other there before they do without.
constexpr Duration kProofTime = std::chrono::seconds(10);

// What all ranks' least is.
Result<bool> all_say(internal::CommunicatorCore& core, bool yes) {
  std::int32_t vote = yes ? 1 : 0;
  collective::OperationSpec spec{.kind = collective::OperationKind::all_reduce,
                                 .input = {&vote, 1, DataType::i32},
                                 .output = {&vote, 1, DataType::i32}};
  spec.options.op = ReduceOp::min;
  const auto report = core.run(spec);
  if (!report.ok()) return report.status();
  return vote == 1;
}

void explain(rendezvous::Log& log, rendezvous::LogLevel level, const char* what,
             const std::string& why) {
  log.print(level, "exact lane", "%s: %s", what, why.c_str());
}

}  // namespace

Status open_exact_lane(internal::CommunicatorCore& core, rendezvous::TransportChoice& choice,
                       const rendezvous::Group& group, Duration timeout, rendezvous::Log& log) {
  constexpr const char* kNot = "no UCX for exact calls";
  std::string way;
  auto opened = choice.connect(*group.exact, core.rank());
  const bool better = opened.ok() && (*opened)->better_than_tcp(way);
  if (!opened.ok()) explain(log, rendezvous::LogLevel::info, kNot, opened.status().c_str());
  auto agreed = all_say(core, better);
  if (!agreed.ok()) return agreed.status();
  if (!*agreed) {
    explain(log, rendezvous::LogLevel::debug, kNot,
            "not all ranks reach all others by more than TCP; this one: " + way);
    return Status();
  }

  std::unique_ptr<driving::Carrier> carrier;
  Status proven = (*opened)->prove_wakeups(std::min(timeout, kProofTime));
  if (proven.ok()) {
    auto config = endpoint_config(core.options(), group, *group.exact);
    config.seed = keyed_hash(config.seed, kExactStream, 0, 0, 0);
    auto made = make_carrier(core.options(), group.exact->kind, config, (*opened)->take());
    if (!made.ok()) return made.status();
    carrier = std::move(*made);
    proven = carrier->prove_paths(std::min(timeout, kProofTime));
  }
  if (!proven.ok()) explain(log, rendezvous::LogLevel::warn, kNot, proven.c_str());
  agreed = all_say(core, proven.ok());
  if (!agreed.ok() || !*agreed) return agreed.ok() ? Status() : agreed.status();
  explain(log, rendezvous::LogLevel::info, "exact calls go over UCX", way);
  core.use_for_exact(std::move(carrier));
  return Status();
}

}  // namespace leeway::internal
