#include "support/cuda_double/machine.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/cuda_double/memory.h"

namespace cuda_double {
namespace {

using std::chrono::microseconds;

constexpr int kSuccess = 0;
constexpr int kCaptureMerge = 902;
constexpr int kCaptureUnmatched = 903;
constexpr int kCaptureUnjoined = 904;
constexpr int kCaptureIsolation = 905;
constexpr int kIllegalState = 401;
constexpr int kModeRelaxed = 2;

// Time between two looks at the words in host memory that streams wait for. The host writes such a
// word without calling CUDA, so the double must poll.
constexpr microseconds kLookEvery{30};
// When a device picks work, one time in kLiesOneIn it passes the picked stream over for fewer than
// kLiesMax further picks. One time in kPausesOneIn it pauses itself for less than kPauseMax.
constexpr std::uint64_t kLiesOneIn = 8;
constexpr std::uint64_t kPausesOneIn = 64;
constexpr std::uint64_t kLiesMax = 40;
constexpr std::uint64_t kPauseMax = 200;  // us

}  // namespace

Machine::Machine(CudaDoubleSettings settings) : settings_(settings), random_(settings.seed) {}

void Machine::configure(const CudaDoubleSettings& settings) {
  const std::lock_guard lock(mutex_);
  settings_ = settings;
  random_.seed(settings.seed);
}

bool Machine::stream_waits() {
  const std::lock_guard lock(mutex_);
  return settings_.stream_waits != 0;
}

std::shared_ptr<Stream> Machine::make_stream(int device) {
  const std::lock_guard lock(mutex_);
  start(device);
  std::erase_if(streams_,
                [](const auto& one) { return one.use_count() == 1 && one->queue.empty(); });
  auto stream = std::make_shared<Stream>();
  stream->device = device;
  streams_.push_back(stream);
  return stream;
}

void Machine::start(int device) {
  const auto index = static_cast<std::size_t>(device);
  if (started_.size() <= index) started_.resize(index + 1);
  if (!started_[index]) std::thread([this, device] { device_loop(device); }).detach();
  started_[index] = true;
  if (!host_started_) std::thread([this] { host_loop(); }).detach();
  host_started_ = true;
}

std::size_t Machine::queued(const Stream& stream) const {
  if (settings_.connections != 1) return stream.queue.size();
  std::size_t all = 0;
  for (const auto& one : streams_) all += one->device == stream.device ? one->queue.size() : 0;
  return all;
}

void Machine::enqueue(const std::shared_ptr<Stream>& stream, Work work) {
  std::unique_lock lock(mutex_);
  if (stream->capture != nullptr) {
    auto& nodes = stream->capture->body->nodes;
    nodes.push_back({std::move(work), stream->tips});
    stream->tips = {nodes.size() - 1};
    return;
  }
  changed_.wait(lock, [&] { return queued(*stream) < kQueueMax; });
  stream->queue.push_back({std::move(work), ++sequence_});
  ++stream->enqueued;
  changed_.notify_all();
}

void Machine::record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream) {
  const auto reached = std::make_shared<bool>(false);
  {
    const std::lock_guard lock(mutex_);
    event->capture = stream->capture;
    event->tips = stream->tips;
    if (stream->capture != nullptr) return;
    event->reached = reached;
  }
  Work work;
  work.run = [this, reached] {
    const std::lock_guard lock(mutex_);
    *reached = true;
  };
  enqueue(stream, std::move(work));
}

int Machine::wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event) {
  std::shared_ptr<bool> reached;
  {
    const std::lock_guard lock(mutex_);
    if (event->capture != nullptr) {
      // The event was recorded in a capture that has ended.
      if (event->capture->body == nullptr) return kCaptureIsolation;
      if (stream->capture != nullptr && stream->capture != event->capture) return kCaptureMerge;
      stream->capture = event->capture;
      for (const std::size_t tip : event->tips) {
        if (std::find(stream->tips.begin(), stream->tips.end(), tip) == stream->tips.end())
          stream->tips.push_back(tip);
      }
      return kSuccess;
    }
    if (stream->capture != nullptr) return kCaptureIsolation;
    reached = event->reached;
  }
  Work work;
  work.can_begin = [reached] { return *reached; };  // called under the mutex
  enqueue(stream, std::move(work));
  return kSuccess;
}

void Machine::synchronize(const Stream& stream) {
  std::unique_lock lock(mutex_);
  const std::uint64_t until = stream.enqueued;
  changed_.wait(lock, [&] { return stream.completed >= until; });
}

void Machine::synchronize(int device) {
  std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const std::shared_ptr<Stream> stream = streams_[i];
    if (stream->device != device) continue;
    const std::uint64_t until = stream->enqueued;
    changed_.wait(lock, [&] { return stream->completed >= until; });
  }
}

int Machine::begin_capture(const std::shared_ptr<Stream>& stream, int mode) {
  const std::lock_guard lock(mutex_);
  if (stream->capture != nullptr) return kIllegalState;
  stream->capture = std::make_shared<Capture>();
  stream->capture->id = ++captures_;
  stream->capture->origin = stream.get();
  stream->capture->guards = mode != kModeRelaxed;
  guarded_ += stream->capture->guards ? 1 : 0;
  stream->tips.clear();
  return kSuccess;
}

