#include "interop/nccl/staged.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"
#include "interop/nccl/execute.h"

namespace leeway::nccl {
namespace {

std::vector<StagedPart> parts_of(const Comm& comm, std::span<const Operation> operations) {
  if (operations.size() == 1) return cut(operations.front(), comm.rank(), comm.size());
  return {cut_messages(operations)};
}

std::byte* at(std::byte* staging, std::size_t offset) {
  return offset == StagedPart::kNone ? nullptr : staging + offset;
}

// Adds the report of one part to that of the call. Losses are means over the parts.
void merge(const CollectiveReport& part, std::size_t parts, CollectiveReport& whole) {
  const double share = 1.0 / static_cast<double>(parts);
  whole.loss += share * part.loss;
  whole.loss_first_pass += share * part.loss_first_pass;
  whole.bytes_sent += part.bytes_sent;
  whole.times.total += part.times.total;
  whole.deadline_cut = whole.deadline_cut || part.deadline_cut;
  whole.complete = whole.complete && part.complete;
  whole.codec = part.codec;
  if (part.noise.measured) whole.noise = part.noise;
}

void copy_on_host(const device::Copy& copy, std::byte* staging, bool in) {
  for (std::size_t row = 0; row < copy.rows && copy.bytes > 0; ++row) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of the host, as the call gave it
    auto* const memory = reinterpret_cast<std::byte*>(copy.memory + row * copy.pitch);
    std::byte* const staged = staging + copy.offset + row * copy.bytes;
    std::memcpy(in ? staged : memory, in ? memory : staged, copy.bytes);
  }
}

// Returns the code for a call that could not be enqueued. kUnavailable means that CUDA refused it.
Code code_of_enqueue(const Status& status) {
  return status.code() == StatusCode::kUnavailable ? kCudaError : code_of(status.code(), 0);
}

}  // namespace

StagedCall::StagedCall(std::shared_ptr<Comm> comm, std::vector<Operation> operations)
    : comm_(std::move(comm)),
      operations_(std::move(operations)),
      parts_(parts_of(*comm_, operations_)) {}

std::vector<device::Step> StagedCall::steps() {
  std::vector<device::Step> steps;
  const device_codec::Kernels* const by_kernels = kernels();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    device::Step& step = steps.emplace_back(parts_[i].copies);
    if (by_kernels != nullptr) {
      encode(*by_kernels, i, step);
      continue;
    }
    step.run = [self = shared_from_this(), i](std::byte* staging,
                                              const std::function<void()>& done) {
      self->run([self, i, staging] { return self->start(i, staging); }, [done](bool) { done(); });
    };
  }
  return steps;
}

const device_codec::Kernels* StagedCall::kernels() const {
  const Operation& operation = operations_.front();
  if (operations_.size() > 1 || operation.memory != Operation::Memory::streams ||
      !reduces(operation.kind) || operation.factor != nullptr ||
      !device_codec::StreamPayload::supports(operation.options.codec, operation.type,
                                             operation.options.op, comm_->size()))
    return nullptr;
  for (const void* const memory : {operation.send, static_cast<const void*>(operation.receive)}) {
    if (memory == nullptr) continue;
    if (stager()->driver().kind_of(memory).where != device::PointerKind::Where::device ||
        reinterpret_cast<std::uintptr_t>(memory) % size_of(operation.type) != 0)
      return nullptr;
  }
  const auto lane = comm_->lane();
  if (!lane.ok() || !(*lane)->device().stream_waits()) return nullptr;
  return codec_kernels(
      **lane, codec::format_of(operation.options.codec, operation.type, codec::Purpose::sum));
}

// Sets up a step that kernels run. They read and write the call's memory, so nothing is copied.
void StagedCall::encode(const device_codec::Kernels& kernels, std::size_t index,
                        device::Step& step) {
  const Operation& operation = parts_[index].pieces.front().operation;
  const auto ranks = static_cast<std::size_t>(comm_->size());
  const bool blocks = operation.kind == Kind::reduce_scatter;
  const auto memory = [](const std::vector<device::Copy>& copies) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of the device
    return reinterpret_cast<std::byte*>(copies.empty() ? 0 : copies.front().memory);
  };
  device_codec::StreamPayload::Call call{.codec = operation.options.codec,
                                         .type = operation.type,
                                         .size = comm_->size(),
                                         .elements = operation.count * (blocks ? ranks : 1),
                                         .block_elements = operation.count,
                                         .spreads = operation.kind == Kind::all_reduce,
                                         .multiprocessors = settings().multiprocessors,
                                         .input = memory(step.input),
                                         .input_pitch = blocks ? step.input.front().pitch : 0,
                                         .output = memory(step.output)};
  // Length of the longest shard. An all_reduce has even shards, or, if the tensor is short, fewer
  // shards of one packet each.
  if (call.spreads)
    call.block_elements =
        std::min(operation.count, std::max(operation.count / ranks, kPacketElementsMax));
  const bool owns = operation.kind != Kind::reduce || operation.peer == comm_->rank();
  if (!owns) call.block_elements = 0;
  const auto payload = std::make_shared<device_codec::StreamPayload>(
      kernels, call,
      [self = shared_from_this(), index](const std::shared_ptr<device_codec::StreamPayload>& of_run,
                                         const std::function<void(bool)>& ended) {
        self->run([&] { return self->start_encoded(index, *of_run); }, ended);
      });
  step = {};
  step.staging_bytes = payload->staging_bytes();
  step.kernels = payload;
}

