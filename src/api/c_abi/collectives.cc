// C functions for operations. Each calls its counterpart in leeway::Communicator.
#include "leeway/c/collectives.h"

#include <algorithm>

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

using namespace leeway;
using namespace leeway::c_abi;

namespace {

// Returns a view of `tensor`. A NULL pointer is an error, unless the tensor is empty or not `used`.
template <typename View, typename Tensor>
Result<View> view_of(const char* name, const Tensor& tensor, bool used = true) {
  const auto type = data_type_of(tensor.dtype);
  if (!type.ok()) return type.status();
  if (tensor.data == nullptr && tensor.count != 0 && used) {
    return Status::error(StatusCode::kInvalidArgument, "%s.data is NULL and has %zu elements", name,
                         tensor.count);
  }
  return View(tensor.data, tensor.count, *type);
}

// Returns the blocks in C++ form: one count for each rank, and one displacement for each rank
// unless `blocks.displacements` is NULL.
Result<Blocks> view_of(const leeway_blocks& blocks, const Communicator& communicator) {
  if (blocks.counts == nullptr)
    return Status::error(StatusCode::kInvalidArgument, "leeway_blocks.counts is NULL");
  const auto size = static_cast<std::size_t>(communicator.size());
  std::span<const std::size_t> displacements;
  if (blocks.displacements != nullptr) displacements = {blocks.displacements, size};
  return Blocks({blocks.counts, size}, displacements);
}

// Returns true if the library reads and writes tensors itself. With a payload source and sink, the
// tensors' pointers are not followed.
bool touches_tensors(const CollectiveOptions& how) {
  return how.source == nullptr && how.sink == nullptr;
}

// Calls `start` with views of `input` and `output`. Returns an error if view_of() gives one.
template <typename Start>
Result<Work> with_views(const CollectiveOptions& how, const leeway_const_tensor& input,
                        const leeway_tensor& output, Start&& start, bool input_used = true,
                        bool output_used = true) {
  const auto from = view_of<ConstTensorView>("input", input, input_used && touches_tensors(how));
  if (!from.ok()) return from.status();
  const auto to = view_of<TensorView>("output", output, output_used && touches_tensors(how));
  if (!to.ok()) return to.status();
  return start(*from, *to);
}

// What an operation is. A refused collective still takes its number (counted()), and a refused
// message takes none.
enum class Kind : std::uint8_t { collective, message };

// Starts an operation: `start` makes its Work from the communicator, the options and the
// operation's own arguments.
template <Kind kind, typename Start, typename... Arguments>
Result<Work> started(const char* name, leeway_communicator* communicator,
                     const leeway_collective_options* options, Start* start,
                     const Arguments&... arguments) {
  LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
  Communicator& on = *communicator->value;
  auto read = call_of(options);
  Result<Work> work =
      read.ok() ? start(on, read->options, arguments...) : Result<Work>(read.status());
  if (!work.ok() && kind == Kind::collective) return counted(communicator, work.status());
  if (work.ok() && (read->source != nullptr || read->sink != nullptr))
    work->on_done([source = std::move(read->source), sink = std::move(read->sink)] {});
  return work;
}

// Runs an operation to its end.
template <Kind kind = Kind::collective, typename Start, typename... Arguments>
leeway_status run(const char* function, leeway_communicator* communicator,
                  const leeway_collective_options* options, leeway_report* report, Start* start,
                  const Arguments&... arguments) {
  return guarded(function, [&](const char* name) -> Status {
    auto work = started<kind>(name, communicator, options, start, arguments...);
    if (!work.ok()) return work.status();
    return keep(work->wait(), report);
  });
}

// Starts an operation and hands out its handle.
template <Kind kind = Kind::collective, typename Start, typename... Arguments>
leeway_status run_async(const char* function, leeway_communicator* communicator,
                        const leeway_collective_options* options, leeway_work** work, Start* start,
                        const Arguments&... arguments) {
  return guarded(function, [&](const char* name) -> Status {
    const Status cleared = clear(name, "work", work);
    LEEWAY_C_TRY(kind == Kind::collective ? counted(communicator, cleared) : cleared);
    auto handle = std::make_unique<leeway_work>();  // allocated first: it may fail
    auto made = started<kind>(name, communicator, options, start, arguments...);
    if (!made.ok()) return made.status();
    handle->value = std::move(*made);
    *work = handle.release();
    return Status();
  });
}

Result<Work> start_all_reduce(Communicator& on, const CollectiveOptions& how,
                              const leeway_const_tensor& input, const leeway_tensor& output) {
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.all_reduce_async(from, to, how);
  });
}

