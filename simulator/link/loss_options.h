// A user's settings for a link's losses. Names and meanings are netem's where netem has the model;
// probabilities are numbers from 0 to 1 where netem's command takes percent.
//
// Packets are numbered from 0 per link, in the order in which they are offered.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "leeway/status.h"

namespace leeway::sim {

struct NoLoss {};

// netem `loss random`. With correlation c > 0 each packet compares x' = (1 - c) u + c x with
// `loss`, where u is uniform and x is the x' of the packet before. As x' is not uniform, the actual
// loss ratio differs from `loss`, as in netem (for loss = 0.25, c = 0.5 it is 5/72). Prefer the
// chains below.
struct RandomLoss {
  double loss = 0;
  double correlation = 0;
};

// netem `loss gemodel`: a good state, which loses with probability 1-k, and a bad one, which loses
// with 1-h. After every packet good turns bad with probability p and bad turns good with r. Starts
// good.
struct GilbertElliott {
  double p = 0;
  double r = 1;
  double one_minus_h = 1;
  double one_minus_k = 0;
};

// netem `loss state`: 1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 lost alone
// in a gap (always followed by 1). Starts in 1 and changes state before every packet.
struct FourState {
  double p13 = 0;
  double p31 = 1;
  double p32 = 0;
  double p23 = 1;
  double p14 = 0;
};

// A Gilbert chain given by its loss ratio and its mean burst in packets, as in FaultOptions.
// Independent losses have the mean burst 1 / (1 - loss); a shorter burst gives independent losses.
struct BurstLoss {
  double loss = 0;
  double burst = 1;
};

// Loses the nth of every n packets.
struct EveryLoss {
  std::uint64_t n = 1;
};

// Loses the packets with these numbers, which are strictly rising.
struct ListLoss {
  std::vector<std::uint64_t> numbers;
};

// The link is down from from_ns until until_ns. A list of these must be in order and without
// overlap.
struct DownTime {
  std::int64_t from_ns = 0;
  std::int64_t until_ns = 0;
};
struct WindowLoss {
  std::vector<DownTime> windows;
};

// Recorded fates, one per packet (true means lost). After the last one they repeat from the start.
struct TraceLoss {
  std::vector<bool> lost;
};

// A PMTU black hole: packets of more than max_bytes vanish without a message.
struct SizeLoss {
  std::uint32_t max_bytes = 0;
};

using LossOptions = std::variant<NoLoss, RandomLoss, GilbertElliott, FourState, BurstLoss,
                                 EveryLoss, ListLoss, WindowLoss, TraceLoss, SizeLoss>;

// Limit on a mean burst, in packets. A longer one is an outage: use WindowLoss.
inline constexpr double kBurstMax = 1e6;

// The error names the parameter that is out of range, its value and its range.
Status check_loss(const LossOptions& options);

}  // namespace leeway::sim
