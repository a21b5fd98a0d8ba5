#include "scenario/set_field.h"

#include <algorithm>
#include <string>

#include "scenario/places.h"
#include "scenario/write_value.h"

namespace leeway::sim::scenario {
namespace {

using google::protobuf::Message;
using google::protobuf::Reflection;

// The arguments of set_field().
struct Walk {
  const FieldPath& path;
  std::string_view value;
};

Status descend(Message& message, const Walk& walk, std::size_t depth);

Status step_into(Message& message, const Walk& walk, std::size_t depth, int index) {
  const FieldStep& step = walk.path[depth];
  const Reflection& reflection = *message.GetReflection();
  const Slot slot{message, *step.field, index, walk.path};
  if (depth + 1 == walk.path.size()) {
    const bool whole_list = slot.in_list() && index == kNoIndex;
    return whole_list ? write_list(slot, walk.value) : write_value(slot, walk.value);
  }
  return descend(index == kNoIndex
                     ? *reflection.MutableMessage(&message, step.field)
                     : *reflection.MutableRepeatedMessage(&message, step.field, index),
                 walk, depth + 1);
}

Status descend(Message& message, const Walk& walk, std::size_t depth) {
  const FieldStep& step = walk.path[depth];
  if (step.index == kNoIndex) return step_into(message, walk, depth, kNoIndex);
  const int count = message.GetReflection()->FieldSize(message, step.field);
  if (step.index >= count || count == 0) {
    const Slot slot{message, *step.field, step.index, walk.path};
    return refuse(slot, "names nothing: " + step.field->name() + " has " + std::to_string(count) +
                            (count == 1 ? " entry" : " entries"));
  }
  const int first = step.index == kEveryIndex ? 0 : step.index;
  const int last = step.index == kEveryIndex ? count - 1 : step.index;
  for (int i = first; i <= last; ++i) {
    const Status written = step_into(message, walk, depth, i);
    if (!written.ok()) return written;
  }
  return {};
}

void remove_sweeps_of(Scenario& scenario, const std::string& path_text) {
  auto& sweeps = *scenario.mutable_sweep();
  for (int i = sweeps.size() - 1; i >= 0; --i) {
    const Result<FieldPath> swept = parse_path(*Scenario::descriptor(), sweeps[i].field());
    if (swept.ok() && to_string(*swept) == path_text) sweeps.DeleteSubrange(i, 1);
  }
}

}  // namespace

Status set_field(Scenario& scenario, const FieldPath& path, std::string_view value) {
  Scenario changed = scenario;
  const Status written = descend(changed, Walk{path, trimmed(value)}, 0);
  if (written.ok()) scenario.Swap(&changed);
  return written;
}

Status set_field(Scenario& scenario, std::string_view path, std::string_view value) {
  const Result<FieldPath> parsed = parse_path(*Scenario::descriptor(), trimmed(path));
  return parsed.ok() ? set_field(scenario, *parsed, value) : parsed.status();
}

Status apply_setting(Scenario& scenario, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return Status::error(StatusCode::kInvalidArgument,
                         "\"%.*s\" sets nothing; write field=value, such as "
                         "link[0].loss.random.p=0.01",
                         static_cast<int>(std::min<std::size_t>(assignment.size(), 60)),
                         assignment.data());
  }
  const std::string_view path_text = trimmed(assignment.substr(0, equals));
  const Result<FieldPath> path = parse_path(*Scenario::descriptor(), path_text);
  if (!path.ok()) return path.status();
  const Status written = set_field(scenario, *path, assignment.substr(equals + 1));
  if (written.ok()) remove_sweeps_of(scenario, to_string(*path));
  return written;
}

Status apply_full(Scenario& scenario) {
  const auto settings = scenario.full();
  scenario.clear_full();
  for (const std::string& setting : settings) {
    const Status applied = apply_setting(scenario, setting);
    if (!applied.ok()) return applied;
  }
  return {};
}

}  // namespace leeway::sim::scenario
