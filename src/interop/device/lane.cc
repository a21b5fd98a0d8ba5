#include "device/lane.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "device/device.h"

namespace leeway::device {
namespace {

using std::chrono::microseconds;

// Number of looks at the words without result after which the thread sleeps between looks. 100
// looks take about 20 us, less than a small operation.
constexpr int kLooks = 100;
// Longest sleep between looks. A stream may be busy for milliseconds before it writes our word;
// with this sleep the thread takes only 2 % of a core meanwhile.
constexpr microseconds kPauseMax{50};

void pause_after(int looks) {
  if (looks < kLooks) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min(kPauseMax, microseconds{1 + (looks - kLooks) / 4}));
}

void begin(Pending& step) {
  if (step.kernels != nullptr) return step.kernels->run(step.site);
  step.run(step.site.staging, [signal = step.site.signal] { signal.finish(); });
}

bool may_begin(const Pending& step) {
  return step.site.signal.is(step.kernels != nullptr ? &Words::reached : &Words::ready);
}

void drop_all(std::deque<Pending>& steps) {
  for (const Pending& one : steps) one.site.signal.drop();
  steps.clear();
}

bool take_front(std::deque<Pending>& from, std::vector<Pending>& out) {
  if (from.empty() || !may_begin(from.front())) return false;
  out.push_back(std::move(from.front()));
  from.pop_front();
  return true;
}

}  // namespace

Lane::~Lane() {
  device_.give_back({inputs_, captured_});
}

void Progress::list(const std::shared_ptr<Lane>& lane) {
  if (!lane->listed_) lanes_.push_back(lane);
  lane->listed_ = true;
  wake_.notify_one();
}

Status Progress::start() {
  const std::lock_guard lock(mutex_);
  if (thread_.joinable()) return Status();
  auto thread = Thread::start("begin operations of streams",
                              [this](const std::stop_token& stop) { loop(stop); });
  if (!thread.ok()) return thread.status();
  thread_ = std::move(*thread);
  return Status();
}

void Progress::add(const std::shared_ptr<Lane>& lane, Pending step) {
  const std::lock_guard lock(mutex_);
  if (lane->ended_ || over_) return step.site.signal.drop();
  lane->called_.push_back(std::move(step));
  list(lane);
}

void Progress::add_replay(const std::shared_ptr<Lane>& lane, const std::vector<Pending>& steps) {
  const std::lock_guard lock(mutex_);
  if (lane->ended_ || over_) {
    for (const Pending& one : steps) one.site.signal.drop();
    return;
  }
  lane->replayed_.insert(lane->replayed_.end(), steps.begin(), steps.end());
  list(lane);
}

void Progress::end(Lane& lane) {
  const std::lock_guard lock(mutex_);
  lane.ended_ = true;
  drop_all(lane.called_);
  drop_all(lane.replayed_);
  begun_.notify_all();
}

void Progress::wait_begun(const Lane& lane) {
  std::unique_lock lock(mutex_);
  begun_.wait(lock, [&] { return lane.called_.empty() && !beginning_; });
}

bool Progress::take_ready(std::vector<Pending>& out) {
  const std::size_t before = out.size();
  for (auto& lane : lanes_) {
    while (take_front(lane->called_, out) || take_front(lane->replayed_, out)) {
    }
    lane->listed_ = !lane->called_.empty() || !lane->replayed_.empty();
  }
  std::erase_if(lanes_, [](const auto& lane) { return !lane->listed_; });
  return out.size() > before;
}

void Progress::loop(const std::stop_token& stop) {
  std::vector<Pending> ready;
  int looks = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, stop, [this] { return !lanes_.empty(); });
      if (stop.stop_requested()) {
        over_ = true;
        for (const auto& lane : lanes_) {
          drop_all(lane->called_);
          drop_all(lane->replayed_);
        }
        begun_.notify_all();
        return;
      }
      beginning_ = take_ready(ready);
      looks = beginning_ ? 0 : looks + 1;
    }
    if (looks > 0) {
      pause_after(looks);
      continue;
    }
    for (Pending& one : ready) begin(one);
    ready.clear();
    {
      const std::lock_guard lock(mutex_);
      beginning_ = false;
    }
    begun_.notify_all();
  }
}

}  // namespace leeway::device
