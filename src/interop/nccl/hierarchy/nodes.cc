#include "interop/nccl/hierarchy/nodes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <fstream>

#include "keys/derive.h"

namespace leeway::nccl {

std::uint64_t this_host(const std::string& host_id) {
  std::string text = host_id;
  if (text.empty()) {
    std::array<char, HOST_NAME_MAX + 1> name{};
    (void)::gethostname(name.data(), name.size() - 1);
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    text = name.data() + boot;
  }
  const keys::Key digest = keys::extract({}, std::as_bytes(std::span(text)));
  std::uint64_t host = 0;
  std::memcpy(&host, digest.data(), sizeof host);
  return host;
}

Nodes::Place Nodes::place_of(int rank) const {
  const auto at = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  return {at / each, at % each};
}

int Nodes::local_of(int rank) const {
  const auto first = ranks.begin() + static_cast<std::ptrdiff_t>(first_of(node));
  const auto found = std::find(first, first + each, rank);
  return found == first + each ? -1 : static_cast<int>(found - first);
}

bool Nodes::in_order() const {
  return std::is_sorted(ranks.begin(), ranks.end());
}

Result<Nodes> nodes_of(std::span<const Site> sites, int self) {
  struct Host {
    std::uint64_t number;
    std::vector<int> ranks;
  };
  std::vector<Host> hosts;
  for (std::size_t rank = 0; rank < sites.size(); ++rank) {
    const auto is_here = [&](const Host& one) { return one.number == sites[rank].host; };
    auto host = std::find_if(hosts.begin(), hosts.end(), is_here);
    if (host == hosts.end()) host = hosts.insert(hosts.end(), {sites[rank].host, {}});
    for (const int other : host->ranks) {
      if (sites[static_cast<std::size_t>(other)].gpu != sites[rank].gpu) continue;
      return Status::error(StatusCode::kUnsupported, "ranks %d and %zu have one GPU", other, rank);
    }
    host->ranks.push_back(static_cast<int>(rank));
  }
  Nodes nodes;
  nodes.count = static_cast<int>(hosts.size());
  nodes.each = static_cast<int>(hosts.front().ranks.size());
  for (int node = 0; node < nodes.count; ++node) {
    const std::vector<int>& ranks = hosts[static_cast<std::size_t>(node)].ranks;
    if (ranks.size() != hosts.front().ranks.size()) {
      return Status::error(StatusCode::kUnsupported, "nodes 0 and %d have %zu and %zu ranks", node,
                           hosts.front().ranks.size(), ranks.size());
    }
    nodes.ranks.insert(nodes.ranks.end(), ranks.begin(), ranks.end());
    const auto found = std::find(ranks.begin(), ranks.end(), self);
    if (found == ranks.end()) continue;
    nodes.node = node;
    nodes.local = static_cast<int>(found - ranks.begin());
  }
  return nodes;
}

}  // namespace leeway::nccl
