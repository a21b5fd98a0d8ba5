// Ranks meet in an arena: rank 0 broadcasts the arena's name over the datagrams, then all vote.
#include <algorithm>
#include <numeric>
#include <string>

#include "base/philox.h"
#include "communicator/joining.h"
#include "communicator/near_route.h"
#include "keys/derive.h"
#include "transport/shm/segment.h"

namespace leeway::internal {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

// Stream tag of the keyed hash (base/philox.h), for epochs.
constexpr std::uint32_t kSideStream = 0x4E000000;

// Limit on the ranks of an arena, and so on the pieces of a slot. We know no host with more cores.
constexpr int kNearRanksMax = 64;

// Broadcasts the arena's name from the first rank to the others. A name of zeros means that there
// is no arena.
Status tell(Channels& channels, near::ArenaName& name) {
  auto* const bytes = reinterpret_cast<std::uint8_t*>(name.data());
  OperationSpec spec{.kind = OperationKind::broadcast,
                     .input = {bytes, name.size(), DataType::u8},
                     .output = {bytes, name.size(), DataType::u8},
                     .peer = 0};
  return channels.run(spec).status();
}

bool is_there(const near::ArenaName& name) {
  return std::any_of(name.begin(), name.end(), [](std::byte byte) { return byte != std::byte{0}; });
}

Result<near::ArenaFile> make(const near::Shape& shape, near::ArenaName& name) {
  keys::fill_randomly(name);
  auto file = near::ArenaFile::create(transport::kSharedMemoryFolder, name, shape, 0);
  if (!file.ok()) name = {};
  return file;
}

Result<near::ArenaFile> find(const near::Shape& shape, const near::ArenaName& name, Rank self) {
  if (is_there(name))
    return near::ArenaFile::open(transport::kSharedMemoryFolder, name, shape, self);
  return Status::error(StatusCode::kUnavailable, "rank 0 has none for it");
}

// Makes a communicator of the same ranks, for calls that some rank cannot make in memory.
std::unique_ptr<Channels> side_of(const Channels& channels, Options options) {
  std::vector<Rank> ranks(static_cast<std::size_t>(channels.size()));
  std::iota(ranks.begin(), ranks.end(), Rank{0});
  const std::uint64_t epoch = keyed_hash(channels.config().epoch, 0, kSideStream, 0, 0);
  options.communicator_name += "/datagrams";
  return Lineage(channels).derive(options, ranks,
                                  std::max<std::uint32_t>(1, static_cast<std::uint32_t>(epoch)));
}

}  // namespace

Result<std::shared_ptr<NearRoute>> meet_near(Channels& channels, const Options& options,
                                             bool willing, std::stop_token stop, std::string& why) {
  const near::Shape shape = near::Shape::of(channels.size());
  const Rank self = channels.rank();
  const Status unwilling = Status::error(StatusCode::kUnsupported, "it is not for this rank");
  willing &= channels.size() <= kNearRanksMax && NearRoute::has_room();
  auto side = side_of(channels, options);
  const std::stop_callback on_stop(std::move(stop), [&] { side->abort(); });
  near::ArenaName name{};
  Result<near::ArenaFile> file(unwilling);
  if (self == 0 && willing) file = make(shape, name);
  Status status = tell(*side, name);
  if (status.ok() && self != 0 && willing) file = find(shape, name, self);
  const auto agreed = status.ok() ? all_say(*side, file.ok()) : Result<bool>(status);
  if (self == 0 && is_there(name))
    near::ArenaFile::remove_name(transport::kSharedMemoryFolder, name);
  if (!agreed.ok()) return agreed.status();
  why = file.ok() ? "another rank cannot" : file.status().c_str();
  if (!*agreed) return std::shared_ptr<NearRoute>();
  return std::make_shared<NearRoute>(std::move(*file), channels, std::move(side), options);
}

}  // namespace leeway::internal
