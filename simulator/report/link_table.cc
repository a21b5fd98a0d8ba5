#include "report/link_table.h"

#include <algorithm>

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

void add(std::vector<LinkRow>& rows, const CellSummary& cell,
         const std::vector<LinkSummary>& links) {
  for (const LinkSummary& link : links) rows.push_back({&cell, link});
}

bool contains(const std::vector<LinkRow>& rows, const LinkRow& row) {
  return std::any_of(rows.begin(), rows.end(), [&](const LinkRow& other) {
    return other.cell == row.cell && other.link.name == row.link.name;
  });
}

}  // namespace

std::vector<LinkSummary> busiest(std::vector<LinkSummary> links, std::size_t count) {
  std::erase_if(links, [](const LinkSummary& link) { return link.utilisation <= 0; });
  return first_of(std::move(links), count, busier);
}

std::vector<LinkSummary> lossiest(std::vector<LinkSummary> links, std::size_t count) {
  std::erase_if(links, [](const LinkSummary& link) { return link.lost() == 0; });
  return first_of(std::move(links), count, lossier);
}

std::vector<LinkRow> noteworthy_links(std::span<const CellSummary> cells, std::size_t count) {
  std::vector<LinkRow> busy, lossy;
  for (const CellSummary& cell : cells) {
    const std::vector<LinkSummary> links = cell.links();
    add(busy, cell, busiest(links, count));
    add(lossy, cell, lossiest(links, count));
  }
  const auto by_link = [](auto before) {
    return [before](const LinkRow& a, const LinkRow& b) { return before(a.link, b.link); };
  };
  std::vector<LinkRow> rows = first_of(std::move(lossy), count, by_link(lossier));
  for (LinkRow& row : first_of(std::move(busy), count, by_link(busier))) {
    if (!contains(rows, row)) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace leeway::sim
