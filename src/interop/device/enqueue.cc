#include "device/enqueue.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/contracts.h"
#include "device/stream_work.h"

namespace leeway::device {
namespace {

using std::chrono::microseconds;

// Number of steps that a step with kernels counts for in kStepsInFlightMax. A step with kernels
// takes thirteen entries of the driver's queues; a step with copies takes six at most.
constexpr int kStepsForKernels = 3;

// A step and its transfer. A sequence has the steps of one lane, in the order of the transfers.
struct Part {
  const Transfer* transfer;
  const Step* step;
};
using Sequence = std::vector<Part>;

std::vector<Sequence> by_lane(std::span<const Transfer> transfers) {
  std::vector<Sequence> sequences;
  for (const Transfer& one : transfers) {
    auto found = std::find_if(sequences.begin(), sequences.end(), [&](const Sequence& sequence) {
      return sequence.front().transfer->lane == one.lane;
    });
    if (one.steps.empty()) continue;
    if (found == sequences.end()) found = sequences.emplace(found);
    for (const Step& step : one.steps) found->push_back({&one, &step});
  }
  return sequences;
}

}  // namespace

Device& Enqueue::enter(const Lane& lane) {
  Device& device = lane.device();
  if (current_ != &device) {
    scope_.reset();
    scope_.emplace(stager_.driver_, device.context());
    current_ = &device;
  }
  return device;
}

template <typename Condition>
void Enqueue::wait_here(const Condition& condition) {
  lock_.unlock();
  for (int looks = 0; !condition(); ++looks)
    std::this_thread::sleep_for(std::min(microseconds{200}, microseconds{5 + looks}));
  lock_.lock();
}

Status Enqueue::run(std::span<const Transfer> transfers) {
  // All events on user streams are recorded before any stream waits for the network. Transfers may
  // share a stream, and an event behind such a wait would make the next input wait, too.
  for (const Transfer& one : transfers) {
    if (Status status = wait_for_streams(one); !status.ok()) return status;
  }
  const std::vector<Sequence> sequences = by_lane(transfers);
  std::size_t rows = 0;
  for (const Sequence& one : sequences) rows = std::max(rows, one.size());
  for (std::size_t i = 0; i < rows; ++i) {
    Row row;
    for (const Sequence& one : sequences) {
      if (i < one.size()) row.push_back({one[i].transfer, one[i].step, {}});
    }
    if (Status status = begin(std::move(row)); !status.ok()) return status;
  }
  if (Status status = close_all(); !status.ok()) return status;
  for (const Transfer& one : transfers) {
    if (Status status = let_streams_wait(one); !status.ok()) return status;
  }
  return Status();
}

Status Enqueue::wait_for_streams(const Transfer& transfer) {
  const Device& device = enter(*transfer.lane);
  const cuda::Stream inputs = transfer.lane->inputs();
  Status status;
  for (std::size_t i = 0; status.ok() && i < transfer.streams.size(); ++i)
    status = let_wait(stager_.driver_, device.event(), transfer.streams[i], {&inputs, 1});
  return status;
}

Status Enqueue::let_streams_wait(const Transfer& transfer) {
  if (transfer.streams.size() < 2) return Status();
  const Device& device = enter(*transfer.lane);
  return let_wait(stager_.driver_, device.event(), transfer.streams.front(),
                  std::span(transfer.streams).subspan(1));
}

Status Enqueue::begin(Row row) {
  for (const Open& one : row) {
    if (Status status = wait_for_room(*one.transfer->lane); !status.ok()) return status;
  }
  for (Open& one : row) {
    auto block = place(*one.transfer->lane, one.step->staging_bytes);
    if (!block.ok()) return block.status();
    one.block = *block;
    if (Status status = input(one); !status.ok()) return status;
  }
  rows_.push_back(std::move(row));
  return Status();
}

Result<Device::Block> Enqueue::place(const Lane& lane, std::size_t bytes) {
  while (true) {
    Device& device = enter(lane);
    over_.clear();
    const auto block = device.place(bytes, over_);
    if (!block.ok()) return block.status();
    if (*block) return **block;
    // If this call has open rows, they may hold the memory, so the oldest is closed. Otherwise the
    // present row, or a call that waits without the mutex, holds the memory, and the ring grows.
    Status status = rows_.empty() ? device.grow(bytes) : close_oldest();
    if (!status.ok()) return status;
  }
}

Status Enqueue::wait_until_settled(Lane& lane, const Signal& earlier) {
  if (earlier.settled()) return Status();
  const Driver& driver = stager_.driver_;
  if (!lane.device().stream_waits()) {
    wait_here([&] { return earlier.settled(); });
    return Status();
  }
  if (Status status = wait_for_word(driver, lane.inputs(), earlier, &Words::released);
      !status.ok() || earlier.ready())
    return status;
  // After an abort, `released` may come before the copy into staging ends, so wait for `ready`,
  // too.
  return wait_for_word(driver, lane.inputs(), earlier, &Words::ready);
}

Status Enqueue::input(const Open& open) {
  const Driver& driver = stager_.driver_;
  const std::shared_ptr<Lane>& lane = open.transfer->lane;
  for (const Signal& earlier : over_) {
    if (Status status = wait_until_settled(*lane, earlier); !status.ok()) return status;
  }
  const bool encodes = open.step->kernels != nullptr;
  if (encodes) {
    LEEWAY_ASSERT(lane->device().stream_waits());
    if (Status status = encode_on(driver, lane->inputs(), open.site(), *open.step->kernels);
        !status.ok())
      return status;
  }
  for (const Copy& one : open.step->input) {
    if (Status status =
            copy_rows(driver, one, open.block.memory, Direction::to_staging, lane->inputs());
        !status.ok())
      return status;
  }
  const bool by_host = !lane->device().stream_waits();
  if (Status status = write_word(driver, lane->inputs(), open.block.signal, &Words::ready, by_host);
      !status.ok())
    return status;
  lane->in_flight_.insert(lane->in_flight_.end(), encodes ? kStepsForKernels : 1,
                          open.block.signal);
  stager_.progress_.add(lane, {open.site(), open.step->run, open.step->kernels});
  return Status();
}

Status Enqueue::reduce(const Open& open) {
  if (open.step->kernels == nullptr) return Status();
  const Lane& lane = *open.transfer->lane;
  (void)enter(lane);
  return reduce_on(stager_.driver_, lane.inputs(), open.site(), *open.step->kernels);
}

Status Enqueue::reduce_all() {
  for (; reduced_ < rows_.size(); ++reduced_) {
    for (const Open& one : rows_[reduced_]) {
      if (Status status = reduce(one); !status.ok()) return status;
    }
  }
  return Status();
}

Status Enqueue::output(const Open& open) {
  const Driver& driver = stager_.driver_;
  const Signal& signal = open.block.signal;
  const cuda::Stream stream = open.transfer->streams.front();
  Device& device = enter(*open.transfer->lane);
  StepKernels* const kernels = open.step->kernels.get();
  if (kernels != nullptr) {
    // The kernels write to the user's memory, so the user's stream waits for them, too.
    if (Status status = wait_for_word(driver, stream, signal, &Words::reduced); !status.ok())
      return status;
  }
  if (device.stream_waits()) {
    if (Status status = wait_for_word(driver, stream, signal, &Words::done); !status.ok())
      return status;
  } else {
    wait_here([&] { return signal.done(); });
  }
  if (kernels != nullptr) {
    if (Status status = kernels->decode(open.site(), stream); !status.ok()) return status;
  }
  for (const Copy& one : open.step->output) {
    if (Status status = copy_rows(driver, one, open.block.memory, Direction::from_staging, stream);
        !status.ok())
      return status;
  }
  if (Status status = write_word(driver, stream, signal, &Words::released, !device.stream_waits());
      !status.ok())
    return status;
  device.close(open.block);
  return Status();
}

Status Enqueue::close_oldest() {
  if (reduced_ == 0) {
    if (Status status = reduce_all(); !status.ok()) return status;
  }
  const Row row = std::move(rows_.front());
  rows_.pop_front();
  --reduced_;
  for (const Open& one : row) {
    if (Status status = output(one); !status.ok()) return status;
  }
  return Status();
}

Status Enqueue::close_all() {
  while (!rows_.empty()) {
    if (Status status = close_oldest(); !status.ok()) return status;
  }
  return Status();
}

Status Enqueue::wait_for_room(Lane& lane) {
  auto& steps = lane.in_flight_;
  while (!steps.empty() && steps.front().settled()) steps.pop_front();
  if (steps.size() < kStepsInFlightMax) return Status();
  // Enqueues all that this call still owes, because the oldest step may need it.
  if (Status status = close_all(); !status.ok()) return status;
  const Signal oldest = steps.front();
  wait_here([&] { return oldest.settled(); });
  return Status();
}

}  // namespace leeway::device
