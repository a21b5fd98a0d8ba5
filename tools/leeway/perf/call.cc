#include "perf/call.h"

#include <cstring>

namespace leeway::tools::perf {
namespace {

// Broadcasts, out of place as well. The library's broadcast works in place, so the root first
// copies its input. The measured time includes the copy.
Result<CollectiveReport> broadcast(Communicator& communicator, ConstTensorView input,
                                   TensorView output, Rank root, const CollectiveOptions& options) {
  if (communicator.rank() == root && input.data != output.data) {
    std::memcpy(output.data, input.data, output.bytes());
  }
  return communicator.broadcast(output, root, options);
}

Result<CollectiveReport> sendrecv(Communicator& communicator, ConstTensorView input,
                                  TensorView output, const CollectiveOptions& options) {
  const int size = communicator.size();
  const auto next = static_cast<Rank>((communicator.rank() + 1) % size);
  const auto previous = static_cast<Rank>((communicator.rank() + size - 1) % size);
  Work receiving = communicator.recv_async(output, previous, options);
  Work sending = communicator.send_async(input, next, options);
  auto sent = sending.wait();
  auto received = receiving.wait();
  return sent.ok() ? received : sent;
}

}  // namespace

Result<CollectiveReport> call(Communicator& communicator, Operation operation,
                              ConstTensorView input, TensorView output, Rank root,
                              const CollectiveOptions& options) {
  switch (operation) {
    case Operation::all_reduce:
      return input.data == output.data ? communicator.all_reduce(output, options)
                                       : communicator.all_reduce(input, output, options);
    case Operation::reduce_scatter:
      return communicator.reduce_scatter(input, output, options);
    case Operation::all_gather:
      return communicator.all_gather(input, output, options);
    case Operation::broadcast:
      return broadcast(communicator, input, output, root, options);
    case Operation::reduce:
      return communicator.reduce(input, output, root, options);
    case Operation::gather:
      return communicator.gather(input, output, root, options);
    case Operation::scatter:
      return communicator.scatter(input, output, root, options);
    case Operation::all_to_all:
      return communicator.all_to_all(input, output, options);
    case Operation::sendrecv:
      return sendrecv(communicator, input, output, options);
  }
  return Status::error(StatusCode::kInternal, "operation without a call");
}

}  // namespace leeway::tools::perf
