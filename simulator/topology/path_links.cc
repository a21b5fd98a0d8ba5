#include "topology/path_links.h"

namespace leeway::sim {
namespace {

std::vector<std::uint32_t> classes_with(const RankFlags& ranks,
                                        const std::vector<std::uint32_t>& class_of,
                                        std::uint32_t classes) {
  RankFlags chosen(classes, false);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank]) chosen[class_of[rank]] = true;
  }
  std::vector<std::uint32_t> list;
  for (std::uint32_t i = 0; i < classes; ++i) {
    if (chosen[i]) list.push_back(i);
  }
  return list;
}

}  // namespace

Result<PathLinks> PathLinks::make(const LinkRules& rules, std::uint32_t ranks, bool everywhere,
                                  PropertyPool& pool) {
  PathLinks paths;
  paths.class_of_.assign(ranks, 0);
  for (const LinkRules::Rule& rule : rules.of_tier(scenario::Link::path)) {
    for (const auto& [from, to] : rule.directions) {
      paths.divide(from);
      paths.divide(to);
    }
    if (paths.classes_ > kClassesMax) {
      return Status::error(StatusCode::kInvalidArgument,
                           "link[%u] is one too many: the rules for paths tell more than %u kinds "
                           "of ranks apart",
                           rule.index, kClassesMax);
    }
  }
  const std::uint32_t classes = paths.classes_;
  std::vector<LinkSettings> settings(std::size_t{classes} * classes);
  std::vector<bool> chosen(settings.size(), everywhere);
  for (const LinkRules::Rule& rule : rules.of_tier(scenario::Link::path)) {
    for (const auto& [from, to] : rule.directions) {
      const std::vector<std::uint32_t> columns = classes_with(to, paths.class_of_, classes);
      for (const std::size_t row : classes_with(from, paths.class_of_, classes)) {
        for (const std::size_t column : columns) {
          rules.apply(rule, settings[row * classes + column]);
          chosen[row * classes + column] = true;
        }
      }
    }
  }
  paths.table_.assign(settings.size(), kNone);
  for (std::size_t at = 0; at < settings.size(); ++at) {
    if (!chosen[at]) continue;
    paths.any_ = true;
    const Result<std::uint32_t> index = pool.index_of(settings[at]);
    if (!index.ok()) return index.status();
    paths.table_[at] = *index;
  }
  return paths;
}

// Splits the classes of ranks. After it, no class has both ranks in `by` and ranks not in `by`.
void PathLinks::divide(const RankFlags& by) {
  std::vector<std::uint32_t> renumbered(2 * std::size_t{classes_}, kNone);
  classes_ = 0;
  for (std::size_t rank = 0; rank < class_of_.size(); ++rank) {
    std::uint32_t& number = renumbered[2 * class_of_[rank] + by[rank]];
    if (number == kNone) number = classes_++;
    class_of_[rank] = number;
  }
}

}  // namespace leeway::sim
