#include "report/link_table.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace leeway::sim {
namespace {

bool busier(const LinkSummary& a, const LinkSummary& b) {
  return a.utilisation > b.utilisation;
}
bool lossier(const LinkSummary& a, const LinkSummary& b) {
  return a.lost_share() > b.lost_share();
}

template <typename T, typename Before>
std::vector<T> first_of(std::vector<T> list, std::size_t count, Before&& before) {
  std::stable_sort(list.begin(), list.end(), before);
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(std::min(count, list.size())), list.end());
  return list;
}

bool contains(const std::vector<LinkRow>& rows, std::string_view name) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const LinkRow& row) { return row.link.name == name; });
}

// Returns the first `count` links of all cells in the order `before`. A link that occurs in several
// cells is listed once, at its first place in that order.
template <typename Choose, typename Before>
std::vector<LinkRow> first_names(std::span<const CellSummary> cells, std::size_t count,
                                 Choose&& choose, Before&& before) {
  std::vector<LinkRow> all;
  for (const CellSummary& cell : cells) {
    for (LinkSummary& link : choose(cell.links(), count)) all.push_back({&cell, std::move(link)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const LinkRow& a, const LinkRow& b) { return before(a.link, b.link); });
  std::vector<LinkRow> rows;
  for (LinkRow& row : all) {
    if (rows.size() < count && !contains(rows, row.link.name)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

std::vector<LinkSummary> busiest(std::vector<LinkSummary> links, std::size_t count) {
  std::erase_if(links, [](const LinkSummary& link) { return !(link.utilisation > 0); });
  return first_of(std::move(links), count, busier);
}

std::vector<LinkSummary> lossiest(std::vector<LinkSummary> links, std::size_t count) {
  std::erase_if(links, [](const LinkSummary& link) { return link.lost() == 0; });
  return first_of(std::move(links), count, lossier);
}

std::vector<LinkRow> noteworthy_links(std::span<const CellSummary> cells, std::size_t count) {
  std::vector<LinkRow> rows = first_names(cells, count, lossiest, lossier);
  for (LinkRow& row : first_names(cells, count, busiest, busier)) {
    if (!contains(rows, row.link.name)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace leeway::sim
