// Collectives, messages, reductions and groups.
#include <cstdint>

#include "interop/nccl/calls.h"
#include "interop/nccl/context.h"
#include "interop/nccl/devices.h"

namespace leeway::nccl {
namespace {

struct Arguments {
  Kind kind;
  const void* send;
  void* receive;
  std::size_t count;
  leeway_nccl_enum type;
  leeway_nccl_enum op;
  int peer;
  leeway_nccl_comm comm;
  leeway_nccl_stream stream;
};

// These return true if this rank's part of the operation reads `send`, or writes `receive`.
bool reads_send(const Arguments& call, const Comm& comm) {
  if (call.kind == Kind::recv) return false;
  return (call.kind != Kind::broadcast && call.kind != Kind::scatter) || comm.rank() == call.peer;
}
bool writes_receive(const Arguments& call, const Comm& comm) {
  if (call.kind == Kind::send) return false;
  return (call.kind != Kind::reduce && call.kind != Kind::gather) || comm.rank() == call.peer;
}

Code check_pointers(const Arguments& call, const Comm& comm, const char* title) {
  if (!settings().check_pointers || call.count == 0) return kSuccess;
  if (reads_send(call, comm) && call.send == nullptr) return null_argument(title, "sendbuff");
  if (writes_receive(call, comm) && call.receive == nullptr)
    return null_argument(title, "recvbuff");
  return kSuccess;
}

// Sets the factor of a program's own reduction. Reads it now if it is in host memory; streams read
// it otherwise.
Code resolve_factor(const void* factor, const char* title, Operation& out) {
  if (factor == nullptr) return kSuccess;
  const device::Stager* const cuda = stager();
  if (cuda == nullptr || !cuda->driver().kind_of(factor).on_streams()) {
    out.options.factor = scalar_at(factor, out.type);
    return kSuccess;
  }
  if (out.memory == Operation::Memory::host) {
    return failed_with(kInvalidArgument,
                       "%s : the reduction's factor is in device memory, the buffers are not",
                       title);
  }
  out.factor = factor;
  return kSuccess;
}

// Drops a buffer that this rank neither reads nor writes: a program may pass any address for it.
void resolve_memory(const Arguments& call, const Comm& comm, Operation& out) {
  out.send = reads_send(call, comm) ? call.send : nullptr;
  out.receive = writes_receive(call, comm) ? call.receive : nullptr;
}

Code resolve(const Arguments& call, const Comm& comm, Operation& out) {
  const std::string title(title_of(call.kind));
  if ((has_root(call.kind) || is_message(call.kind)) &&
      (call.peer < 0 || call.peer >= comm.size())) {
    return failed_with(kInvalidArgument, "%s : invalid root %d (root should be in the 0..%d range)",
                       title.c_str(), call.peer, comm.size());
  }
  const auto type = type_of(call.type);
  if (!type) return failed_with(kInvalidArgument, "%s : invalid type %d", title.c_str(), call.type);
  out.kind = call.kind;
  out.count = call.count;
  out.type = *type;
  out.peer = static_cast<Rank>(call.peer);
  out.stream = call.stream;
  const void* factor = nullptr;
  if (reduces(call.kind)) {
    if (Status status = comm.reductions.resolve(call.op, *type, out.options, factor); !status.ok())
      return failed(status, title);
  }
  resolve_memory(call, comm, out);
  if (const Code code = check_pointers(call, comm, title.c_str()); code != kSuccess) return code;
  if (const Code code = find_memory(out, title); code != kSuccess) return code;
  comm.decide(out);
  return resolve_factor(factor, title.c_str(), out);
}

Code issue(const Arguments& call) {
  const std::string_view title = title_of(call.kind);
  auto found = Context::get().registry.find(call.comm, title);
  if (!found.ok()) return failed(found.status());
  const std::shared_ptr<Comm>& comm = *found;
  if (const Code code = comm->usable(title); code != kSuccess) return code;
  Operation operation;
  if (const Code code = resolve(call, *comm, operation); code != kSuccess) return code;
  if (call.count == 0 && !is_message(call.kind)) return kSuccess;
  return Group::mine().add(comm, operation);
}

leeway_nccl_result guarded_issue(const Arguments& call) {
  return guarded([&] { return issue(call); });
}

}  // namespace

namespace calls {

leeway_nccl_result AllReduce(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                             leeway_nccl_enum op, leeway_nccl_comm comm,
                             leeway_nccl_stream stream) {
  return guarded_issue({Kind::all_reduce, send, receive, count, type, op, 0, comm, stream});
}

leeway_nccl_result ReduceScatter(const void* send, void* receive, size_t count,
                                 leeway_nccl_enum type, leeway_nccl_enum op, leeway_nccl_comm comm,
                                 leeway_nccl_stream stream) {
  return guarded_issue({Kind::reduce_scatter, send, receive, count, type, op, 0, comm, stream});
}

leeway_nccl_result Reduce(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                          leeway_nccl_enum op, int root, leeway_nccl_comm comm,
                          leeway_nccl_stream stream) {
  return guarded_issue({Kind::reduce, send, receive, count, type, op, root, comm, stream});
}

leeway_nccl_result Bcast(void* buffer, size_t count, leeway_nccl_enum type, int root,
                         leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::broadcast, buffer, buffer, count, type, 0, root, comm, stream});
}

