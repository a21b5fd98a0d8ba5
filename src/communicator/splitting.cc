// New communicators out of the ranks of one that is there.
#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "base/philox.h"
#include "communicator/channels.h"
#include "leeway/communicator.h"

namespace leeway {
namespace {

// Stream tag of the keyed hash (base/philox.h).
constexpr std::uint32_t kShrinkStream = 0x46000000;

// What a rank tells the others in a split: color, key, and a number that may become the epoch.
using Wish = std::array<std::int32_t, 3>;

std::uint32_t never_zero(std::uint64_t epoch) {
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(epoch));
}

Options options_of(const Options& parent, std::span<const Rank> ranks, Rank self,
                   const std::string& suffix) {
  Options options = parent;
  options.rank = static_cast<int>(std::find(ranks.begin(), ranks.end(), self) - ranks.begin());
  options.world_size = static_cast<int>(ranks.size());
  options.communicator_name += suffix;
  return options;
}

// The ranks of a color, in the order of the new communicator.
std::vector<Rank> ranks_of(std::span<const Wish> wishes, std::int32_t color) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank][0] == color) ranks.push_back(static_cast<Rank>(rank));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](Rank a, Rank b) { return wishes[a][1] < wishes[b][1]; });
  return ranks;
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  if (color < kNoColor) {
    return Status::error(StatusCode::kInvalidArgument,
                         "split: color %d is neither kNoColor nor at least 0", color);
  }
  const Wish wish = {color, key, static_cast<std::int32_t>(std::random_device{}())};
  std::vector<Wish> wishes(static_cast<std::size_t>(size()));
  collective::OperationSpec spec{.kind = collective::OperationKind::split};
  spec.input = {wish.data(), wish.size(), DataType::i32};
  spec.output = {wishes.data(), wishes.size() * wish.size(), DataType::i32};
  spec.options.delivery = exact(options_.join_timeout);
  const auto told = channels_->run(spec);
  if (!told.ok()) return told.status();
  if (color == kNoColor) return std::unique_ptr<Communicator>();
  const std::vector<Rank> ranks = ranks_of(wishes, color);
  const auto nonce = static_cast<std::uint32_t>(wishes[ranks.front()][2]);
  const Options options =
      options_of(options_, ranks, rank(), std::string("/").append(std::to_string(color)));
  auto channels = channels_->derive(options, ranks, never_zero(nonce));
  return std::unique_ptr<Communicator>(new Communicator(options, std::move(channels)));
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(std::span<const Rank> excluded) {
  std::vector<bool> stays(static_cast<std::size_t>(size()), true);
  for (const Rank rank : excluded) {
    if (rank >= size()) {
      return Status::error(StatusCode::kInvalidArgument,
                           "shrink: rank %u does not exist; the communicator has ranks 0 .. %d",
                           rank, size() - 1);
    }
    stays[rank] = false;
  }
  if (!stays[rank()]) {
    return Status::error(StatusCode::kInvalidArgument,
                         "shrink: rank %u is excluded and must not call", rank());
  }
  std::vector<Rank> ranks;
  // No message passes between the ranks: the same exclusion makes the same epoch.
  std::uint64_t epoch =
      keyed_hash(channels_->config().epoch, channels_->count_shrink(), kShrinkStream, 0, 0);
  for (Rank rank = 0; rank < size(); ++rank) {
    if (stays[rank]) ranks.push_back(rank);
    if (!stays[rank]) epoch = keyed_hash(epoch, rank, kShrinkStream, 1, 0);
  }
  const Options options = options_of(options_, ranks, rank(), "/shrunk");
  auto channels = channels_->derive(options, ranks, never_zero(epoch));
  if (Status status = channels->datagrams().prove_paths(options_.join_timeout); !status.ok())
    return status;
  return std::unique_ptr<Communicator>(new Communicator(options, std::move(channels)));
}

void Communicator::abort() {
  channels_->abort();
}
StatusCode Communicator::state() const {
  return channels_->state();
}
Status Communicator::status() const {
  return channels_->status();
}

}  // namespace leeway