int Machine::end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<GraphBody>& out) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->origin != stream.get()) return kCaptureUnmatched;
  int code = kSuccess;
  for (const auto& other : streams_) {
    if (other->capture != capture) continue;
    for (const std::size_t tip : other->tips) {
      if (!capture->reaches(stream->tips, tip)) code = kCaptureUnjoined;
    }
  }
  for (const auto& other : streams_) {
    if (other->capture != capture) continue;
    other->capture = nullptr;
    other->tips.clear();
  }
  guarded_ -= capture->guards ? 1 : 0;
  if (code == kSuccess) out = capture->body;
  capture->body = nullptr;  // events may hold the capture for long
  capture->handle = nullptr;
  return code;
}

std::shared_ptr<Capture> Machine::capture_of(const Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.capture;
}

bool Machine::guarded() {
  const std::lock_guard lock(mutex_);
  return guarded_ > 0;
}

// Looks at the first work in the stream's queue, and adds to `out` those of its parts that can
// begin now. A graph's parts are its nodes; other work has one part.
void Machine::add_picks(const std::shared_ptr<Stream>& stream, std::vector<Pick>& out) {
  Work& next = stream->queue.front().work;
  if (next.graph == nullptr) {
    if (!stream->busy && next.can_begin()) out.push_back({stream, 0});
    return;
  }
  GraphRun& run = *next.graph;
  if (run.states.empty() && run.left == 0) {  // not begun
    if (run.body->running) return;
    run.states.assign(run.body->nodes.size(), GraphRun::State::waits);
    run.left = run.states.size() + 1;
    run.body->running = true;
  }
  if (run.left == 1) return out.push_back({stream, run.states.size()});  // its end
  for (std::size_t node = 0; node < run.states.size(); ++node) {
    if (run.ready(node)) out.push_back({stream, node});
  }
}

std::vector<Machine::Pick> Machine::picks(int device) {
  std::vector<Pick> out;
  std::shared_ptr<Stream> oldest;
  for (const auto& stream : streams_) {
    if (stream->device != device || stream->queue.empty()) continue;
    if (oldest == nullptr || stream->queue.front().sequence < oldest->queue.front().sequence)
      oldest = stream;
    if (settings_.connections != 1 && stream->lies_for > 0) {
      --stream->lies_for;
    } else if (settings_.connections != 1) {
      add_picks(stream, out);
    }
  }
  if (settings_.connections == 1 && oldest != nullptr) add_picks(oldest, out);
  return out;
}

void Machine::device_loop(int device) {
  std::unique_lock lock(mutex_);
  while (true) {
    const std::vector<Pick> all = picks(device);
    if (all.empty()) {
      const bool idle = std::all_of(streams_.begin(), streams_.end(), [&](const auto& one) {
        return one->device != device || one->queue.empty();
      });
      if (idle) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, kLookEvery);
      }
      continue;
    }
    const Pick& pick = all[random_() % all.size()];
    if (random_() % kLiesOneIn == 0) pick.stream->lies_for = static_cast<int>(random_() % kLiesMax);
    const bool pauses = random_() % kPausesOneIn == 0;
    const microseconds pause{pauses ? random_() % kPauseMax : 0};
    if (pauses) {
      lock.unlock();
      std::this_thread::sleep_for(pause);
      lock.lock();
    }
    perform(pick, lock);
  }
}

void Machine::perform(const Pick& pick, std::unique_lock<std::mutex>& lock) {
  Stream& stream = *pick.stream;
  Work* work = &stream.queue.front().work;
  if (work->graph != nullptr) {
    GraphRun& run = *work->graph;
    if (pick.node == run.states.size()) return finish(pick, lock);
    run.states[pick.node] = GraphRun::State::begun;
    work = &run.body->nodes[pick.node].work;
  } else {
    stream.busy = true;
  }
  if (work->by_host) {
    host_calls_.push_back({pick, work->run});
    changed_.notify_all();
    return;
  }
  const auto run = work->run;
  lock.unlock();
  run();
  lock.lock();
  finish(pick, lock);
}

void Machine::finish(const Pick& pick, std::unique_lock<std::mutex>& lock) {
  Stream& stream = *pick.stream;
  GraphRun* const run = stream.queue.front().work.graph.get();
  if (run != nullptr) {
    --run->left;
    if (pick.node < run->states.size()) {
      run->states[pick.node] = GraphRun::State::done;
      return changed_.notify_all();
    }
    run->body->running = false;
  }
  stream.busy = false;
  Entry ended = std::move(stream.queue.front());
  stream.queue.pop_front();
  ++stream.completed;
  changed_.notify_all();
  // Destroys the graph without holding the lock. This calls the destructors of its user objects,
  // which may take locks of their own.
  lock.unlock();
  ended = {};
  lock.lock();
}

void Machine::host_loop() {
  cuda_double_forbid_calls();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return !host_calls_.empty(); });
    const HostCall next = std::move(host_calls_.front());
    host_calls_.pop_front();
    lock.unlock();
    next.run();
    lock.lock();
    finish(next.pick, lock);
  }
}

}  // namespace cuda_double
