// New communicators made from the ranks of an existing one.
#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "base/philox.h"
#include "communicator/channels.h"
#include "communicator/pending.h"
#include "driving/work_state.h"
#include "leeway/communicator.h"

namespace leeway {
namespace {

// Stream tag of the keyed hash (base/philox.h), for epochs.
constexpr std::uint32_t kShrinkStream = 0x46000000;

// A rank's message to the others in a split: color, key, and a number that may become the epoch.
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

// Returns the ranks of a color, in the order of the new communicator.
std::vector<Rank> ranks_of(std::span<const Wish> wishes, std::int32_t color) {
  std::vector<Rank> ranks;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    if (wishes[rank][0] == color) ranks.push_back(static_cast<Rank>(rank));
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [&](Rank a, Rank b) { return wishes[a][1] < wishes[b][1]; });
  return ranks;
}

// A split in progress. The operation and its callback keep it alive.
struct Splitting {
  Wish wish;
  std::vector<Wish> wishes;
  Options options;  // the parent's
  internal::Lineage lineage;

  // Makes the new communicator, once the wishes are known. Returns null if this rank takes no part.
  std::unique_ptr<internal::Channels> channels() {
    if (wish[0] == Communicator::kNoColor) return nullptr;
    const std::vector<Rank> ranks = ranks_of(wishes, wish[0]);
    const auto nonce = static_cast<std::uint32_t>(wishes[ranks.front()][2]);
    options = options_of(options, ranks, lineage.rank(),
                         std::string("/").append(std::to_string(wish[0])));
    return lineage.derive(options, ranks, never_zero(nonce));
  }
};

}  // namespace

PendingCommunicator Communicator::split_async(int color, int key) {
  auto pending = std::make_shared<internal::PendingState>();
  const auto splitting = std::make_shared<Splitting>(
      Splitting{.wish = {color, key, static_cast<std::int32_t>(std::random_device{}())},
                .wishes = std::vector<Wish>(static_cast<std::size_t>(size())),
                .options = options_,
                .lineage = internal::Lineage(*channels_)});
  collective::OperationSpec spec{.kind = collective::OperationKind::split};
  spec.input = {splitting->wish.data(), splitting->wish.size(), DataType::i32};
  spec.output = {splitting->wishes.data(), splitting->wishes.size() * splitting->wish.size(),
                 DataType::i32};
  spec.options.delivery = exact(options_.join_timeout);
  if (color < kNoColor) {  // it still takes its place, and peers hear of it
    spec.forfeit = std::make_shared<const Status>(Status::error(
        StatusCode::kInvalidArgument, "split: color %d is neither kNoColor nor at least 0", color));
  }
  pending->work = channels_->start(spec);
  const auto conclude = [pending, splitting] {
    const auto told = pending->work->outcome();
    if (!told.ok()) return pending->finish(told.status());
    auto channels = splitting->channels();
    if (channels == nullptr) return pending->finish(std::unique_ptr<Communicator>());
    pending->finish(
        std::unique_ptr<Communicator>(new Communicator(splitting->options, std::move(channels))));
  };
  pending->work->call_when_done(conclude);
  return PendingCommunicator(std::move(pending));
}

Result<std::unique_ptr<Communicator>> Communicator::split(int color, int key) {
  if (driving::in_callback()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "split: a callback must not wait; use split_async()");
  }
  return split_async(color, key).wait();
}

// The remaining ranks, and everything needed to make their communicator.
struct Communicator::Shrinking {
  std::vector<Rank> ranks;
  std::uint32_t epoch = 0;
  Options options;
  internal::Lineage lineage;
};

Result<Communicator::Shrinking> Communicator::plan_shrink(std::span<const Rank> excluded) const {
  if (channels_->forked()) return driving::forked();
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
  // Ranks exchange no messages, so the same exclusions must make the same epoch.
  std::uint64_t epoch = channels_->config().epoch;
  for (Rank rank = 0; rank < size(); ++rank) {
    if (stays[rank]) ranks.push_back(rank);
    if (!stays[rank]) epoch = keyed_hash(epoch, rank, kShrinkStream, 1, 0);
  }
  epoch = keyed_hash(epoch, channels_->count_shrink(epoch), kShrinkStream, 0, 0);
  const Options options = options_of(options_, ranks, rank(), "/shrunk");
  return Shrinking{std::move(ranks), never_zero(epoch), options, internal::Lineage(*channels_)};
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(const Shrinking& plan,
                                                           std::stop_token stop) {
  auto channels = plan.lineage.derive(plan.options, plan.ranks, plan.epoch);
  const std::stop_callback on_stop(std::move(stop), [&] { channels->abort(); });
  if (Status status = channels->datagrams().prove_paths(plan.options.join_timeout); !status.ok())
    return status;
  return std::unique_ptr<Communicator>(new Communicator(plan.options, std::move(channels)));
}

Result<std::unique_ptr<Communicator>> Communicator::shrink(std::span<const Rank> excluded) {
  const auto plan = plan_shrink(excluded);
  if (!plan.ok()) return plan.status();
  return shrink(*plan, {});
}

PendingCommunicator Communicator::shrink_async(std::span<const Rank> excluded) {
  auto pending = std::make_shared<internal::PendingState>();
  auto plan = plan_shrink(excluded);
  if (!plan.ok()) {
    pending->finish(plan.status());
  } else {
    pending->run([plan = std::make_shared<Shrinking>(std::move(*plan))](std::stop_token stop) {
      return shrink(*plan, std::move(stop));
    });
  }
  return PendingCommunicator(std::move(pending));
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
bool Communicator::peer_left() const {
  return channels_->peer_left();
}

}  // namespace leeway