Result<Work> start_reduce_scatter(Communicator& on, const CollectiveOptions& how,
                                  const leeway_const_tensor& input, const leeway_tensor& output) {
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.reduce_scatter_async(from, to, how);
  });
}

Result<Work> start_reduce_scatter_uneven(Communicator& on, const CollectiveOptions& how,
                                         const leeway_const_tensor& input,
                                         const leeway_blocks& blocks, const leeway_tensor& output) {
  const auto cut = view_of(blocks, on);
  if (!cut.ok()) return cut.status();
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.reduce_scatter_async(from, *cut, to, how);
  });
}

Result<Work> start_all_gather(Communicator& on, const CollectiveOptions& how,
                              const leeway_const_tensor& input, const leeway_tensor& output) {
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.all_gather_async(from, to, how);
  });
}

Result<Work> start_all_gather_uneven(Communicator& on, const CollectiveOptions& how,
                                     const leeway_const_tensor& input, const leeway_tensor& output,
                                     const leeway_blocks& blocks) {
  const auto cut = view_of(blocks, on);
  if (!cut.ok()) return cut.status();
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.all_gather_async(from, to, *cut, how);
  });
}

Result<Work> start_broadcast(Communicator& on, const CollectiveOptions& how,
                             const leeway_tensor& data, leeway_rank root) {
  const auto view = view_of<TensorView>("data", data, touches_tensors(how));
  if (!view.ok()) return view.status();
  return on.broadcast_async(*view, root, how);
}

Result<Work> start_reduce(Communicator& on, const CollectiveOptions& how,
                          const leeway_const_tensor& input, const leeway_tensor& output,
                          leeway_rank root) {
  return with_views(
      how, input, output,
      [&](ConstTensorView from, TensorView to) { return on.reduce_async(from, to, root, how); },
      true, on.rank() == root);
}

Result<Work> start_gather(Communicator& on, const CollectiveOptions& how,
                          const leeway_const_tensor& input, const leeway_tensor& output,
                          leeway_rank root) {
  return with_views(
      how, input, output,
      [&](ConstTensorView from, TensorView to) { return on.gather_async(from, to, root, how); },
      true, on.rank() == root);
}

Result<Work> start_scatter(Communicator& on, const CollectiveOptions& how,
                           const leeway_const_tensor& input, const leeway_tensor& output,
                           leeway_rank root) {
  return with_views(
      how, input, output,
      [&](ConstTensorView from, TensorView to) { return on.scatter_async(from, to, root, how); },
      on.rank() == root, true);
}

Result<Work> start_all_to_all(Communicator& on, const CollectiveOptions& how,
                              const leeway_const_tensor& input, const leeway_tensor& output) {
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.all_to_all_async(from, to, how);
  });
}

Result<Work> start_all_to_all_uneven(Communicator& on, const CollectiveOptions& how,
                                     const leeway_const_tensor& input,
                                     const leeway_blocks& input_blocks, const leeway_tensor& output,
                                     const leeway_blocks& output_blocks) {
  const auto sent = view_of(input_blocks, on);
  if (!sent.ok()) return sent.status();
  const auto received = view_of(output_blocks, on);
  if (!received.ok()) return received.status();
  return with_views(how, input, output, [&](ConstTensorView from, TensorView to) {
    return on.all_to_all_async(from, *sent, to, *received, how);
  });
}

Result<Work> start_send(Communicator& on, const CollectiveOptions& how,
                        const leeway_const_tensor& input, leeway_rank peer) {
  const auto view = view_of<ConstTensorView>("input", input);
  if (!view.ok()) return view.status();
  return on.send_async(*view, peer, how);
}

Result<Work> start_recv(Communicator& on, const CollectiveOptions& how, const leeway_tensor& output,
                        leeway_rank peer) {
  const auto view = view_of<TensorView>("output", output);
  if (!view.ok()) return view.status();
  return on.recv_async(*view, peer, how);
}

