#include "interop/nccl/execute.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace leeway::nccl {
namespace {

// The two tensors of an operation. NCCL gives the length of one block.
struct Tensors {
  ConstTensorView input;
  TensorView output;
};

Tensors tensors_of(const Communicator& communicator, const Operation& operation) {
  const std::size_t block = operation.count;
  const std::size_t all = block * static_cast<std::size_t>(communicator.size());
  std::size_t input = block;
  std::size_t output = block;
  switch (operation.kind) {
    case Kind::reduce_scatter:
    case Kind::scatter:
      input = all;
      break;
    case Kind::all_gather:
    case Kind::gather:
      output = all;
      break;
    case Kind::all_to_all:
      input = output = all;
      break;
    default:
      break;
  }
  return {{operation.send, input, operation.type}, {operation.receive, output, operation.type}};
}

// Returns the tensor to broadcast, which is the output. If this rank is the root and not in place,
// first copies the input to the output.
TensorView broadcast_tensor(const Communicator& communicator, const Operation& operation) {
  const TensorView data(operation.receive, operation.count, operation.type);
  const bool root = communicator.rank() == operation.peer;
  if (root && operation.send != operation.receive)
    std::memmove(operation.receive, operation.send, data.bytes());
  return data;
}

// If an all-to-all is in place, copies its input, as blocks would be overwritten before they are
// sent; otherwise returns null. NCCL does not define the result of an all-to-all in place, but its
// tests make such calls.
std::shared_ptr<const std::vector<std::byte>> copy_in_place(const Operation& operation,
                                                            ConstTensorView& input) {
  if (operation.send != operation.receive) return nullptr;
  const auto* const bytes = static_cast<const std::byte*>(input.data);
  auto copy = std::make_shared<const std::vector<std::byte>>(bytes, bytes + input.bytes());
  input.data = copy->data();
  return copy;
}

Message message_of(const Operation& operation) {
  if (operation.kind == Kind::send)
    return Message::send({operation.send, operation.count, operation.type}, operation.peer);
  return Message::recv({operation.receive, operation.count, operation.type}, operation.peer);
}

}  // namespace

Result<CollectiveReport> run(Communicator& communicator, const Operation& operation) {
  auto [input, output] = tensors_of(communicator, operation);
  const CollectiveOptions& options = operation.options;
  switch (operation.kind) {
    case Kind::all_reduce:
      return communicator.all_reduce(input, output, options);
    case Kind::reduce_scatter:
      return communicator.reduce_scatter(input, output, options);
    case Kind::reduce:
      return communicator.reduce(input, output, operation.peer, options);
    case Kind::broadcast:
      return communicator.broadcast(broadcast_tensor(communicator, operation), operation.peer,
                                    options);
    case Kind::all_gather:
      return communicator.all_gather(input, output, options);
    case Kind::all_to_all: {
      const auto copy = copy_in_place(operation, input);
      return communicator.all_to_all(input, output, options);
    }
    case Kind::gather:
      return communicator.gather(input, output, operation.peer, options);
    case Kind::scatter:
      return communicator.scatter(input, output, operation.peer, options);
    case Kind::send:
      return communicator.send(input, operation.peer, options);
    case Kind::recv:
      return communicator.recv(output, operation.peer, options);
  }
  return Status::error(StatusCode::kInternal, "no such operation");
}

Work start(Communicator& communicator, const Operation& operation) {
  auto [input, output] = tensors_of(communicator, operation);
  const CollectiveOptions& options = operation.options;
  switch (operation.kind) {
    case Kind::all_reduce:
      return communicator.all_reduce_async(input, output, options);
    case Kind::reduce_scatter:
      return communicator.reduce_scatter_async(input, output, options);
    case Kind::reduce:
      return communicator.reduce_async(input, output, operation.peer, options);
    case Kind::broadcast:
      return communicator.broadcast_async(broadcast_tensor(communicator, operation), operation.peer,
                                          options);
    case Kind::all_gather:
      return communicator.all_gather_async(input, output, options);
    case Kind::all_to_all: {
      auto copy = copy_in_place(operation, input);
      Work work = communicator.all_to_all_async(input, output, options);
      if (copy != nullptr) work.on_done([copy = std::move(copy)] {});  // keeps the copy until then
      return work;
    }
    case Kind::gather:
      return communicator.gather_async(input, output, operation.peer, options);
    case Kind::scatter:
      return communicator.scatter_async(input, output, operation.peer, options);
    case Kind::send:
      return communicator.send_async(input, operation.peer, options);
    case Kind::recv:
      return communicator.recv_async(output, operation.peer, options);
  }
  return {};
}

Work exchange(Communicator& communicator, std::span<const Operation> messages) {
  std::vector<Message> all;
  all.reserve(messages.size());
  for (const Operation& one : messages) all.push_back(message_of(one));
  return communicator.exchange_async(all, messages.front().options);
}

}  // namespace leeway::nccl
