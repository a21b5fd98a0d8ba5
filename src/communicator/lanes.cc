#include "communicator/lanes.h"

#include <atomic>

#include "base/philox.h"
#include "collective/sliced_call.h"
#include "driving/fork.h"

namespace leeway::internal {
namespace {

using collective::OperationSpec;

// Stream tag of the keyed hash (base/philox.h): injected faults.
constexpr std::uint32_t kLaneFaultStream = 0x4C000000;

// A slice of 1 MiB takes a third of a millisecond at 25 Gb/s: ten times of what it costs to begin
// it on another thread and to hear that it is done.
constexpr std::size_t kSliceBytes = std::size_t{1} << 20;

struct Call {
  Call(const OperationSpec& spec, int size, std::size_t slices)
      : work(std::make_shared<WorkState>(spec)),
        sliced(spec, size, slices),
        parts(slices),
        left(slices) {}

  // By whichever lane's thread finds a slice done.
  void on_done(std::size_t slice, std::shared_ptr<WorkState> part) {
    parts[slice] = std::move(part);
    if (--left > 0) return;
    std::vector<const collective::Request*> requests;
    for (const auto& one : parts) requests.push_back(&one->request);
    sliced.finish(requests, work->request, driving::steady_now());
    driving::Driver::finish(*work);
  }

  std::shared_ptr<WorkState> work;
  collective::SlicedCall sliced;
  std::vector<std::shared_ptr<WorkState>> parts;
  std::atomic<std::size_t> left;
};

std::shared_ptr<WorkState> refused(const OperationSpec& spec, const Status& status) {
  auto work = std::make_shared<WorkState>(spec);
  work->request.status = status;
  work->request.done = work->done = true;
  return work;
}

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
    : first_(first), further_(std::move(further)), generation_(driving::fork_generation()) {}

bool Lanes::takes(const OperationSpec& spec) const {
  return collective::SlicedCall::slices(spec, first_.config().size, further_.size() + 1,
                                        kSliceBytes) > 1;
}

std::shared_ptr<WorkState> Lanes::start(const OperationSpec& spec) {
  const int size = first_.config().size;
  Status status = generation_ == driving::fork_generation()
                      ? collective::validate(spec, first_.config().self, size)
                      : driving::forked();
  if (status.ok()) status = collective::SlicedCall::check(spec);
  if (!status.ok()) return refused(spec, status);
  const std::size_t slices =
      collective::SlicedCall::slices(spec, size, further_.size() + 1, kSliceBytes);
  const auto call = std::make_shared<Call>(spec, size, slices);
  std::shared_ptr<WorkState> work = call->work;
  work->driver = first_.driver();
  work->request.submitted = driving::steady_now();
  // The caller may drive lane 0 next, so the others begin first.
  for (std::size_t i = slices; i-- > 0;) {
    auto part = lane(i).start(call->sliced.slice(i));
    WorkState& state = *part;
    state.call_when_done(
        [call, i, part = std::move(part)]() mutable { call->on_done(i, std::move(part)); });
  }
  return work;
}

void Lanes::abort() {
  for (const auto& lane : further_) lane->abort();
}

void Lanes::close(std::vector<std::function<void()>>& closing) {
  for (auto& lane : further_) closing.emplace_back([&lane] { lane.reset(); });
}

}  // namespace leeway::internal