leeway_nccl_result Broadcast(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                             int root, leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::broadcast, send, receive, count, type, 0, root, comm, stream});
}

leeway_nccl_result AllGather(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                             leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::all_gather, send, receive, count, type, 0, 0, comm, stream});
}

leeway_nccl_result AlltoAll(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                            leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::all_to_all, send, receive, count, type, 0, 0, comm, stream});
}

leeway_nccl_result Gather(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                          int root, leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::gather, send, receive, count, type, 0, root, comm, stream});
}

leeway_nccl_result Scatter(const void* send, void* receive, size_t count, leeway_nccl_enum type,
                           int root, leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::scatter, send, receive, count, type, 0, root, comm, stream});
}

leeway_nccl_result Send(const void* send, size_t count, leeway_nccl_enum type, int peer,
                        leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::send, send, nullptr, count, type, 0, peer, comm, stream});
}

leeway_nccl_result Recv(void* receive, size_t count, leeway_nccl_enum type, int peer,
                        leeway_nccl_comm comm, leeway_nccl_stream stream) {
  return guarded_issue({Kind::recv, nullptr, receive, count, type, 0, peer, comm, stream});
}

leeway_nccl_result RedOpCreatePreMulSum(leeway_nccl_enum* op, void* scalar, leeway_nccl_enum type,
                                        leeway_nccl_enum residence, leeway_nccl_comm comm) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "ncclRedOpCreatePreMulSum";
    constexpr leeway_nccl_enum kDevice = 0;
    auto found = Context::get().registry.find(comm, kTitle);
    if (!found.ok()) return failed(found.status());
    if (const Code code = (*found)->usable(kTitle); code != kSuccess) return code;
    if (op == nullptr) return null_argument(kTitle, "op");
    if (scalar == nullptr) return null_argument(kTitle, "scalar");
    const auto element = type_of(type);
    if (!element) return failed_with(kInvalidArgument, "%s : invalid type %d", kTitle, type);
    *op = (*found)->reductions.make(scalar, *element, residence == kDevice);
    return kSuccess;
  });
}

leeway_nccl_result RedOpDestroy(leeway_nccl_enum op, leeway_nccl_comm comm) {
  return guarded([&]() -> Code {
    constexpr const char* kTitle = "ncclRedOpDestroy";
    if (op >= 0 && op < Reductions::kFirstMade)
      return failed_with(kInvalidArgument, "%s : operator is a NCCL builtin.", kTitle);
    if (op < 0) return failed_with(kInvalidArgument, "%s :  operator is garbage.", kTitle);
    auto found = Context::get().registry.find(comm, kTitle);
    if (comm == nullptr)
      return failed_with(kInvalidArgument, "%s : invalid communicator passed.", kTitle);
    if (!found.ok()) return failed(found.status());
    if ((*found)->reductions.destroy(op)) return kSuccess;
    return failed_with(kInvalidArgument, "%s : operator unknown to this communicator.", kTitle);
  });
}

leeway_nccl_result GroupStart() {
  Group::mine().start();
  return kSuccess;
}

leeway_nccl_result GroupEnd() {
  return guarded([] { return Group::mine().end(); });
}

leeway_nccl_result GroupSimulateEnd(leeway_nccl_sim_info*) {
  return guarded([] { return Group::mine().discard(); });
}

}  // namespace calls
}  // namespace leeway::nccl
