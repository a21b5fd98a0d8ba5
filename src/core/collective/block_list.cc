#include "collective/block_list.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/crc32c.h"
#include "wire/packet.h"

namespace leeway::collective {
namespace {

// Returns a + b, or the largest number if the sum does not fit. No buffer is that long, so fault()
// then finds the block too long.
std::size_t sum_or_most(std::size_t a, std::size_t b) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  return a > kMost - b ? kMost : a + b;
}

}  // namespace

BlockList::BlockList(const Blocks& blocks)
    : uneven_(true),
      counts_(blocks.counts.begin(), blocks.counts.end()),
      offsets_(blocks.displacements.begin(), blocks.displacements.end()) {
  if (!offsets_.empty()) return;
  std::size_t next = 0;
  for (const std::size_t count : counts_) {
    offsets_.push_back(next);
    next = sum_or_most(next, count);
  }
}

std::size_t BlockList::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::size_t{0}, sum_or_most);
}

std::size_t BlockList::longest() const {
  return counts_.empty() ? 0 : *std::max_element(counts_.begin(), counts_.end());
}

std::uint32_t BlockList::digest() const {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(counts_)));
  return crc <= wire::kUnevenPairs ? crc + 2 : crc;
}

const char* BlockList::fault(std::size_t ranks, std::size_t elements) const {
  if (counts_.size() != ranks) return "blocks need one count for each rank";
  if (offsets_.size() != ranks) return "blocks need one displacement for each rank, or none";
  for (std::size_t i = 0; i < ranks; ++i) {
    if (sum_or_most(offsets_[i], counts_[i]) > elements)
      return "a block reaches beyond the end of its buffer";
  }
  return nullptr;
}

bool BlockList::overlaps() const {
  std::vector<std::size_t> order(counts_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return counts_[i] == 0; });
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return offsets_[a] < offsets_[b]; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (offsets_[order[i - 1]] + counts_[order[i - 1]] > offsets_[order[i]]) return true;
  }
  return false;
}

}  // namespace leeway::collective
