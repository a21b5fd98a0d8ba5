#include <string>

#include "swarm/draw_parts.h"

namespace leeway::sim::swarm {
namespace {

using scenario::Link;
using scenario::Loss;
using scenario::Scenario;

// The longest mean delay. Dice draw delays in thousandths of a millisecond.
constexpr std::uint32_t kDelayMaxUs = 150000;

void draw_jitter(Dice& dice, scenario::Delay& delay) {
  const double mean = dice.decimal_magnitude(10, kDelayMaxUs);
  const double deviation = mean / dice.pick({2.0, 4.0, 16.0});
  switch (dice.between(0, 3)) {
    case 0:
      delay.mutable_uniform()->set_to(mean);
      break;
    case 1:
      delay.mutable_normal()->set_mean(mean);
      delay.mutable_normal()->set_deviation(deviation);
      break;
    case 2:
      delay.mutable_pareto()->set_mean(mean);
      delay.mutable_pareto()->set_deviation(deviation);
      break;
    default:
      delay.mutable_pareto_normal()->set_mean(mean);
      delay.mutable_pareto_normal()->set_deviation(deviation);
  }
  if (dice.one_in(2)) delay.set_keep_order(true);
}

void draw_delay(Dice& dice, Link& link) {
  switch (dice.between(0, 3)) {
    case 0:
      return;
    case 1:
      return draw_jitter(dice, *link.mutable_delay_ms());
    default:
      link.mutable_delay_ms()->set_fixed(dice.decimal_magnitude(5, kDelayMaxUs));
  }
}

void draw_chain(Dice& dice, Loss& loss) {
  if (dice.one_in(2)) {
    loss.mutable_gilbert_elliott()->set_p(dice.decimal_magnitude(1, 50));
    loss.mutable_gilbert_elliott()->set_r(dice.decimal(50, 1000));
    loss.mutable_gilbert_elliott()->set_one_minus_h(dice.decimal(500, 1000));
    loss.mutable_gilbert_elliott()->set_one_minus_k(dice.decimal(0, 20));
    return;
  }
  Loss::FourState& four = *loss.mutable_four_state();
  four.set_p13(dice.decimal_magnitude(1, 50));
  four.set_p31(dice.decimal(100, 600));
  four.set_p32(dice.decimal(0, 400));
  four.set_p23(dice.decimal(200, 1000));
  four.set_p14(dice.decimal(0, 20));
}

void draw_loss(Dice& dice, Link& link) {
  Loss& loss = *link.mutable_loss();
  switch (dice.between(0, 4)) {
    case 0:
      draw_chain(dice, loss);
      break;
    case 1:
      loss.mutable_bursts()->set_p(dice.decimal_magnitude(1, 300));
      loss.mutable_bursts()->set_burst(dice.between(2, 40));
      break;
    case 2:
      // Every n-th packet of the link is lost. Repeats of one packet come at equal distances, so
      // with a small n all of them might be lost. n is therefore at least 30.
      loss.mutable_every()->set_n(28 + dice.magnitude(2, 500));
      break;
    default:
      loss.mutable_random()->set_p(dice.decimal_magnitude(1, 300));
  }
  if (dice.one_in(8)) {
    Loss::Window& window = *loss.add_window();
    window.set_from_ms(dice.between(0, 500));
    window.set_to_ms(window.from_ms() + dice.magnitude(1, 1000));
  }
  if (dice.one_in(6)) link.set_shared_fate(true);
}

void draw_harm(Dice& dice, Link& link) {
  if (dice.one_in(4)) link.mutable_duplicate()->set_p(dice.decimal_magnitude(1, 500));
  if (dice.one_in(4)) {
    link.mutable_reorder()->set_p(dice.decimal_magnitude(1, 500));
    link.mutable_reorder()->set_by_ms(dice.decimal_magnitude(10, 300000));
  }
  if (dice.one_in(6)) link.mutable_corrupt()->set_p(dice.decimal(1, 10));
}

void draw_queue(Dice& dice, Link& link, const scenario::Operation& operation) {
  scenario::Queue& queue = *link.mutable_queue();
  const std::uint32_t bytes = operation.datagram_bytes() * dice.between(4, 64);
  queue.set_bytes(bytes);
  switch (dice.between(0, 5)) {
    case 0:
      queue.set_ecn_at(bytes / 4);
      break;
    case 1:
      queue.mutable_red()->set_min_bytes(bytes / 4);
      queue.mutable_red()->set_max_bytes(bytes / 2);
      break;
    case 2:
      queue.mutable_codel();
      break;
    case 3:
      // Trimmed packets keep their place in line, and the core does not slow down for them. If
      // every rank sent many messages to one rank, the queue would hold trimmed packets only.
      if (operation.kind() != scenario::Operation::messages) queue.mutable_trim();
      break;
    default:
      break;
  }
}

void draw_rates(Dice& dice, Scenario& scenario) {
  for (const Link::Tier tier : {Link::uplink, Link::downlink}) {
    Link& link = *scenario.add_link();
    link.set_tier(tier);
    // With many ranks, a slow line with a short queue would lose nearly everything, for minutes.
    link.set_rate_mbps(dice.magnitude(scenario.ranks() > 16 ? 1000 : 10, 10000));
    draw_queue(dice, link, scenario.operation());
  }
}

void draw_regions(Dice& dice, Scenario& scenario) {
  // Ranks below `first` form the first region.
  const std::uint32_t first = dice.between(1, scenario.ranks() - 1);
  const double rtt_ms = dice.decimal_magnitude(1000, 300000);
  auto& regions = *scenario.mutable_topology()->mutable_regions();
  for (const char* name : {"eu", "us"}) {
    scenario.add_group()->set_name(name);
    regions.add_names(name);
  }
  scenario.mutable_group(0)->set_ranks("0-" + std::to_string(first - 1));
  scenario.mutable_group(1)->set_ranks(std::to_string(first) + "-");
  for (const double rtt : {0.0, rtt_ms, rtt_ms, 0.0}) regions.add_rtt_ms(rtt);
  if (dice.one_in(2)) draw_rates(dice, scenario);
}

void draw_topology(Dice& dice, Scenario& scenario) {
  switch (dice.between(0, 9)) {
    case 0:
      draw_regions(dice, scenario);
      break;
    case 1:
      scenario.mutable_topology()->mutable_leaf_spine()->set_hosts_per_leaf(dice.between(1, 4));
      scenario.mutable_topology()->mutable_leaf_spine()->set_spines(2);
      draw_rates(dice, scenario);
      break;
    case 2:  // with many ranks nothing would arrive: every hop has the link's losses
      if (scenario.ranks() <= 16) scenario.mutable_topology()->mutable_ring();
      break;
    case 3:
    case 4:
      scenario.mutable_topology()->mutable_star();
      draw_rates(dice, scenario);
      break;
    default:
      break;  // a mesh
  }
}

// Draws switches that support multicast: among all ranks, to or from some of them, or only until
// some round.
void draw_multicast(Dice& dice, Scenario& scenario) {
  scenario::Multicast& multicast = *scenario.mutable_multicast();
  const std::string first = std::to_string(dice.between(0, scenario.ranks() - 1));
  if (dice.one_in(3)) dice.one_in(2) ? multicast.set_to("0-" + first) : multicast.set_from(first);
  if (dice.one_in(4)) multicast.set_until_round(dice.between(0, scenario.rounds() - 1));
}

}  // namespace

void draw_network(Dice& dice, Scenario& scenario) {
  draw_topology(dice, scenario);
  if (dice.one_in(4)) draw_multicast(dice, scenario);
  Link& all = *scenario.add_link();
  draw_delay(dice, all);
  if (!dice.one_in(4)) draw_loss(dice, all);
  draw_harm(dice, all);
  if (!dice.one_in(4)) return;
  Link& one = *scenario.add_link();
  const std::string rank = std::to_string(dice.between(0, scenario.ranks() - 1));
  dice.one_in(2) ? one.set_from(rank) : one.set_to(rank);
  draw_delay(dice, one);
  draw_loss(dice, one);
  draw_harm(dice, one);
}

}  // namespace leeway::sim::swarm
