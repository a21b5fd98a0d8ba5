#include "scenario/validate.h"

#include <algorithm>
#include <string>

#include "base/limits.h"
#include "scenario/field_limits.h"
#include "scenario/rank_set.h"

namespace leeway::sim::scenario {

std::string entry(const char* list, int index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

Status check_selector(const Scenario& scenario, const std::string& path, const std::string& text,
                      const Places& places) {
  const auto ranks = ranks_of(scenario, text);
  if (ranks.ok()) return {};
  return places.refuse(path, "is wrong: " + std::string(ranks.status().text()));
}

namespace {

bool is_name(const std::string& text) {
  if (text.empty() || text.size() > 40 || (text[0] >= '0' && text[0] <= '9')) return false;
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
         std::string::npos;
}

Status check_groups(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.group_size(); ++i) {
    const std::string& name = scenario.group(i).name();
    const std::string path = entry("group", i) + ".name";
    if (!is_name(name)) {
      return places.refuse(path, "is \"" + name.substr(0, 40) +
                                     "\"; allowed are a letter, then letters, digits and _");
    }
    for (int j = 0; j < i; ++j) {
      if (scenario.group(j).name() == name) {
        return places.refuse(path, "is \"" + name + "\", as is " + entry("group", j));
      }
    }
    const Status s = check_selector(scenario, entry("group", i) + ".ranks", name, places);
    if (!s.ok()) return s;
  }
  return {};
}

// Checks the fields from, to, between and `and`, by which a Link, Partition or Narrow chooses its
// directions.
template <typename Rule>
Status check_direction(const Scenario& scenario, const Rule& rule, const std::string& path,
                       const Places& places) {
  if (rule.has_between() != rule.has_and_()) {
    return places.refuse(path + (rule.has_between() ? ".and" : ".between"),
                         "is missing; between and and come together");
  }
  if (rule.has_between() && (rule.has_from() || rule.has_to())) {
    return places.refuse(path + (rule.has_from() ? ".from" : ".to"),
                         "cannot be combined with between");
  }
  const char* const first = rule.has_between() ? ".between" : ".from";
  const char* const second = rule.has_between() ? ".and" : ".to";
  const std::string& first_text = rule.has_between() ? rule.between() : rule.from();
  const std::string& second_text = rule.has_between() ? rule.and_() : rule.to();
  const Status s = check_selector(scenario, path + first, first_text, places);
  return s.ok() ? check_selector(scenario, path + second, second_text, places) : s;
}

Status check_directions(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.link_size(); ++i) {
    const Status s = check_direction(scenario, scenario.link(i), entry("link", i), places);
    if (!s.ok()) return s;
  }
  for (int i = 0; i < scenario.partition_size(); ++i) {
    const Status s =
        check_direction(scenario, scenario.partition(i), entry("partition", i), places);
    if (!s.ok()) return s;
  }
  for (int i = 0; i < scenario.narrow_size(); ++i) {
    const Status s = check_direction(scenario, scenario.narrow(i), entry("narrow", i), places);
    if (!s.ok()) return s;
  }
  return {};
}

Status check_rank(const Scenario& scenario, const std::string& path, std::uint32_t rank,
                  const Places& places) {
  if (rank < scenario.ranks()) return {};
  return places.refuse(path, "is " + std::to_string(rank) + "; allowed is 0 to " +
                                 std::to_string(scenario.ranks() - 1));
}

Status check_cross_traffic(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.cross_traffic_size(); ++i) {
    const CrossTraffic& traffic = scenario.cross_traffic(i);
    const std::string path = entry("cross_traffic", i);
    if (const Status s = check_rank(scenario, path + ".from", traffic.from(), places); !s.ok()) {
      return s;
    }
    if (const Status s = check_rank(scenario, path + ".to", traffic.to(), places); !s.ok())
      return s;
    if (traffic.from() == traffic.to()) return places.refuse(path + ".to", "is from as well");
    if (traffic.kind_case() == CrossTraffic::KIND_NOT_SET) {
      return places.refuse(path, "has no kind; give cubic or on_off");
    }
  }
  return {};
}

