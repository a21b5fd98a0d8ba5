#include "communicator/lanes.h"

#include <mutex>

#include "base/philox.h"
#include "collective/sliced_call.h"

namespace leeway::internal {
namespace {

using collective::OperationSpec;

// Stream tag of the keyed hash (base/philox.h): injected faults.
constexpr std::uint32_t kLaneFaultStream = 0x4C000000;

// Least bytes of a slice. 1 MiB takes a third of a millisecond at 25 Gb/s. That is ten times the
// cost of beginning it on another thread and hearing that it is done.
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;

// A call in progress. If a slice fails, so does the call, and the other slices end.
struct Call {
  Call(const OperationSpec& spec, int size, std::size_t slices)
      : work(std::make_shared<WorkState>(spec)),
        sliced(spec, size, slices),
        parts(slices),
        left(slices) {}

  void on_begun(std::size_t slice, const std::shared_ptr<WorkState>& part) {
    {
      const std::lock_guard lock(mutex);
      parts[slice] = part;
      if (failure.ok()) return;
    }
    driving::Driver::end(part, failure, blame);
  }

  // Called by the lane's thread that finds a slice done.
  void on_done(const WorkState& part) {
    std::vector<std::shared_ptr<WorkState>> others;
    bool last = false;
    {
      const std::lock_guard lock(mutex);
      if (!part.request.status.ok() && failure.ok()) {
        failure = part.request.status;
        if (failure.code() != StatusCode::kMismatch) blame = part.request.blame;
        others = parts;
      }
      last = --left == 0;
    }
    if (last) return finish();
    for (const auto& other : others) {
      if (other != nullptr && other.get() != &part) driving::Driver::end(other, failure, blame);
    }
  }

  void finish() {
    const Instant now = driving::steady_now();
    if (failure.ok()) {
      std::vector<const collective::Request*> requests;
      for (const auto& one : parts) requests.push_back(&one->request);
      sliced.finish(requests, work->request, now);
    } else {
      work->request.finish(failure, now);
    }
    driving::Driver::finish(*work);
  }

  std::shared_ptr<WorkState> work;
  collective::SlicedCall sliced;
  std::mutex mutex;
  std::vector<std::shared_ptr<WorkState>> parts;  // null until the slice has begun
  std::size_t left;
  Status failure;  // the first failure; it is never replaced
  protocol::Blame blame;
};

}  // namespace

Options options_of_lane(const Options& options, int lane) {
  Options own = options;
  own.communicator_name += "/lane" + std::to_string(lane);
  if (own.port != 0) own.port = static_cast<std::uint16_t>(own.port + lane);
  own.faults.seed =
      keyed_hash(own.faults.seed, static_cast<std::uint32_t>(lane), kLaneFaultStream, 0, 0);
  return own;
}

Lanes::Lanes(Channel& first, std::vector<std::unique_ptr<Channel>> further)
    : first_(first), further_(std::move(further)) {}

bool Lanes::takes(const OperationSpec& spec) const {
  return collective::SlicedCall::slices(spec, first_.config().size, further_.size() + 1,
                                        kSliceBytes) > 1;
}

std::shared_ptr<WorkState> Lanes::start(const OperationSpec& spec, std::uint64_t place) {
  const int size = first_.config().size;
  const std::size_t slices =
      collective::SlicedCall::slices(spec, size, further_.size() + 1, kSliceBytes);
  const auto call = std::make_shared<Call>(spec, size, slices);
  std::shared_ptr<WorkState> work = call->work;
  work->driver = first_.driver();
  work->request.submitted = driving::steady_now();
  // The caller may drive lane 0 next, so the others begin first.
  for (std::size_t i = slices; i-- > 0;) {
    const auto part = lane(i).start(call->sliced.slice(i), place);
    call->on_begun(i, part);
    part->call_when_done([call, part] { call->on_done(*part); });
  }
  return work;
}

void Lanes::abort(const char* how) {
  for (const auto& lane : further_) lane->abort(how);
}

void Lanes::close(std::vector<std::function<void()>>& closing) {
  for (auto& lane : further_) closing.emplace_back([&lane] { lane.reset(); });
}

}  // namespace leeway::internal