std::vector<device::cuda::Stream> StagedCall::streams() const {
  std::vector<device::cuda::Stream> streams;
  for (const Operation& one : operations_) {
    auto* const stream = static_cast<device::cuda::Stream>(one.stream);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  }
  return streams;
}

void StagedCall::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  left_ = parts_.size();
  outcome_ = CollectiveReport();
  comm_->begin_streaming();
}

void StagedCall::not_begun() {
  const std::lock_guard lock(mutex_);
  begun_ = false;
  comm_->end_streaming();
}

Code StagedCall::code() {
  const std::lock_guard lock(mutex_);
  return code_;
}

void StagedCall::run(const std::function<Work()>& start, const std::function<void(bool ok)>& done) {
  const bool begun = [this] {
    const std::lock_guard lock(mutex_);
    return begun_;
  }();
  if (!begun) begin();  // a replay
  const auto work = std::make_shared<Work>(start());
  const auto end = [self = shared_from_this(), work, done] {
    const Result<CollectiveReport> outcome =
        work->valid() ? work->wait()
                      : Status::error(StatusCode::kCancelled, "the communicator was aborted");
    self->ended(outcome);
    done(outcome.ok());
  };
  if (!work->valid()) return end();
  work->on_done(end);
}

Work StagedCall::start(std::size_t index, std::byte* staging) {
  const std::shared_ptr<Communicator> communicator = comm_->hold();
  if (communicator == nullptr) return {};
  const StagedPart& part = parts_[index];
  if (part.factor_at != StagedPart::kNone)
    factor_ = scalar_at(staging + part.factor_at, operations_.front().type);
  std::vector<Operation> pieces;
  for (const StagedPart::Piece& piece : part.pieces) {
    Operation& operation = pieces.emplace_back(piece.operation);
    operation.send = at(staging, piece.input_at);
    operation.receive = at(staging, piece.output_at);
    if (operation.factor != nullptr) operation.options.factor = factor_;
  }
  if (pieces.size() > 1) return nccl::exchange(*communicator, pieces);
  return nccl::start(*communicator, pieces.front());
}

Work StagedCall::start_encoded(std::size_t index, device_codec::StreamPayload& payload) {
  const std::shared_ptr<Communicator> communicator = comm_->hold();
  if (communicator == nullptr) return {};
  Operation operation = parts_[index].pieces.front().operation;
  operation.send = operation.receive = nullptr;
  operation.options.source = &payload;
  operation.options.sink = &payload;
  return nccl::start(*communicator, operation);
}

void StagedCall::ended(const Result<CollectiveReport>& outcome) {
  const std::lock_guard lock(mutex_);
  if (!outcome.ok() && outcome_.ok()) outcome_ = outcome.status();
  if (outcome.ok() && outcome_.ok()) merge(*outcome, parts_.size(), *outcome_);
  if (--left_ > 0) return;
  code_ = kSuccess;
  for (const Operation& operation : operations_) {
    const Code one = comm_->finish(operation, outcome_);
    if (code_ == kSuccess) code_ = one;
  }
  begun_ = false;
  comm_->end_streaming();
}

Code enqueue(std::span<const std::shared_ptr<StagedCall>> calls) {
  std::vector<device::Transfer> transfers;
  for (const auto& call : calls) {
    auto lane = call->comm()->lane();
    if (!lane.ok()) return failed(code_of_enqueue(lane.status()), lane.status().text());
    transfers.push_back({*lane, call->streams(), call->steps()});
  }
  for (const auto& call : calls) call->begin();
  const auto captured = stager()->enqueue(transfers);
  if (captured.ok() && !*captured) return kSuccess;
  for (const auto& call : calls) call->not_begun();
  if (captured.ok()) return kSuccess;
  const Code code = code_of_enqueue(captured.status());
  if (captured.status().code() != StatusCode::kUnsupported) {
    for (const auto& call : calls) (void)call->comm()->set_failure(code, captured.status().text());
  }
  return failed(code, captured.status().text());
}

std::shared_ptr<HostCall> HostCall::begin(const std::shared_ptr<StagedCall>& call,
                                          std::function<void()> ended) {
  auto self = std::make_shared<HostCall>();
  self->call_ = call;
  self->steps_ = call->steps();
  self->staging_.resize(self->steps_.size());
  self->ended_ = std::move(ended);
  self->left_ = self->steps_.size();
  call->begin();
  for (std::size_t i = 0; i < self->steps_.size(); ++i) {
    std::vector<std::byte>& staging = self->staging_[i];
    staging.resize(self->steps_[i].staging_bytes);
    for (const device::Copy& one : self->steps_[i].input) copy_on_host(one, staging.data(), true);
    self->steps_[i].run(staging.data(), [self, i] { self->finish_step(i); });
  }
  return self;
}

void HostCall::finish_step(std::size_t index) {
  for (const device::Copy& one : steps_[index].output)
    copy_on_host(one, staging_[index].data(), false);
  std::function<void()> ended;
  {
    const std::lock_guard lock(mutex_);
    if (--left_ > 0) return;
    ended = std::move(ended_);
  }
  changed_.notify_all();
  if (ended) ended();
}

Code HostCall::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return left_ == 0; });
  return call_->code();
}

}  // namespace leeway::nccl