template <typename Fault>
Status check_fault_ranks(const Scenario& scenario, const char* list, const Fault& faults,
                         const Places& places) {
  for (int i = 0; i < faults.size(); ++i) {
    const Status s = check_rank(scenario, entry(list, i) + ".rank", faults[i].rank(), places);
    if (!s.ok()) return s;
  }
  return {};
}

Status check_faults(const Scenario& scenario, const Places& places) {
  if (const Status s = check_fault_ranks(scenario, "slow", scenario.slow(), places); !s.ok()) {
    return s;
  }
  for (int i = 0; i < scenario.slow_size(); ++i) {
    const Slow& slow = scenario.slow(i);
    if (!slow.has_to_round() || slow.to_round() >= slow.from_round()) continue;
    return places.refuse(entry("slow", i) + ".to_round",
                         "is " + std::to_string(slow.to_round()) + "; allowed is from_round, " +
                             std::to_string(slow.from_round()) + ", and above");
  }
  const Status s = check_fault_ranks(scenario, "pause", scenario.pause(), places);
  if (!s.ok()) return s;
  const Status moves =
      check_fault_ranks(scenario, "address_change", scenario.address_change(), places);
  return moves.ok() ? check_fault_ranks(scenario, "crash", scenario.crash(), places) : moves;
}

Status check_leaves(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.leave_size(); ++i) {
    const std::string path = entry("leave", i);
    if (scenario.endpoint() != Scenario::core)
      return places.refuse(path, "belongs to endpoint core only");
    const Leave& leave = scenario.leave(i);
    const Status s = check_selector(scenario, path + ".ranks", leave.ranks(), places);
    if (!s.ok()) return s;
  }
  return {};
}

Status check_congestion(const Scenario& scenario, const Places& places) {
  if (!scenario.has_congestion() || scenario.endpoint() == Scenario::core) return {};
  return places.refuse("congestion", "belongs to endpoint core only");
}

Status check_sealing(const Scenario& scenario, const Places& places) {
  if (!scenario.has_sealing()) {
    if (scenario.translator_size() > 0) return places.refuse("translator", "needs sealing");
    if (scenario.address_change_size() > 0) return places.refuse("address_change", "needs sealing");
    return {};
  }
  for (int i = 0; i < scenario.translator_size(); ++i) {
    const Status s = check_selector(scenario, entry("translator", i) + ".ranks",
                                    scenario.translator(i).ranks(), places);
    if (!s.ok()) return s;
  }
  if (scenario.endpoint() != Scenario::core)
    return places.refuse("sealing", "belongs to endpoint core only");
  if (!scenario.contents()) return places.refuse("sealing", "needs values; contents is false");
  if (scenario.has_multicast()) return places.refuse("sealing", "knows no multicast");
  return {};
}

Status check_narrow(const Scenario& scenario, const Places& places) {
  if (scenario.narrow_size() == 0) return {};
  const std::string path = entry("narrow", 0);
  if (scenario.endpoint() != Scenario::core)
    return places.refuse(path, "belongs to endpoint core only");
  if (!scenario.contents()) return places.refuse(path, "needs values; contents is false");
  if (scenario.has_multicast()) return places.refuse(path, "knows no multicast");
  return {};
}

Status check_multicast(const Scenario& scenario, const Places& places) {
  if (!scenario.has_multicast()) return {};
  if (scenario.endpoint() != Scenario::core)
    return places.refuse("multicast", "belongs to endpoint core only");
  const Multicast& multicast = scenario.multicast();
  const Status s = check_selector(scenario, "multicast.from", multicast.from(), places);
  return s.ok() ? check_selector(scenario, "multicast.to", multicast.to(), places) : s;
}

