#include "interop/nccl/hierarchy/watch.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

namespace leeway::nccl {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(200);

}  // namespace

// Every rank has a receive open from every other one. A rank that leaves in good order sends the
// byte. A receive that ends without it is an alarm.
struct Watch::State {
  explicit State(int size) : bytes(static_cast<std::size_t>(size)) {}

  void on_end(const Result<CollectiveReport>& outcome) {
    if (outcome.ok() || over.exchange(true)) return;
    std::function<void(const Status&)> call;
    {
      const std::lock_guard lock(mutex);
      why = outcome.status();
      call = alarm;
    }
    if (call) call(outcome.status());
  }

  std::vector<std::byte> bytes;   // received, of each rank
  std::atomic<bool> over{false};  // nothing that ends now is an alarm
  std::mutex mutex;
  Status why;  // of the alarm
  std::function<void(const Status&)> alarm;
};

Watch::Watch(std::unique_ptr<Communicator> team)
    : team_(std::move(team)), state_(std::make_shared<State>(team_->size())) {
  CollectiveOptions options;
  options.delivery = exact(no_deadline);
  for (int rank = 0; rank < team_->size(); ++rank) {
    if (rank == team_->rank()) continue;
    std::byte* const byte = &state_->bytes[static_cast<std::size_t>(rank)];
    const auto work = std::make_shared<Work>(
        team_->recv_async(TensorView(byte, 1, DataType::u8), static_cast<Rank>(rank), options));
    work->on_done([state = state_, work] { state->on_end(work->wait()); });
  }
}

bool Watch::alarmed() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->why.ok();
}

void Watch::arm(const std::function<void(const Status& why)>& alarm) {
  Status why;
  {
    const std::lock_guard lock(state_->mutex);
    state_->alarm = alarm;
    why = state_->why;
  }
  if (!why.ok()) alarm(why);
}

void Watch::raise() {
  state_->over = true;
  team_->abort();
}

void Watch::leave() {
  if (state_->over.exchange(true)) return team_->abort();
  static const std::byte word{1};
  CollectiveOptions options;
  options.delivery = exact(kPatience);
  std::vector<Work> words;
  for (int rank = 0; rank < team_->size(); ++rank) {
    if (rank != team_->rank())
      words.push_back(team_->send_async(ConstTensorView(&word, 1, DataType::u8),
                                        static_cast<Rank>(rank), options));
  }
  (void)Work::wait_all(words);
  team_->abort();
}

}  // namespace leeway::nccl
