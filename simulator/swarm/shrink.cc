#include "swarm/shrink.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "scenario/validate.h"

namespace leeway::sim::swarm {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using scenario::Scenario;

// Returns true for a field that is never cleared. Either its default would make the scenario
// larger, or shrinking does not touch the field.
bool is_kept(const FieldDescriptor& field) {
  const auto& name = field.full_name();
  constexpr const char* kKept[] = {"ranks", "rounds",          "checkers",
                                   "seed",  "Operation.bytes", "Replica.drift_samples"};
  return std::any_of(std::begin(kKept), std::end(kKept), [&](const char* kept) {
    return name == std::string("leeway.sim.scenario.Scenario.") + kept ||
           name == std::string("leeway.sim.scenario.") + kept;
  });
}

// Returns true for a message that is never cleared as a whole, because its default is larger.
bool has_size(const FieldDescriptor& field) {
  return field.full_name() == "leeway.sim.scenario.Scenario.operation" ||
         field.full_name() == "leeway.sim.scenario.Communicator.operation";
}

bool leave_out_inside(Message& message, int& place);

bool leave_out_entry(Message& message, const FieldDescriptor& field, int& place) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  for (int i = 0; i < size; ++i) {
    if (place-- == 0) {
      for (int j = i; j + 1 < size; ++j) reflection.SwapElements(&message, &field, j, j + 1);
      reflection.RemoveLast(&message, &field);
      return true;
    }
    if (leave_out_inside(*reflection.MutableRepeatedMessage(&message, &field, i), place))
      return true;
  }
  return false;
}

// Removes the field with number `place` among those that are set. Numbers begin at 0, and a message
// comes before its contents. Subtracts from `place` the number of fields that were passed. Returns
// false if there are fewer fields.
bool leave_out_inside(Message& message, int& place) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const bool is_message = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (is_kept(*field) || (field->is_repeated() && !is_message)) continue;
    if (field->is_repeated()) {
      if (leave_out_entry(message, *field, place)) return true;
      continue;
    }
    if (!has_size(*field) && place-- == 0) {
      reflection.ClearField(&message, field);
      return true;
    }
    if (is_message && leave_out_inside(*reflection.MutableMessage(&message, field), place))
      return true;
  }
  return false;
}

class Shrinking {
 public:
  Shrinking(const Scenario& scenario, const Fails& fails, unsigned tries)
      : best_(scenario), fails_(fails), tries_(tries) {}

  Scenario run() {
    do {
      changed_ = false;
      less_of(&Scenario::ranks, &Scenario::set_ranks);
      less_of(&Scenario::rounds, &Scenario::set_rounds);
      smaller_sites();
      fewer_lanes();
      fewer_bytes();
      less_of_communicators();
      fewer_settings();
    } while (changed_ && tries_ > 0);
    return best_;
  }

 private:
  bool keep(Scenario candidate) {
    if (tries_ == 0 || !scenario::validate(candidate).ok()) return false;
    --tries_;
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    changed_ = true;
    return true;
  }

  // Halves the number while the scenario still fails, then subtracts 1 while it still fails.
  void less_of(std::uint32_t (Scenario::*get)() const, void (Scenario::*set)(std::uint32_t)) {
    const auto try_value = [&](std::uint32_t value) {
      Scenario candidate = best_;
      (candidate.*set)(value);
      if (candidate.calm_from_round() >= candidate.rounds()) candidate.clear_calm_from_round();
      return keep(std::move(candidate));
    };
    while ((best_.*get)() > 1 && try_value((best_.*get)() / 2)) {
    }
    while ((best_.*get)() > 1 && try_value((best_.*get)() - 1)) {
    }
  }

  void fewer_bytes() {
    while (best_.operation().bytes() >= 8) {
      Scenario candidate = best_;
      candidate.mutable_operation()->set_bytes(best_.operation().bytes() / 8 * 4);
      if (!keep(std::move(candidate))) return;
    }
  }

  // Tries one site less, then one rank less in each site.
  void smaller_sites() {
    const auto try_sites = [&](std::uint32_t sites, std::uint32_t per_site) {
      Scenario candidate = best_;
      candidate.set_ranks(sites * per_site);
      candidate.mutable_operation()->set_site_ranks(per_site);
      return keep(std::move(candidate));
    };
    for (bool smaller = best_.operation().site_ranks() > 0; smaller;) {
      const std::uint32_t per_site = best_.operation().site_ranks();
      const std::uint32_t sites = best_.ranks() / per_site;
      smaller = try_sites(sites - 1, per_site) || try_sites(sites, per_site - 1);
    }
  }

  void fewer_lanes() {
    while (best_.operation().lanes() > 1) {
      Scenario candidate = best_;
      scenario::Operation& operation = *candidate.mutable_operation();
      operation.set_lanes(operation.lanes() - 1);
      if (operation.lanes() == 1) {
        operation.clear_lanes();
        operation.clear_slice_bytes();
      }
      if (!keep(std::move(candidate))) return;
    }
  }

  void less_of_communicators() {
    for (int i = 0; i < best_.communicator_size(); ++i) {
      while (best_.communicator(i).rounds() > 1) {
        Scenario candidate = best_;
        candidate.mutable_communicator(i)->set_rounds(best_.communicator(i).rounds() / 2);
        if (!keep(std::move(candidate))) break;
      }
      while (best_.communicator(i).operation().bytes() >= 8) {
        Scenario candidate = best_;
        auto& operation = *candidate.mutable_communicator(i)->mutable_operation();
        operation.set_bytes(operation.bytes() / 8 * 4);
        if (!keep(std::move(candidate))) break;
      }
    }
  }

  void fewer_settings() {
    for (int place = 0;;) {
      Scenario candidate = best_;
      int left = place;
      if (!leave_out_inside(candidate, left)) return;
      if (!keep(std::move(candidate))) ++place;
    }
  }

  Scenario best_;
  const Fails& fails_;
  unsigned tries_;
  bool changed_ = false;
};

}  // namespace

Scenario shrink(const Scenario& scenario, const Fails& fails, unsigned tries_max) {
  return Shrinking(scenario, fails, tries_max).run();
}

}  // namespace leeway::sim::swarm