Status check_communicators(const Scenario& scenario, const Places& places) {
  for (int i = 0; i < scenario.communicator_size(); ++i) {
    const Communicator& communicator = scenario.communicator(i);
    const std::string path = entry("communicator", i);
    if (scenario.endpoint() != Scenario::core)
      return places.refuse(path, "belongs to endpoint core only");
    if (!scenario.contents()) return places.refuse(path, "needs values; contents is false");
    const auto ranks = ranks_of(scenario, communicator.ranks());
    if (!ranks.ok())
      return places.refuse(path + ".ranks", "is wrong: " + std::string(ranks.status().text()));
    const Operation& operation = communicator.operation();
    if (operation.kind() == Operation::replica_step)
      return places.refuse(path + ".operation.kind", "cannot be replica_step");
    if (operation.owner_weights())
      return places.refuse(path + ".operation.owner_weights", "belongs to the first one only");
    if (operation.messages_first() > 0)
      return places.refuse(path + ".operation.messages_first", "belongs to the first one only");
    if (operation.site_ranks() > 0)
      return places.refuse(path + ".operation.site_ranks", "belongs to the first one only");
    if (operation.lanes() > 1)
      return places.refuse(path + ".operation.lanes", "belongs to the first one only");
    Scenario alone;
    alone.set_ranks(static_cast<std::uint32_t>(ranks->size()));
    *alone.mutable_operation() = operation;
    *alone.mutable_checkers() = communicator.checkers();
    if (const Status s = check_operation(alone, Places()); !s.ok())
      return places.refuse(path, "has an operation that is wrong: " + std::string(s.text()));
    for (int j = 0; j < communicator.abort_size(); ++j) {
      const auto rank = communicator.abort(j).rank();
      if (std::find(ranks->begin(), ranks->end(), rank) != ranks->end()) continue;
      return places.refuse(path + "." + entry("abort", j) + ".rank",
                           "is " + std::to_string(rank) + ", which is no member");
    }
  }
  return {};
}

// Refuses a fault that begins in the calm at the end (from calm_from_round on), because the calm
// ends all faults.
template <typename Faults>
Status check_before_calm(const Scenario& scenario, const char* list, const Faults& faults,
                         const Places& places) {
  const std::uint32_t calm = scenario.calm_from_round();
  for (int i = 0; i < faults.size(); ++i) {
    if (faults[i].from_round() < calm) continue;
    return places.refuse(entry(list, i) + ".from_round",
                         "is " + std::to_string(faults[i].from_round()) +
                             "; allowed is below calm_from_round, which is " +
                             std::to_string(calm));
  }
  return {};
}

Status check_calm(const Scenario& scenario, const Places& places) {
  if (!scenario.has_calm_from_round()) return {};
  if (scenario.calm_from_round() >= scenario.rounds()) {
    return places.refuse("calm_from_round", "is " + std::to_string(scenario.calm_from_round()) +
                                                "; allowed is below rounds, which is " +
                                                std::to_string(scenario.rounds()));
  }
  Status s = check_before_calm(scenario, "pause", scenario.pause(), places);
  if (s.ok()) s = check_before_calm(scenario, "crash", scenario.crash(), places);
  if (s.ok()) s = check_before_calm(scenario, "partition", scenario.partition(), places);
  if (s.ok()) s = check_before_calm(scenario, "address_change", scenario.address_change(), places);
  if (s.ok()) s = check_before_calm(scenario, "narrow", scenario.narrow(), places);
  return s;
}

Status check_group_size(const Scenario& scenario, const Places& places) {
  if (scenario.endpoint() != Scenario::core || scenario.ranks() <= limits::kPeersMax) return {};
  return places.refuse(
      "ranks", "is " + std::to_string(scenario.ranks()) + "; allowed with endpoint core is 1 to " +
                   std::to_string(limits::kPeersMax) + "; endpoint tcp_ring takes more");
}

}  // namespace

Status validate(const Scenario& scenario, const Places& places) {
  if (const Status s = check_limits(scenario, places); !s.ok()) return s;
  constexpr Status (*kRules[])(const Scenario&, const Places&) = {
      check_group_size, check_groups,     check_operation,     check_links,
      check_directions, check_compute,    check_cross_traffic, check_faults,
      check_calm,       check_congestion, check_narrow,        check_sealing,
      check_multicast,  check_leaves,     check_communicators, check_sweeps,
  };
  for (const auto rule : kRules) {
    if (const Status s = rule(scenario, places); !s.ok()) return s;
  }
  return {};
}

}  // namespace leeway::sim::scenario
