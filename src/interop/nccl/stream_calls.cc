#include "interop/nccl/stream_calls.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "interop/nccl/debug.h"
#include "interop/nccl/devices.h"

namespace leeway::nccl {
namespace {

device::cuda::Stream stream_of(const Operation& operation) {
  return static_cast<device::cuda::Stream>(operation.stream);
}

// What `use` answers, with the communicator's device current.
template <typename Use>
Status on_device_of(const Comm& comm, const Use& use) {
  const device::Driver& driver = stager()->driver();
  const auto context = device::context_of(driver, comm.device());
  if (!context.ok()) return context.status();
  const device::ContextScope scope(driver, context->context);
  return use(driver);
}

}  // namespace

void StreamCalls::add(const std::shared_ptr<Comm>& comm, const std::vector<Operation>& operations) {
  if (comm->hierarchy() == nullptr) return add_staged(comm, operations);
  if (std::find(comms_.begin(), comms_.end(), comm) == comms_.end()) comms_.push_back(comm);
  if (is_message(operations.front().kind)) return add_messages(comm, operations);
  add_collective(comm, operations.front());
}

void StreamCalls::add_staged(const std::shared_ptr<Comm>& comm, std::vector<Operation> operations) {
  staged_.push_back(std::make_shared<StagedCall>(comm, std::move(operations)));
}

void StreamCalls::add_collective(const std::shared_ptr<Comm>& comm, const Operation& operation) {
  const Hierarchy& hierarchy = *comm->hierarchy();
  switch (hierarchy.route_of(operation)) {
    case Hierarchy::Route::flat:
      return add_staged(comm, {operation});
    case Hierarchy::Route::forwarded:
      return first_.add(hierarchy.inner_of(operation), hierarchy.call_of(operation),
                        operation.stream);
    case Hierarchy::Route::hops:
      return add_hops(comm, operation);
  }
}

// A sender and its receiver decide alike, by where both are.
void StreamCalls::add_messages(const std::shared_ptr<Comm>& comm,
                               const std::vector<Operation>& operations) {
  const Hierarchy& hierarchy = *comm->hierarchy();
  std::vector<Operation> between;
  std::vector<Operation> inside;
  for (const Operation& one : operations) {
    const bool flat = hierarchy.route_of(one) == Hierarchy::Route::flat;
    (flat ? between : inside).push_back(one);
  }
  if (between.empty()) {
    for (const Operation& one : inside)
      first_.add(hierarchy.inner_of(one), hierarchy.call_of(one), one.stream);
    return;
  }
  if (!inside.empty()) add_beside(comm, inside);
  add_staged(comm, std::move(between));
}

void StreamCalls::add_beside(const std::shared_ptr<Comm>& comm,
                             const std::vector<Operation>& messages) {
  Hierarchy& hierarchy = *comm->hierarchy();
  Fork fork{comm, {}};
  const Status status = on_device_of(*comm, [&](const device::Driver& driver) {
    const auto aside = hierarchy.aside(driver);
    if (!aside.ok()) return aside.status();
    for (const Operation& one : messages) {
      first_.add(hierarchy.inner_of(one), hierarchy.call_of(one), aside->stream);
      const auto known = std::find(fork.streams.begin(), fork.streams.end(), stream_of(one));
      if (known == fork.streams.end()) fork.streams.push_back(stream_of(one));
    }
    return Status();
  });
  if (status_.ok()) status_ = status;
  forks_.push_back(std::move(fork));
}

Status StreamCalls::tie(const Fork& fork, bool begins) {
  return on_device_of(*fork.comm, [&](const device::Driver& driver) {
    const auto aside = fork.comm->hierarchy()->aside(driver);
    if (!aside.ok()) return aside.status();
    for (const device::cuda::Stream stream : fork.streams) {
      const device::cuda::Stream before = begins ? stream : aside->stream;
      const device::cuda::Stream after = begins ? aside->stream : stream;
      auto code = driver.call.cuEventRecord(aside->event, before);
      if (code == device::cuda::kSuccess)
        code = driver.call.cuStreamWaitEvent(after, aside->event, 0);
      if (code != device::cuda::kSuccess) return driver.error("an event between streams", code);
    }
    return Status();
  });
}

void StreamCalls::add_hops(const std::shared_ptr<Comm>& comm, const Operation& operation) {
  const Hierarchy& hierarchy = *comm->hierarchy();
  const auto scratch = take_scratch(comm, operation);
  if (!scratch.ok()) {
    if (status_.ok()) status_ = scratch.status();
    return;
  }
  const Hops hops = hops_of(operation, hierarchy.nodes(), *scratch);
  for (const InnerCall& one : hops.before) first_.add(hierarchy.inside(), one, operation.stream);
  if (hops.between) add_staged(comm, {*hops.between});
  for (const InnerCall& one : hops.after) last_.add(hierarchy.inside(), one, operation.stream);
}

Result<void*> StreamCalls::take_scratch(const std::shared_ptr<Comm>& comm,
                                        const Operation& operation) {
  const std::size_t bytes = scratch_bytes(operation, comm->hierarchy()->nodes());
  if (bytes == 0) return static_cast<void*>(nullptr);
  Scratch one{comm, stream_of(operation)};
  const Status status = on_device_of(*comm, [&](const device::Driver& driver) {
    const auto code = driver.call.cuMemAllocAsync(&one.memory, bytes, one.stream);
    return code == device::cuda::kSuccess ? Status() : driver.error("cuMemAllocAsync", code);
  });
  if (!status.ok()) return status;
  scratch_.push_back(one);
  return reinterpret_cast<void*>(one.memory);  // NOLINT(performance-no-int-to-ptr): a device's
}

Code StreamCalls::fail_all(const Status& status) {
  const Code code = code_of_enqueue(status);
  for (const auto& comm : comms_) (void)comm->set_failure(code, status.text());
  return failed(code, status.text());
}

Code StreamCalls::run(InnerCalls& calls) {
  const Status status = calls.run();
  if (status.ok()) return kSuccess;
  return fail_all(status);
}

Code StreamCalls::enqueue_hops() {
  for (const Fork& one : forks_) {
    if (status_.ok()) status_ = tie(one, true);
  }
  Code code = status_.ok() ? run(first_) : fail_all(status_);
  if (code == kSuccess && !staged_.empty()) code = nccl::enqueue(staged_);
  if (code == kSuccess) code = run(last_);
  for (const Fork& one : forks_) {
    const Status status = code == kSuccess ? tie(one, false) : Status();
    if (!status.ok()) code = fail_all(status);
  }
  return code;
}

Code StreamCalls::enqueue_all() {
  const Code code = enqueue_hops();
  for (const Scratch& one : scratch_) {
    (void)on_device_of(*one.comm, [&](const device::Driver& driver) {
      (void)driver.call.cuMemFreeAsync(one.memory, one.stream);
      return Status();
    });
  }
  return code;
}

Code StreamCalls::enqueue() {
  std::sort(comms_.begin(), comms_.end());  // all threads take the mutexes in one order
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& comm : comms_) locks.emplace_back(comm->hierarchy()->calls());
  return enqueue_all();
}

}  // namespace leeway::nccl
