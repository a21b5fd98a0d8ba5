#include "transport/verbs/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>

#include "transport/verbs/refusals.h"

namespace leeway::transport {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

Result<Arena> Arena::make(ibv_pd* domain, const VerbsPort& port, const char* what,
                          std::size_t bytes, int access) {
  const std::size_t rounded = (bytes + kPage - 1) / kPage * kPage;
  Arena arena;
  arena.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
  if (arena.memory_ == nullptr) return refusal::no_memory(port, what, bytes, ENOMEM, std::nullopt);
  std::memset(arena.data(), 0, rounded);
  arena.region_.reset(ibv_reg_mr(domain, arena.data(), rounded, access));
  if (arena.region_ != nullptr) return arena;
  return refusal::no_memory(port, what, bytes, errno, refusal::locked_memory_limit());
}

std::vector<Regions::Region>::const_iterator Regions::after(const std::byte* data) const {
  return std::ranges::upper_bound(regions_, data, std::less<>(),
                                  [](const Region& region) { return region.memory.data(); });
}

int Regions::add(ByteSpan memory) {
  if (memory.empty()) return 0;
  errno = 0;
  RegionHandle::pointer handle = calls_.add(memory);
  if (handle == nullptr) return errno != 0 ? errno : EIO;
  regions_.insert(after(memory.data()), {memory, handle});
  return 0;
}

void Regions::drop(ByteSpan memory) {
  const auto at = std::ranges::find_if(regions_, [memory](const Region& region) {
    return region.memory.data() == memory.data() && region.memory.size() == memory.size();
  });
  if (at == regions_.end()) return;
  calls_.drop(at->handle);
  regions_.erase(at);
}

void Regions::clear() {
  for (const Region& region : regions_) calls_.drop(region.handle);
  regions_.clear();
}

std::optional<std::uint32_t> Regions::key_of(const std::byte* data, std::size_t bytes) const {
  const auto next = after(data);
  if (next == regions_.begin()) return std::nullopt;
  const Region& region = *std::prev(next);
  const auto offset = static_cast<std::size_t>(data - region.memory.data());
  if (offset > region.memory.size() || bytes > region.memory.size() - offset) return std::nullopt;
  return region.handle->lkey;
}

}  // namespace leeway::transport