// Starts an exchange. The structs of `messages` may be of another version of the header.
Result<Work> start_exchange(Communicator& on, const CollectiveOptions& how,
                            const leeway_message* messages, std::size_t count) {
  LEEWAY_C_TRY(must_be_there("leeway_exchange", "messages", messages, count));
  constexpr leeway_message kMessageDefaults = LEEWAY_MESSAGE_INIT;
  const std::size_t stride = count == 0 ? 0 : messages->size;
  std::vector<Message> group;
  group.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* given = reinterpret_cast<const leeway_message*>(
        reinterpret_cast<const std::byte*>(messages) + i * stride);
    const auto read = read_sized("leeway_message", given, kMessageDefaults);
    if (!read.ok()) return read.status();
    if (given->size != stride) {
      return Status::error(StatusCode::kInvalidArgument,
                           "leeway_exchange: message %zu has size %zu, the first %zu", i,
                           given->size, stride);
    }
    const auto view =
        view_of<TensorView>("leeway_message", leeway_tensor{read->data, read->count, read->dtype});
    if (!view.ok()) return view.status();
    const auto kind = enum_of<Message::Kind>("leeway_message.kind", read->kind, LEEWAY_RECV + 1);
    if (!kind.ok()) return kind.status();
    group.push_back(*kind == Message::Kind::send ? Message::send(*view, read->peer, read->tag)
                                                 : Message::recv(*view, read->peer, read->tag));
  }
  return on.exchange_async(group, how);
}

Result<Work> start_barrier(Communicator& on, const CollectiveOptions&, std::int64_t deadline_ns) {
  return on.barrier_async(duration_of(deadline_ns));
}

}  // namespace

leeway_status leeway_all_reduce(leeway_communicator* communicator, leeway_const_tensor input,
                                leeway_tensor output, const leeway_collective_options* options,
                                leeway_report* report) {
  return run(__func__, communicator, options, report, start_all_reduce, input, output);
}

leeway_status leeway_all_reduce_async(leeway_communicator* communicator, leeway_const_tensor input,
                                      leeway_tensor output,
                                      const leeway_collective_options* options,
                                      leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_all_reduce, input, output);
}

leeway_status leeway_reduce_scatter(leeway_communicator* communicator, leeway_const_tensor input,
                                    leeway_tensor output, const leeway_collective_options* options,
                                    leeway_report* report) {
  return run(__func__, communicator, options, report, start_reduce_scatter, input, output);
}

leeway_status leeway_reduce_scatter_async(leeway_communicator* communicator,
                                          leeway_const_tensor input, leeway_tensor output,
                                          const leeway_collective_options* options,
                                          leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_reduce_scatter, input, output);
}

leeway_status leeway_reduce_scatter_uneven(leeway_communicator* communicator,
                                           leeway_const_tensor input, leeway_blocks blocks,
                                           leeway_tensor output,
                                           const leeway_collective_options* options,
                                           leeway_report* report) {
  return run(__func__, communicator, options, report, start_reduce_scatter_uneven, input, blocks,
             output);
}

leeway_status leeway_reduce_scatter_uneven_async(leeway_communicator* communicator,
                                                 leeway_const_tensor input, leeway_blocks blocks,
                                                 leeway_tensor output,
                                                 const leeway_collective_options* options,
                                                 leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_reduce_scatter_uneven, input,
                   blocks, output);
}

leeway_status leeway_all_gather(leeway_communicator* communicator, leeway_const_tensor input,
                                leeway_tensor output, const leeway_collective_options* options,
                                leeway_report* report) {
  return run(__func__, communicator, options, report, start_all_gather, input, output);
}

leeway_status leeway_all_gather_async(leeway_communicator* communicator, leeway_const_tensor input,
                                      leeway_tensor output,
                                      const leeway_collective_options* options,
                                      leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_all_gather, input, output);
}

leeway_status leeway_all_gather_uneven(leeway_communicator* communicator, leeway_const_tensor input,
                                       leeway_tensor output, leeway_blocks blocks,
                                       const leeway_collective_options* options,
                                       leeway_report* report) {
  return run(__func__, communicator, options, report, start_all_gather_uneven, input, output,
             blocks);
}

leeway_status leeway_all_gather_uneven_async(leeway_communicator* communicator,
                                             leeway_const_tensor input, leeway_tensor output,
                                             leeway_blocks blocks,
                                             const leeway_collective_options* options,
                                             leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_all_gather_uneven, input, output,
                   blocks);
}

leeway_status leeway_broadcast(leeway_communicator* communicator, leeway_tensor data,
                               leeway_rank root, const leeway_collective_options* options,
                               leeway_report* report) {
  return run(__func__, communicator, options, report, start_broadcast, data, root);
}

leeway_status leeway_broadcast_async(leeway_communicator* communicator, leeway_tensor data,
                                     leeway_rank root, const leeway_collective_options* options,
                                     leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_broadcast, data, root);
}

leeway_status leeway_reduce(leeway_communicator* communicator, leeway_const_tensor input,
                            leeway_tensor output, leeway_rank root,
                            const leeway_collective_options* options, leeway_report* report) {
  return run(__func__, communicator, options, report, start_reduce, input, output, root);
}

