#include "scenario/rank_set.h"

#include <algorithm>
#include <string>

#include "base/read_number.h"
#include "scenario/nearest_name.h"
#include "scenario/write_value.h"

namespace leeway::sim::scenario {
namespace {

struct Selection {
  const Scenario& scenario;
  bool groups_allowed;       // false inside a group, because groups consist of ranks
  std::vector<bool> chosen;  // by rank
};

Status refuse_item(std::string_view item, const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument, "\"%.*s\" %s",
                       static_cast<int>(std::min<std::size_t>(item.size(), 60)), item.data(),
                       why.c_str());
}

Status choose_range(std::string_view item, Selection& selection) {
  const std::uint32_t count = selection.scenario.ranks();
  const std::size_t dash = item.find('-');
  std::uint32_t first = 0;
  if (!read_number(item.substr(0, dash), first))
    return refuse_item(item, "is no rank and no range");
  std::uint32_t last = first;
  if (dash != std::string_view::npos) {
    const std::string_view tail = item.substr(dash + 1);
    last = std::max(first, count - 1);
    if (!tail.empty() && !read_number(tail, last)) return refuse_item(item, "is no range of ranks");
  }
  if (last < first) return refuse_item(item, "is a range that falls");
  if (last >= count) {
    return refuse_item(item, "leaves the ranks there are, 0 to " + std::to_string(count - 1));
  }
  std::fill(selection.chosen.begin() + first, selection.chosen.begin() + last + 1, true);
  return {};
}

Status choose_list(std::string_view selector, Selection& selection);

Status choose_group(std::string_view name, Selection& selection) {
  if (!selection.groups_allowed) return refuse_item(name, "is no rank and no range");
  std::vector<std::string> names;
  for (const Group& group : selection.scenario.group()) {
    names.push_back(group.name());
    if (group.name() != name) continue;
    selection.groups_allowed = false;
    const Status chosen = choose_list(group.ranks(), selection);
    selection.groups_allowed = true;
    return chosen;
  }
  return refuse_item(name, "is no group" + suggestion(name, names));
}

Status choose_item(std::string_view item, Selection& selection) {
  if (item.empty()) return refuse_item(item, "chooses no rank");
  if (item == "*") {
    selection.chosen.assign(selection.chosen.size(), true);
    return {};
  }
  const bool digit = item.front() >= '0' && item.front() <= '9';
  return digit ? choose_range(item, selection) : choose_group(item, selection);
}

Status choose_list(std::string_view selector, Selection& selection) {
  while (true) {
    const std::size_t comma = selector.find(',');
    const Status chosen = choose_item(trimmed(selector.substr(0, comma)), selection);
    if (!chosen.ok() || comma == std::string_view::npos) return chosen;
    selector.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<std::vector<std::uint32_t>> ranks_of(const Scenario& scenario, std::string_view selector) {
  Selection selection{scenario, true, std::vector<bool>(scenario.ranks(), false)};
  const Status chosen = choose_list(selector, selection);
  if (!chosen.ok()) return chosen;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < scenario.ranks(); ++rank) {
    if (selection.chosen[rank]) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace leeway::sim::scenario
