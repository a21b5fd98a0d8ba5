#include "protocol/coding.h"

#include <algorithm>
#include <cmath>

#include "erasure/cauchy.h"

namespace leeway::protocol {

// Receivers ask for packets that are still missing after the parity, pass by pass, until no
// receiver of the operation lacks any. In each such pass the link idles for a round trip and a
// quiet time (kRoundTripsAPass). The result minimises the time for parities, repairs and idling.
// The unit of time is the time in which one datagram leaves.
std::uint32_t parities_for(Instant now, int size, const PhasePlan& plan, const SendFlow& flow,
                           const Path& path) {
  if (!may_be_coded(plan, flow.packets)) return 0;
  constexpr double kRoundTripsAPass = 1.25;
  const double loss = path.loss_at_most();
  if (loss < limits::kCodedLossMin) return 0;
  const wire::CodeGrid grid(flow.packets);
  const double flows = static_cast<double>(size) * (size - 1);
  // Packets leave in permuted order, so a burst of losses spreads evenly over all codes. In one
  // code, bursts raise the dispersion (variance divided by mean, 1 without bursts) only by a share.
  const double dispersion = 1.0 + (path.loss_dispersion() - 1.0) / grid.codes();
  const double idle_a_pass = kRoundTripsAPass * path.sent_in_round_trip(now);
  // Share of the packets for which the receiver could not ask during the first pass: those of the
  // last round trip, of an incomplete step (ChunkWatch::kStep), and those that may be missing only
  // because they were overtaken (kOvertaken). All other packets that the receiver lacked were sent
  // again already.
  double in_doubt = 1.0;
  if (flow.aside > 0) {
    const double unasked =
        path.sent_in_round_trip(now) + ChunkWatch::kStep + ChunkWatch::kOvertaken;
    in_doubt = std::min(1.0, unasked / flow.packets);
  }
  const double missing = loss * (in_doubt + loss * (1.0 - in_doubt));
  const auto cost = [&](std::uint32_t rows) {
    // `codes`: expected number of codes of this flow that lose more packets than they have
    // parities. Such a code lost rows + 1 packets at least. It is taken to need that many again, or
    // its average number of losses if that is larger.
    const std::uint32_t packets = grid.size(0);
    const double lost =
        (packets * missing + rows * loss) / (packets + rows);  // parities are lost, too
    const double codes = grid.codes() * erasure::shortfall(packets, rows, lost, dispersion);
    const double again = codes * std::max(rows + 1.0, packets * missing) / (1.0 - loss);
    const double passes = std::min(flows * codes, 1.0) *
                          (1.0 + std::log(std::max(flows * again, 1.0)) / -std::log(loss));
    return rows * grid.codes() + again + passes * idle_a_pass;
  };
  std::uint32_t best = 0;
  double least = cost(0);
  for (std::uint32_t rows = 1; rows <= limits::kCodeParitiesMax && rows * grid.codes() < least;
       ++rows) {
    const double one = cost(rows);
    if (one >= least) continue;
    best = rows;
    least = one;
  }
  return best * grid.codes();
}

bool may_be_copied(const EndpointConfig& config, const PhasePlan& plan, FlowKind kind,
                   std::uint32_t packets) {
  const auto peers = static_cast<std::uint32_t>(config.size - 1);
  return config.paced && kind != FlowKind::point && plan.delivery == Delivery::Kind::exact &&
         packets <= limits::kEagerPackets && packets * peers <= limits::kCopiedPacketsMax;
}

std::uint32_t copies_for(int size, const SendFlow& flow, const Path& path) {
  const double loss = std::min(path.loss_at_most(), 0.5);
  if (loss < limits::kCodedLossMin) return 1;
  const double flows = static_cast<double>(size) * (size - 1);
  const double copies =
      std::log(limits::kCopiesShortfall / (flows * flow.packets)) / std::log(loss);
  return std::clamp(static_cast<std::uint32_t>(std::ceil(copies)), 1u, limits::kCopiesMax);
}

}  // namespace leeway::protocol
