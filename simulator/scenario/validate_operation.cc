// Rules about operation, workload and checkers.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "leeway/codec.h"
#include "leeway/options.h"
#include "scenario/validate.h"

namespace leeway::sim::scenario {
namespace {

Status check_codec(const std::string& path, const std::string& text, const Places& places) {
  const Result<CodecOptions> codec = parse_codec(text);
  if (codec.ok()) return {};
  return places.refuse(path,
                       "is \"" + text.substr(0, 40) + "\": " + std::string(codec.status().text()));
}

Status check_codecs(const Operation& operation, const Places& places) {
  Status checked = check_codec("operation.codec", operation.codec(), places);
  if (checked.ok() && operation.has_spread_codec()) {
    checked = check_codec("operation.spread_codec", operation.spread_codec(), places);
  }
  if (!checked.ok()) return checked;
  return check_codec("operation.replica.codec", operation.replica().codec(), places);
}

Status check_delivery(const Delivery& delivery, const Places& places) {
  if (!delivery.has_loss_max() || delivery.kind() == Delivery::bounded) return {};
  return places.refuse("operation.delivery.loss_max", "belongs to kind bounded only");
}

Status check_workload(const Workload& workload, const Places& places) {
  const Workload::Gpt& gpt = workload.gpt();
  if (workload.has_gpt() && gpt.width() % gpt.heads() != 0) {
    return places.refuse("workload.gpt.width", "is " + std::to_string(gpt.width()) +
                                                   "; allowed are multiples of heads, which is " +
                                                   std::to_string(gpt.heads()));
  }
  if (workload.kind_case() != Workload::KIND_NOT_SET) return {};
  return places.refuse("workload", "is empty; say which, such as quadratic {}");
}

constexpr std::array<std::string_view, 21> kInvariants = {
    "i1",  "i2",  "i3",  "i4",  "i5",  "i6",  "i7",  "i8",  "i9",  "i10", "i11",
    "i12", "i13", "i14", "i15", "i16", "i17", "i18", "i19", "i20", "i21"};

Status check_checkers(const Checkers& checkers, const Places& places) {
  for (int i = 0; i < checkers.skip_size(); ++i) {
    const std::string& name = checkers.skip(i);
    if (std::find(kInvariants.begin(), kInvariants.end(), name) != kInvariants.end()) continue;
    return places.refuse("checkers.skip[" + std::to_string(i) + "]",
                         "is \"" + name.substr(0, 40) + "\"; allowed are i1 to i21");
  }
  return {};
}

// Refuses options that need endpoint core, if the endpoint is another one.
Status check_core_only(const Scenario& scenario, const Places& places) {
  if (scenario.endpoint() == Scenario::core) return {};
  const Operation& operation = scenario.operation();
  if (operation.kind() > Operation::replica_step)
    return places.refuse("operation.kind", "needs endpoint core");
  if (operation.root() != 0) return places.refuse("operation.root", "needs endpoint core");
  if (operation.confirm_use()) return places.refuse("operation.confirm_use", "needs endpoint core");
  if (operation.owner_weights())
    return places.refuse("operation.owner_weights", "needs endpoint core");
  if (operation.uneven()) return places.refuse("operation.uneven", "needs endpoint core");
  if (operation.tags() > 1) return places.refuse("operation.tags", "needs endpoint core");
  if (operation.any_source()) return places.refuse("operation.any_source", "needs endpoint core");
  if (operation.exchange()) return places.refuse("operation.exchange", "needs endpoint core");
  if (operation.messages_first() > 0)
    return places.refuse("operation.messages_first", "needs endpoint core");
  if (operation.non_finite() > 0)
    return places.refuse("operation.non_finite", "needs endpoint core");
  if (operation.site_ranks() > 0)
    return places.refuse("operation.site_ranks", "needs endpoint core");
  if (operation.lanes() > 1) return places.refuse("operation.lanes", "needs endpoint core");
  return {};
}

// Returns true if operations of this kind have a buffer with one block for each rank.
bool has_blocks(Operation::Kind kind) {
  return kind == Operation::reduce_scatter || kind == Operation::all_gather ||
         kind == Operation::all_to_all;
}

Status check_root(const Scenario& scenario, const Places& places) {
  if (scenario.operation().root() < scenario.ranks()) return {};
  return places.refuse("operation.root", "is " + std::to_string(scenario.operation().root()) +
                                             "; allowed is 0 to " +
                                             std::to_string(scenario.ranks() - 1));
}

// Checks that there are several sites with equally many ranks, as collective::SiteMap requires.
Status check_sites(const Scenario& scenario, const Places& places) {
  const Operation& operation = scenario.operation();
  const std::uint32_t per_site = operation.site_ranks();
  if (per_site == 0) {
    if (operation.site_piece_bytes() == 0) return {};
    return places.refuse("operation.site_piece_bytes", "needs site_ranks");
  }
  const auto refuse = [&](const std::string& why) {
    return places.refuse("operation.site_ranks", why);
  };
  if (per_site < 2 || 2 * std::uint64_t{per_site} > scenario.ranks() ||
      scenario.ranks() % per_site != 0) {
    return refuse("is " + std::to_string(per_site) + "; allowed is 2 and above, of which ranks, " +
                  std::to_string(scenario.ranks()) + ", is a multiple of two and more");
  }
  if (operation.kind() != Operation::all_reduce && operation.kind() != Operation::reduce_scatter &&
      operation.kind() != Operation::all_gather) {
    return refuse("belongs to kinds all_reduce, reduce_scatter and all_gather only");
  }
  if (scenario.leave_size() > 0) return refuse("knows no leave");
  return {};
}

// Refuses options that the library or the simulator does not support with several lanes.
Status check_lanes(const Scenario& scenario, const Places& places) {
  const Operation& operation = scenario.operation();
  const auto refuse = [&](const char* why) { return places.refuse("operation.lanes", why); };
  if (operation.lanes() == 1) {
    return operation.has_slice_bytes() ? places.refuse("operation.slice_bytes", "needs lanes")
                                       : Status();
  }
  if (operation.kind() != Operation::all_reduce && operation.kind() != Operation::all_gather)
    return refuse("belongs to kinds all_reduce and all_gather only");
  if (operation.site_ranks() > 0) return refuse("does not go with site_ranks");
  if (scenario.has_multicast()) return refuse("does not go with multicast");
  if (scenario.has_sealing()) return refuse("does not go with sealing");
  if (scenario.narrow_size() > 0) return refuse("does not go with narrow");
  if (scenario.leave_size() > 0) return refuse("knows no leave");
  return {};
}

// Refuses options that need the values of tensors, if the scenario has contents: false.
Status check_contents(const Scenario& scenario, const Places& places) {
  const Operation& operation = scenario.operation();
  if (scenario.contents()) return {};
  if (scenario.endpoint() != Scenario::core)
    return places.refuse("contents", "is false; that belongs to endpoint core only");
  const auto refuse = [&](const char* path) {
    return places.refuse(path, "needs values; contents is false");
  };
  const auto automatic = [](const std::string& codec) {
    return parse_codec(codec)->codec == Codec::automatic;
  };
  if (scenario.has_workload()) return refuse("workload");
  if (operation.kind() == Operation::replica_step || operation.kind() == Operation::messages)
    return refuse("operation.kind");
  if (operation.messages_first() > 0) return refuse("operation.messages_first");
  if (operation.owner_weights()) return refuse("operation.owner_weights");
  if (operation.site_ranks() > 0) return refuse("operation.site_ranks");
  if (operation.lanes() > 1) return refuse("operation.lanes");
  if (operation.error_feedback()) return refuse("operation.error_feedback");
  if (operation.non_finite() > 0) return refuse("operation.non_finite");
  if (operation.has_control_variate()) return refuse("operation.control_variate");
  if (automatic(operation.codec())) return refuse("operation.codec");
  if (operation.has_spread_codec() && automatic(operation.spread_codec()))
    return refuse("operation.spread_codec");
  return {};
}

}  // namespace

Status check_operation(const Scenario& scenario, const Places& places) {
  const Operation& operation = scenario.operation();
  if (operation.bytes() % 4 != 0) {
    return places.refuse("operation.bytes", "is " + std::to_string(operation.bytes()) +
                                                "; allowed are multiples of 4");
  }
  if (const Status s = check_root(scenario, places); !s.ok()) return s;
  if (const Status s = check_core_only(scenario, places); !s.ok()) return s;
  if (operation.uneven() && !has_blocks(operation.kind())) {
    return places.refuse("operation.uneven",
                         "belongs to kinds reduce_scatter, all_gather and all_to_all only");
  }
  if (operation.messages_first() > 0 && operation.kind() == Operation::messages)
    return places.refuse("operation.messages_first", "belongs to kinds other than messages only");
  if (operation.non_finite() > 0 && operation.delivery().kind() == scenario::Delivery::exact)
    return places.refuse("operation.non_finite", "belongs to lossy deliveries only");
  if (operation.owner_weights() && !operation.confirm_use())
    return places.refuse("operation.owner_weights", "needs confirm_use");
  if (operation.has_control_variate() && operation.estimator() != Operation::augmented) {
    return places.refuse("operation.control_variate", "belongs to estimator augmented only");
  }
  if (const Status s = check_sites(scenario, places); !s.ok()) return s;
  if (const Status s = check_lanes(scenario, places); !s.ok()) return s;
  if (const Status s = check_codecs(operation, places); !s.ok()) return s;
  if (const Status s = check_delivery(operation.delivery(), places); !s.ok()) return s;
  if (operation.has_inject()) {
    const Result<FaultOptions> faults = parse_faults(operation.inject());
    if (!faults.ok()) {
      return places.refuse("operation.inject", "is wrong: " + std::string(faults.status().text()));
    }
  }
  if (scenario.has_workload()) {
    if (const Status s = check_workload(scenario.workload(), places); !s.ok()) return s;
  }
  if (const Status s = check_contents(scenario, places); !s.ok()) return s;
  return check_checkers(scenario.checkers(), places);
}

}  // namespace leeway::sim::scenario
