#include "near/arena.h"

#include <algorithm>

#include "base/hex_text.h"

namespace leeway::near {
namespace {

constexpr std::size_t kSlotBytesMax = std::size_t{128} << 10;
constexpr std::size_t kSlotBytesMin = std::size_t{4} << 10;

// Target for the bytes of all slots of a communicator. The limits on one slot take precedence.
constexpr std::size_t kSlotsBytes = std::size_t{12} << 20;

}  // namespace

Shape Shape::of(int ranks) {
  const std::size_t share = kSlotsBytes / (static_cast<std::size_t>(ranks) * kSlots);
  return {ranks, std::clamp(share / kLineBytes * kLineBytes, kSlotBytesMin, kSlotBytesMax)};
}

std::string file_name(const ArenaName& name) {
  return "leeway-" + hex_text(name);
}

Result<ArenaFile> ArenaFile::map(const MemoryFile& file, const std::string& folder,
                                 const ArenaName& name, const Shape& shape, Rank self) {
  auto mapping = file.map(self * shape.part_bytes(), shape.part_bytes());
  if (!mapping.ok()) return mapping.status();
  return ArenaFile(folder, name, shape, self, std::move(*mapping));
}

Result<ArenaFile> ArenaFile::create(const std::string& folder, const ArenaName& name,
                                    const Shape& shape, Rank self) {
  const auto file = MemoryFile::create(folder, file_name(name), shape.bytes());
  if (!file.ok()) return file.status();
  auto arena = map(*file, folder, name, shape, self);
  if (!arena.ok()) remove_name(folder, name);
  return arena;
}

Result<ArenaFile> ArenaFile::open(const std::string& folder, const ArenaName& name,
                                  const Shape& shape, Rank self) {
  const auto file = MemoryFile::open(folder, file_name(name), shape.bytes());
  if (!file.ok()) return file.status();
  return map(*file, folder, name, shape, self);
}

void ArenaFile::remove_name(const std::string& folder, const ArenaName& name) {
  MemoryFile::remove_name(folder, file_name(name));
}

}  // namespace leeway::near
