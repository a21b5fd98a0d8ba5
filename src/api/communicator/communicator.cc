// Public interface: each call becomes an OperationSpec.
#include "leeway/communicator.h"

#include <new>

#include "base/limits.h"
#include "collective/operation_spec.h"
#include "communicator/channels.h"

namespace leeway {

using collective::OperationKind;
using collective::OperationSpec;

Communicator::Communicator(const Options& options, std::unique_ptr<internal::Channels> channels)
    : options_(options), channels_(std::move(channels)) {}
// In a forked child the channels have none of the parent's threads, their locks may be held for
// ever, and the parent still uses their socket. So the destructor leaks the channels there.
Communicator::~Communicator() {
  if (channels_->forked())
    (void)new (std::nothrow) std::shared_ptr<internal::Channels>(std::move(channels_));
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): on purpose

Rank Communicator::rank() const {
  return channels_->rank();
}
int Communicator::size() const {
  return channels_->size();
}
const Options& Communicator::options() const {
  return options_;
}
std::size_t Communicator::datagram_bytes() const {
  return channels_->config().datagram_bytes;
}
TransportKind Communicator::transport() const {
  return channels_->datagrams().kind();
}
std::vector<std::pair<std::string, std::uint64_t>> Communicator::counters() const {
  return channels_->counters();
}

Result<MemoryRegistration> Communicator::register_memory(ByteSpan memory) {
  if (state() == StatusCode::kCancelled) return status();
  if (Status status = channels_->register_memory(memory); !status.ok()) return status;
  MemoryRegistration registration;
  registration.channels_ = channels_;
  registration.memory_ = memory;
  return registration;
}

Result<Allocation> Communicator::allocate(std::size_t bytes) {
  if (driving::in_callback())
    return Status::error(StatusCode::kInvalidArgument, "allocate: a callback must not wait");
  if (state() == StatusCode::kCancelled) return status();
  auto region = channels_->allocate(bytes);  // a refused call takes its place, too
  if (bytes == 0) return Status::error(StatusCode::kInvalidArgument, "allocate: 0 bytes");
  if (!region.ok()) return region.status();
  Allocation allocation;
  allocation.memory_ = (*region)->memory().first(bytes);
  allocation.direct_ = (*region)->shared();
  allocation.owner_ = std::move(*region);
  return allocation;
}

void Communicator::notify_payload() {
  channels_->ring();
}

MemoryRegistration& MemoryRegistration::operator=(MemoryRegistration&& other) noexcept {
  if (this == &other) return *this;
  release();
  channels_ = std::exchange(other.channels_, {});
  memory_ = other.memory_;
  return *this;
}

void MemoryRegistration::release() {
  if (const auto channels = channels_.lock()) channels->forget_memory(memory_);
  channels_.reset();
}

namespace {

OperationSpec spec_of(OperationKind kind, ConstTensorView input, TensorView output, Rank peer,
                      const CollectiveOptions& options) {
  return {.kind = kind, .input = input, .output = output, .peer = peer, .options = options};
}

OperationSpec uneven_reduce_scatter(ConstTensorView input, const Blocks& blocks, TensorView output,
                                    const CollectiveOptions& options) {
  OperationSpec spec = spec_of(OperationKind::reduce_scatter, input, output, kNoRank, options);
  spec.input_blocks = collective::BlockList(blocks);
  return spec;
}

OperationSpec uneven_all_gather(ConstTensorView input, TensorView output, const Blocks& blocks,
                                const CollectiveOptions& options) {
  OperationSpec spec = spec_of(OperationKind::all_gather, input, output, kNoRank, options);
  spec.output_blocks = collective::BlockList(blocks);
  return spec;
}

OperationSpec uneven_all_to_all(ConstTensorView input, const Blocks& input_blocks,
                                TensorView output, const Blocks& output_blocks,
                                const CollectiveOptions& options) {
  OperationSpec spec = spec_of(OperationKind::all_to_all, input, output, kNoRank, options);
  spec.input_blocks = collective::BlockList(input_blocks);
  spec.output_blocks = collective::BlockList(output_blocks);
  return spec;
}

// Tensors of operations that have no input, or no output.
const ConstTensorView no_input{nullptr, 0, DataType::f32};
const TensorView no_output{nullptr, 0, DataType::f32};

OperationSpec exchange_spec(std::span<const Message> messages, const CollectiveOptions& options) {
  OperationSpec spec = spec_of(OperationKind::exchange, no_input, no_output, kNoRank, options);
  spec.messages = std::make_shared<std::vector<Message>>(messages.begin(), messages.end());
  return spec;
}

OperationSpec barrier_spec(Duration deadline) {
  CollectiveOptions options;
  options.delivery = exact(deadline);
  return spec_of(OperationKind::barrier, {nullptr, 0, DataType::u8}, {nullptr, 0, DataType::u8},
                 kNoRank, options);
}

}  // namespace

Result<CollectiveReport> Communicator::all_reduce(TensorView data,
                                                  const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::all_reduce, data, data, kNoRank, options));
}
Work Communicator::all_reduce_async(TensorView data, const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::all_reduce, data, data, kNoRank, options)));
}
Result<CollectiveReport> Communicator::all_reduce(ConstTensorView input, TensorView output,
                                                  const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::all_reduce, input, output, kNoRank, options));
}
Work Communicator::all_reduce_async(ConstTensorView input, TensorView output,
                                    const CollectiveOptions& options) {
  return Work(
      channels_->start(spec_of(OperationKind::all_reduce, input, output, kNoRank, options)));
}
Result<CollectiveReport> Communicator::reduce_scatter(ConstTensorView input, TensorView output,
                                                      const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::reduce_scatter, input, output, kNoRank, options));
}
Work Communicator::reduce_scatter_async(ConstTensorView input, TensorView output,
                                        const CollectiveOptions& options) {
  return Work(
      channels_->start(spec_of(OperationKind::reduce_scatter, input, output, kNoRank, options)));
}
Result<CollectiveReport> Communicator::reduce_scatter(ConstTensorView input, const Blocks& blocks,
                                                      TensorView output,
                                                      const CollectiveOptions& options) {
  return channels_->run(uneven_reduce_scatter(input, blocks, output, options));
}
Work Communicator::reduce_scatter_async(ConstTensorView input, const Blocks& blocks,
                                        TensorView output, const CollectiveOptions& options) {
  return Work(channels_->start(uneven_reduce_scatter(input, blocks, output, options)));
}
Result<CollectiveReport> Communicator::all_gather(ConstTensorView input, TensorView output,
                                                  const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::all_gather, input, output, kNoRank, options));
}
Work Communicator::all_gather_async(ConstTensorView input, TensorView output,
                                    const CollectiveOptions& options) {
  return Work(
      channels_->start(spec_of(OperationKind::all_gather, input, output, kNoRank, options)));
}
Result<CollectiveReport> Communicator::all_gather(ConstTensorView input, TensorView output,
                                                  const Blocks& blocks,
                                                  const CollectiveOptions& options) {
  return channels_->run(uneven_all_gather(input, output, blocks, options));
}
Work Communicator::all_gather_async(ConstTensorView input, TensorView output, const Blocks& blocks,
                                    const CollectiveOptions& options) {
  return Work(channels_->start(uneven_all_gather(input, output, blocks, options)));
}
Result<CollectiveReport> Communicator::broadcast(TensorView data, Rank root,
                                                 const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::broadcast, data, data, root, options));
}
Work Communicator::broadcast_async(TensorView data, Rank root, const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::broadcast, data, data, root, options)));
}
Result<CollectiveReport> Communicator::reduce(ConstTensorView input, TensorView output, Rank root,
                                              const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::reduce, input, output, root, options));
}
Work Communicator::reduce_async(ConstTensorView input, TensorView output, Rank root,
                                const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::reduce, input, output, root, options)));
}
Result<CollectiveReport> Communicator::gather(ConstTensorView input, TensorView output, Rank root,
                                              const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::gather, input, output, root, options));
}
Work Communicator::gather_async(ConstTensorView input, TensorView output, Rank root,
                                const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::gather, input, output, root, options)));
}
Result<CollectiveReport> Communicator::scatter(ConstTensorView input, TensorView output, Rank root,
                                               const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::scatter, input, output, root, options));
}
Work Communicator::scatter_async(ConstTensorView input, TensorView output, Rank root,
                                 const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::scatter, input, output, root, options)));
}
Result<CollectiveReport> Communicator::all_to_all(ConstTensorView input, TensorView output,
                                                  const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::all_to_all, input, output, kNoRank, options));
}
Work Communicator::all_to_all_async(ConstTensorView input, TensorView output,
                                    const CollectiveOptions& options) {
  return Work(
      channels_->start(spec_of(OperationKind::all_to_all, input, output, kNoRank, options)));
}
Result<CollectiveReport> Communicator::all_to_all(ConstTensorView input, const Blocks& input_blocks,
                                                  TensorView output, const Blocks& output_blocks,
                                                  const CollectiveOptions& options) {
  return channels_->run(uneven_all_to_all(input, input_blocks, output, output_blocks, options));
}
Work Communicator::all_to_all_async(ConstTensorView input, const Blocks& input_blocks,
                                    TensorView output, const Blocks& output_blocks,
                                    const CollectiveOptions& options) {
  return Work(
      channels_->start(uneven_all_to_all(input, input_blocks, output, output_blocks, options)));
}
Result<CollectiveReport> Communicator::send(ConstTensorView input, Rank peer,
                                            const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::send, input, no_output, peer, options));
}
Work Communicator::send_async(ConstTensorView input, Rank peer, const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::send, input, no_output, peer, options)));
}
Result<CollectiveReport> Communicator::recv(TensorView output, Rank peer,
                                            const CollectiveOptions& options) {
  return channels_->run(spec_of(OperationKind::recv, no_input, output, peer, options));
}
Work Communicator::recv_async(TensorView output, Rank peer, const CollectiveOptions& options) {
  return Work(channels_->start(spec_of(OperationKind::recv, no_input, output, peer, options)));
}
Result<CollectiveReport> Communicator::exchange(std::span<const Message> messages,
                                                const CollectiveOptions& options) {
  return channels_->run(exchange_spec(messages, options));
}
Work Communicator::exchange_async(std::span<const Message> messages,
                                  const CollectiveOptions& options) {
  return Work(channels_->start(exchange_spec(messages, options)));
}
Result<CollectiveReport> Communicator::barrier(Duration deadline) {
  return channels_->run(barrier_spec(deadline));
}
Work Communicator::barrier_async(Duration deadline) {
  return Work(channels_->start(barrier_spec(deadline)));
}

}  // namespace leeway