leeway_status leeway_reduce_async(leeway_communicator* communicator, leeway_const_tensor input,
                                  leeway_tensor output, leeway_rank root,
                                  const leeway_collective_options* options, leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_reduce, input, output, root);
}

leeway_status leeway_gather(leeway_communicator* communicator, leeway_const_tensor input,
                            leeway_tensor output, leeway_rank root,
                            const leeway_collective_options* options, leeway_report* report) {
  return run(__func__, communicator, options, report, start_gather, input, output, root);
}

leeway_status leeway_gather_async(leeway_communicator* communicator, leeway_const_tensor input,
                                  leeway_tensor output, leeway_rank root,
                                  const leeway_collective_options* options, leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_gather, input, output, root);
}

leeway_status leeway_scatter(leeway_communicator* communicator, leeway_const_tensor input,
                             leeway_tensor output, leeway_rank root,
                             const leeway_collective_options* options, leeway_report* report) {
  return run(__func__, communicator, options, report, start_scatter, input, output, root);
}

leeway_status leeway_scatter_async(leeway_communicator* communicator, leeway_const_tensor input,
                                   leeway_tensor output, leeway_rank root,
                                   const leeway_collective_options* options, leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_scatter, input, output, root);
}

leeway_status leeway_all_to_all(leeway_communicator* communicator, leeway_const_tensor input,
                                leeway_tensor output, const leeway_collective_options* options,
                                leeway_report* report) {
  return run(__func__, communicator, options, report, start_all_to_all, input, output);
}

leeway_status leeway_all_to_all_async(leeway_communicator* communicator, leeway_const_tensor input,
                                      leeway_tensor output,
                                      const leeway_collective_options* options,
                                      leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_all_to_all, input, output);
}

leeway_status leeway_all_to_all_uneven(leeway_communicator* communicator, leeway_const_tensor input,
                                       leeway_blocks input_blocks, leeway_tensor output,
                                       leeway_blocks output_blocks,
                                       const leeway_collective_options* options,
                                       leeway_report* report) {
  return run(__func__, communicator, options, report, start_all_to_all_uneven, input, input_blocks,
             output, output_blocks);
}

leeway_status leeway_all_to_all_uneven_async(leeway_communicator* communicator,
                                             leeway_const_tensor input, leeway_blocks input_blocks,
                                             leeway_tensor output, leeway_blocks output_blocks,
                                             const leeway_collective_options* options,
                                             leeway_work** work) {
  return run_async(__func__, communicator, options, work, start_all_to_all_uneven, input,
                   input_blocks, output, output_blocks);
}

leeway_status leeway_send(leeway_communicator* communicator, leeway_const_tensor input,
                          leeway_rank peer, const leeway_collective_options* options,
                          leeway_report* report) {
  return run<Kind::message>(__func__, communicator, options, report, start_send, input, peer);
}

leeway_status leeway_send_async(leeway_communicator* communicator, leeway_const_tensor input,
                                leeway_rank peer, const leeway_collective_options* options,
                                leeway_work** work) {
  return run_async<Kind::message>(__func__, communicator, options, work, start_send, input, peer);
}

leeway_status leeway_recv(leeway_communicator* communicator, leeway_tensor output, leeway_rank peer,
                          const leeway_collective_options* options, leeway_report* report) {
  return run<Kind::message>(__func__, communicator, options, report, start_recv, output, peer);
}

leeway_status leeway_recv_async(leeway_communicator* communicator, leeway_tensor output,
                                leeway_rank peer, const leeway_collective_options* options,
                                leeway_work** work) {
  return run_async<Kind::message>(__func__, communicator, options, work, start_recv, output, peer);
}

leeway_status leeway_exchange(leeway_communicator* communicator, const leeway_message* messages,
                              size_t count, const leeway_collective_options* options,
                              leeway_report* report) {
  return run<Kind::message>(__func__, communicator, options, report, start_exchange, messages,
                            count);
}

leeway_status leeway_exchange_async(leeway_communicator* communicator,
                                    const leeway_message* messages, size_t count,
                                    const leeway_collective_options* options, leeway_work** work) {
  return run_async<Kind::message>(__func__, communicator, options, work, start_exchange, messages,
                                  count);
}

leeway_status leeway_barrier(leeway_communicator* communicator, int64_t deadline_ns,
                             leeway_report* report) {
  return run(__func__, communicator, nullptr, report, start_barrier, deadline_ns);
}

leeway_status leeway_barrier_async(leeway_communicator* communicator, int64_t deadline_ns,
                                   leeway_work** work) {
  return run_async(__func__, communicator, nullptr, work, start_barrier, deadline_ns);
}
