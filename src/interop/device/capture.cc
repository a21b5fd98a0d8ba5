#include "device/capture.h"

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "device/stream_work.h"

namespace leeway::device {

// An operation that a graph keeps. Each replay begins by setting the operation's progress words to
// 0. The value 1 in a word then means that the replay has come to the word's moment.
struct Capture::Operation {
  static constexpr std::uint32_t kReached = 1;

  Operation(Progress& owner, std::shared_ptr<Lane> of, Pinned kept)
      : progress(owner), lane(std::move(of)), memory(kept) {}
  ~Operation() { lane->device().unkeep(memory); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // A host function of the graph, which runs before any other node of the operation.
  static void begin(void* argument) {
    auto& self = *static_cast<Operation*>(argument);
    for (const Pending& one : self.steps) {
      for (const Word word : {&Words::ready, &Words::done, &Words::reached, &Words::begun,
                              &Words::landed, &Words::reduced})
        std::atomic_ref(one.site.signal.words()->*word).store(0, std::memory_order_relaxed);
    }
    self.progress.add_replay(self.lane, self.steps);
  }
  // Called when the graph and all of its copies are gone. It must make no call of CUDA.
  static void destroy(void* argument) { delete static_cast<Operation*>(argument); }

  Progress& progress;
  const std::shared_ptr<Lane> lane;
  const Pinned memory;
  std::vector<Pending> steps;
};

namespace {

std::size_t rounded(std::size_t bytes) {
  return (bytes + sizeof(Words) - 1) / sizeof(Words) * sizeof(Words);
}

Status cannot(const char* why) {
  return Status::error(StatusCode::kUnsupported,
                       "%s; issue the operation outside of the graph, or all of a group on streams "
                       "of one capture",
                       why);
}

}  // namespace

Result<bool> Capture::of(const Driver& driver, std::span<const Transfer> transfers) {
  std::size_t captured = 0;
  std::size_t streams = 0;
  for (const Transfer& one : transfers) {
    const ContextScope scope(driver, one.lane->device().context());
    for (const cuda::Stream stream : one.streams) {
      int status = cuda::kCaptureNone;
      if (const auto code = driver.call.cuStreamGetCaptureInfo(stream, &status, nullptr, nullptr,
                                                               nullptr, nullptr);
          code != cuda::kSuccess) {
        return cannot(driver.error("the stream's state of capture", code).c_str());
      }
      if (status != cuda::kCaptureNone && status != cuda::kCaptureActive)
        return cannot("the stream's capture has failed");
      ++streams;
      if (status == cuda::kCaptureActive) ++captured;
    }
  }
  if (captured != 0 && captured != streams)
    return cannot("some streams of the call are being captured into a graph, and some are not");
  for (const Transfer& one : transfers) {
    if (captured != 0 && !one.lane->device().stream_waits())
      return cannot("streams of this device cannot wait for values, which graphs need");
  }
  return captured != 0;
}

Result<Capture::Where> Capture::where(cuda::Stream stream) const {
  int status = cuda::kCaptureNone;
  Where out;
  const auto code = stager_.driver_.call.cuStreamGetCaptureInfo(stream, &status, &out.id,
                                                                &out.graph, nullptr, nullptr);
  if (code != cuda::kSuccess) return stager_.driver_.error("cuStreamGetCaptureInfo", code);
  if (status != cuda::kCaptureActive) return cannot("the stream's capture has failed");
  return out;
}

// Makes the transfer's first stream wait for its other streams, and for the inputs of the lane's
// last operation in this graph. So all ranks begin the graph's operations in one order.
Status Capture::join_streams(const Transfer& transfer, const Where& where) {
  const Driver& driver = stager_.driver_;
  Lane& lane = *transfer.lane;
  const cuda::Stream first = transfer.streams.front();
  Status status;
  if (lane.captured_in_ == where.id)
    status = checked(driver, "cuStreamWaitEvent",
                     driver.call.cuStreamWaitEvent(first, lane.captured_, 0));
  for (std::size_t i = 1; status.ok() && i < transfer.streams.size(); ++i)
    status = let_wait(driver, lane.device().event(), transfer.streams[i], {&first, 1});
  return status;
}

Result<Capture::Operation*> Capture::keep(const Transfer& transfer, const Where& where) {
  const Driver& driver = stager_.driver_;
  std::size_t bytes = transfer.steps.size() * sizeof(Words);
  for (const Step& one : transfer.steps) bytes += rounded(one.staging_bytes);
  auto memory = transfer.lane->device().keep(bytes);
  if (!memory.ok()) return memory.status();
  auto operation = std::make_unique<Operation>(stager_.progress_, transfer.lane, *memory);
  std::size_t at = transfer.steps.size() * sizeof(Words);
  for (std::size_t i = 0; i < transfer.steps.size(); ++i) {
    const std::size_t line = i * sizeof(Words);
    const Signal signal(new (memory->memory + line) Words, memory->mapped + line,
                        Operation::kReached);
    const Step& step = transfer.steps[i];
    operation->steps.push_back(
        {{memory->memory + at, memory->mapped + at, signal}, step.run, step.kernels});
    at += rounded(step.staging_bytes);
  }
  cuda::UserObject object = nullptr;
  if (const auto code = driver.call.cuUserObjectCreate(
          &object, operation.get(), &Operation::destroy, 1, cuda::kUserObjectNoSync);
      code != cuda::kSuccess)
    return driver.error("cuUserObjectCreate", code);
  Operation* const kept = operation.release();
  if (const auto code =
          driver.call.cuGraphRetainUserObject(where.graph, object, 1, cuda::kGraphTakesReference);
      code != cuda::kSuccess) {
    (void)driver.call.cuUserObjectRelease(object, 1);
    return driver.error("cuGraphRetainUserObject", code);
  }
  return kept;
}

Status Capture::inputs(const Transfer& transfer, const Where& where, Operation& operation) {
  const Driver& driver = stager_.driver_;
  const cuda::Stream stream = transfer.streams.front();
  if (Status status = join_streams(transfer, where); !status.ok()) return status;
  Status status = checked(driver, "cuLaunchHostFunc",
                          driver.call.cuLaunchHostFunc(stream, &Operation::begin, &operation));
  for (std::size_t i = 0; status.ok() && i < transfer.steps.size(); ++i)
    status = input(transfer.steps[i], operation.steps[i], stream);
  if (status.ok())
    status = checked(driver, "cuEventRecord",
                     driver.call.cuEventRecord(transfer.lane->captured_, stream));
  transfer.lane->captured_in_ = where.id;
  return status;
}

Status Capture::input(const Step& step, const Pending& kept, cuda::Stream stream) {
  const Driver& driver = stager_.driver_;
  const Site& site = kept.site;
  Status status;
  if (step.kernels != nullptr) status = encode_on(driver, stream, site, *step.kernels);
  for (const Copy& one : step.input) {
    if (!status.ok()) return status;
    status = copy_rows(driver, one, site.staging, Direction::to_staging, stream);
  }
  return status.ok() ? write_word(driver, stream, site.signal, &Words::ready, false) : status;
}

Status Capture::sums(const Transfer& transfer, const Operation& operation) {
  const Driver& driver = stager_.driver_;
  const cuda::Stream stream = transfer.streams.front();
  Status status;
  for (std::size_t i = 0; status.ok() && i < transfer.steps.size(); ++i) {
    StepKernels* const kernels = transfer.steps[i].kernels.get();
    if (kernels != nullptr) status = reduce_on(driver, stream, operation.steps[i].site, *kernels);
  }
  return status;
}

Status Capture::outputs(const Transfer& transfer, const Operation& operation) {
  const Driver& driver = stager_.driver_;
  const cuda::Stream stream = transfer.streams.front();
  Status status;
  for (std::size_t i = 0; status.ok() && i < transfer.steps.size(); ++i) {
    const Site& site = operation.steps[i].site;
    const Step& step = transfer.steps[i];
    status = wait_for_word(driver, stream, site.signal, &Words::done);
    if (status.ok() && step.kernels != nullptr) status = step.kernels->decode(site, stream);
    for (const Copy& one : step.output) {
      if (!status.ok()) return status;
      status = copy_rows(driver, one, site.staging, Direction::from_staging, stream);
    }
  }
  if (!status.ok() || transfer.streams.size() < 2) return status;
  return let_wait(driver, transfer.lane->device().event(), stream,
                  std::span(transfer.streams).subspan(1));
}

Status Capture::run(std::span<const Transfer> transfers) {
  std::vector<const Operation*> operations;
  // Enqueues the inputs of all transfers before any sum, because a sum may wait for another lane's
  // input.
  for (const Transfer& one : transfers) {
    const ContextScope scope(stager_.driver_, one.lane->device().context());
    const auto graph = where(one.streams.front());
    if (!graph.ok()) return graph.status();
    const auto operation = keep(one, *graph);
    if (!operation.ok()) return operation.status();
    if (Status status = inputs(one, *graph, **operation); !status.ok()) return status;
    operations.push_back(*operation);
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const ContextScope scope(stager_.driver_, transfers[i].lane->device().context());
    if (Status status = sums(transfers[i], *operations[i]); !status.ok()) return status;
  }
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    const ContextScope scope(stager_.driver_, transfers[i].lane->device().context());
    if (Status status = outputs(transfers[i], *operations[i]); !status.ok()) return status;
  }
  return Status();
}

}  // namespace leeway::device
