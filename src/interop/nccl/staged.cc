#include "interop/nccl/staged.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"
#include "interop/nccl/execute.h"

namespace leeway::nccl {
namespace {

std::vector<StagedPart> parts_of(const Comm& comm, std::span<const Operation> operations) {
  if (operations.size() == 1) {
    const Comm::Team team = comm.team(operations.front().among);
    return cut(operations.front(), team.rank, team.size);
  }
  return {cut_messages(operations)};
}

std::byte* at(std::byte* staging, std::size_t offset) {
  return offset == StagedPart::kNone ? nullptr : staging + offset;
}

// One report of a call's parts. Losses are means over them.
void merge(const CollectiveReport& part, std::size_t parts, CollectiveReport& whole) {
  const double share = 1.0 / static_cast<double>(parts);
  whole.loss += share * part.loss;
  whole.loss_first_pass += share * part.loss_first_pass;
  whole.bytes_sent += part.bytes_sent;
  whole.times.total += part.times.total;
  whole.deadline_cut = whole.deadline_cut || part.deadline_cut;
  whole.agreed = whole.agreed && part.agreed;
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

}  // namespace

Code code_of_enqueue(const Status& status) {
  return status.code() == StatusCode::kUnavailable ? kCudaError : code_of(status.code(), 0);
}

StagedCall::StagedCall(std::shared_ptr<Comm> comm, std::vector<Operation> operations)
    : comm_(std::move(comm)),
      operations_(std::move(operations)),
      parts_(parts_of(*comm_, operations_)) {}

std::vector<device::Step> StagedCall::steps() {
  std::vector<device::Step> steps;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    device::Step& step = steps.emplace_back(parts_[i].copies);
    step.run = [self = shared_from_this(), i](std::byte* staging,
                                              const std::function<void()>& done) {
      self->run(i, staging, done);
    };
  }
  return steps;
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

void StagedCall::run(std::size_t index, std::byte* staging, const std::function<void()>& done) {
  const bool begun = [this] {
    const std::lock_guard lock(mutex_);
    return begun_;
  }();
  if (!begun) begin();  // of a replay
  const auto work = std::make_shared<Work>(start(index, staging));
  const auto end = [self = shared_from_this(), work, done] {
    self->ended(work->valid()
                    ? work->wait()
                    : Status::error(StatusCode::kCancelled, "the communicator was aborted"));
    self->comm_->let_go(done);
  };
  if (!work->valid()) return end();
  work->on_done(end);
}

Work StagedCall::start(std::size_t index, std::byte* staging) {
  const std::shared_ptr<Communicator> communicator = comm_->hold(operations_.front().among);
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
    for (const auto& call : calls) call->comm()->fail(code, captured.status().text());
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
