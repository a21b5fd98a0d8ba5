#include "scenario/nearest_name.h"

#include <algorithm>
#include <cstdlib>

namespace leeway::sim::scenario {
namespace {

// Limits in characters, on a name that may be a typing error and on a list of valid names. A Status
// has room for a few hundred characters only.
constexpr std::size_t kNameMax = 64;
constexpr std::size_t kListMax = 150;

}  // namespace

// Computes the optimal string alignment distance, keeping three rows of its table.
int edit_distance(std::string_view from, std::string_view to) {
  std::vector<int> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[to.size()];
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates) {
  if (name.empty() || name.size() > kNameMax) return {};
  int best = static_cast<int>(name.size() + 1) / 2;  // at this distance, half of the name is wrong
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_name(name, candidates);
  if (!nearest.empty()) return "; did you mean \"" + nearest + "\"?";
  if (candidates.empty()) return "; none are defined";
  std::string list = "; valid are " + candidates.front();
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (list.size() + candidates[i].size() > kListMax) return list + ", ...";
    list += ", " + candidates[i];
  }
  return list;
}

std::vector<std::string> field_names(const google::protobuf::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

std::vector<std::string> value_names(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) names.push_back(type.value(i)->name());
  return names;
}

}  // namespace leeway::sim::scenario
