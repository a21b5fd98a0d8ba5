#include "communicator.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "arrays.h"
#include "bindings.h"
#include "collective_options.h"
#include "errors.h"
#include "gil.h"
#include "numbers.h"
#include "options.h"
#include "work.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace leeway::python {
namespace {

// One call: its arrays, kept until it is done, and its options.
class Call {
 public:
  Call(nb::handle options, const nb::kwargs& changes) : options_(merged(options, changes)) {}

  ConstTensorView in(nb::handle value, const char* what = "input") {
    return keep(to_array(value, false, what)).const_view();
  }
  TensorView out(nb::handle value, const char* what = "output") {
    return keep(to_array(value, true, what)).view();
  }
  CollectiveOptions options() const { return options_.value(); }
  Kept kept() {
    // Owner weights, the control variate and the residual lie in the options.
    kept_.push_back(nb::cast(std::move(options_)));
    return std::move(kept_);
  }

 private:
  const Array& keep(Array array) {
    kept_.push_back(array.hold);
    last_ = std::move(array);
    return last_;
  }

  CallOptions options_;
  Kept kept_;
  Array last_;
};

// Number of elements of each block; given only if blocks differ in length.
using Counts = std::optional<std::vector<std::size_t>>;

Rank to_rank(nb::handle value, const Communicator& communicator, const char* what) {
  return static_cast<Rank>(to_number(value, what, 0, communicator.size() - 1));
}

Rank to_peer(nb::handle value, const Communicator& communicator) {
  return value.is_none() ? kAnyRank : to_rank(value, communicator, "peer");
}

template <typename Number>
std::vector<Number> to_numbers(nb::handle value, const char* what) {
  std::vector<Number> numbers;
  if (nb::try_cast(value, numbers)) return numbers;
  refuse("%s: %s is no sequence of whole numbers from 0", what, nb::repr(value).c_str());
}

Counts to_counts(nb::handle value, const char* what) {
  if (value.is_none()) return std::nullopt;
  return to_numbers<std::size_t>(value, what);
}

// Each operation as a function that begins it. Blocking calls begin and wait.
using Self = const PyCommunicator&;

Work all_reduce(Self self, Call& call, nb::handle input, nb::handle output) {
  if (output.is_none())
    return self.get().all_reduce_async(call.out(input, "tensor"), call.options());
  const ConstTensorView from = call.in(input);
  return self.get().all_reduce_async(from, call.out(output), call.options());
}

Work reduce_scatter(Self self, Call& call, nb::handle input, nb::handle output,
                    nb::handle counts_given) {
  const Counts counts = to_counts(counts_given, "counts");
  const ConstTensorView from = call.in(input);
  const TensorView to = call.out(output);
  if (!counts) return self.get().reduce_scatter_async(from, to, call.options());
  return self.get().reduce_scatter_async(from, Blocks(*counts), to, call.options());
}

Work all_gather(Self self, Call& call, nb::handle input, nb::handle output,
                nb::handle counts_given) {
  const Counts counts = to_counts(counts_given, "counts");
  const ConstTensorView from = call.in(input);
  const TensorView to = call.out(output);
  if (!counts) return self.get().all_gather_async(from, to, call.options());
  return self.get().all_gather_async(from, to, Blocks(*counts), call.options());
}

Work broadcast(Self self, Call& call, nb::handle tensor, nb::handle root) {
  Communicator& communicator = self.get();
  return communicator.broadcast_async(call.out(tensor, "tensor"),
                                      to_rank(root, communicator, "root"), call.options());
}

// Output of a call in which only one rank has an output. The other ranks may give None.
TensorView out_on(bool here, Call& call, nb::handle output, DataType dtype) {
  if (!here && output.is_none()) return {nullptr, 0, dtype};
  return call.out(output);
}

Work reduce(Self self, Call& call, nb::handle input, nb::handle output, nb::handle root) {
  Communicator& communicator = self.get();
  const Rank to = to_rank(root, communicator, "root");
  const ConstTensorView from = call.in(input);
  return communicator.reduce_async(
      from, out_on(communicator.rank() == to, call, output, from.dtype), to, call.options());
}

Work gather(Self self, Call& call, nb::handle input, nb::handle output, nb::handle root) {
  Communicator& communicator = self.get();
  const Rank to = to_rank(root, communicator, "root");
  const ConstTensorView from = call.in(input);
  return communicator.gather_async(
      from, out_on(communicator.rank() == to, call, output, from.dtype), to, call.options());
}

Work scatter(Self self, Call& call, nb::handle input, nb::handle output, nb::handle root) {
  Communicator& communicator = self.get();
  const Rank from = to_rank(root, communicator, "root");
  const TensorView to = call.out(output);
  const bool here = communicator.rank() == from;
  const ConstTensorView all =
      here || !input.is_none() ? call.in(input) : ConstTensorView(nullptr, 0, to.dtype);
  return communicator.scatter_async(all, to, from, call.options());
}

Work all_to_all(Self self, Call& call, nb::handle input, nb::handle output,
                nb::handle input_counts_given, nb::handle output_counts_given) {
  const Counts input_counts = to_counts(input_counts_given, "input_counts");
  const Counts output_counts = to_counts(output_counts_given, "output_counts");
  const ConstTensorView from = call.in(input);
  const TensorView to = call.out(output);
  if (!input_counts && !output_counts) return self.get().all_to_all_async(from, to, call.options());
  if (!input_counts || !output_counts) {
    refuse("all_to_all: give both input_counts and output_counts, or neither");
  }
  return self.get().all_to_all_async(from, Blocks(*input_counts), to, Blocks(*output_counts),
                                     call.options());
}

Work send(Self self, Call& call, nb::handle tensor, nb::handle peer) {
  Communicator& communicator = self.get();
  return communicator.send_async(call.in(tensor, "tensor"), to_rank(peer, communicator, "peer"),
                                 call.options());
}

Work recv(Self self, Call& call, nb::handle tensor, nb::handle peer) {
  Communicator& communicator = self.get();
  return communicator.recv_async(call.out(tensor, "tensor"), to_peer(peer, communicator),
                                 call.options());
}

Work exchange(Self self, Call& call, nb::handle messages) {
  Communicator& communicator = self.get();
  nb::sequence given;
  if (!nb::try_cast(messages, given)) {
    refuse("exchange: %s is no list of messages", nb::repr(messages).c_str());
  }
  std::vector<Message> made;
  for (nb::handle message : given) {
    nb::tuple parts;
    if (!nb::try_cast(message, parts) || parts.size() < 3) {
      refuse("exchange: %s; give (\"send\" or \"recv\", array, peer[, tag])",
             nb::repr(message).c_str());
    }
    const std::string kind = nb::str(nb::handle(parts[0])).c_str();
    const auto tag = static_cast<std::uint32_t>(
        parts.size() > 3 ? to_number(parts[3], "tag", 0, std::numeric_limits<std::uint32_t>::max())
                         : 0);
    if (kind == "send") {
      made.push_back(Message::send(call.in(parts[1], "message"),
                                   to_rank(parts[2], communicator, "peer"), tag));
    } else if (kind == "recv") {
      made.push_back(
          Message::recv(call.out(parts[1], "message"), to_peer(parts[2], communicator), tag));
    } else {
      refuse("exchange: %s is neither \"send\" nor \"recv\"", kind.c_str());
    }
  }
  return communicator.exchange_async(made, call.options());
}

// Collectives of a communicator are numbered, and messages are not.
enum class CallKind : std::uint8_t { collective, message };

// Begins a call. A collective whose arguments cannot be read counts as a refused call.
template <typename Begin>
auto begun(Self self, CallKind kind, nb::handle options, const nb::kwargs& changes, Begin&& begin) {
  try {
    Call call(options, changes);
    Work work = begin(call);
    return std::pair(std::move(work), call.kept());
  } catch (...) {
    if (kind == CallKind::collective) self.refuse_one();
    throw;
  }
}

// Binds a blocking call and its asynchronous twin, made from one function that begins the
// operation. In Python the required arguments come first, then options, then the optional ones by
// name.
template <CallKind kind, typename... Required>
struct CallsOf {
  template <typename... Optional, typename... Names>
  static void def(nb::class_<PyCommunicator>& to, const char* name,
                  Work (*begin)(Self, Call&, Required..., Optional...), const char* text,
                  const Names&... names) {
    to.def(
        name,
        [begin](Self self, Required... required, nb::handle options, Optional... optional,
                const nb::kwargs& changes) {
          auto [work, kept] = begun(self, kind, options, changes, [&](Call& call) {
            return begin(self, call, required..., optional...);
          });
          return finish(std::move(work), std::move(kept));
        },
        names..., "changes"_a, text);
    to.def((std::string(name) + "_async").c_str(),
           [begin](Self self, Required... required, nb::handle options, Optional... optional,
                   const nb::kwargs& changes) {
             auto [work, kept] = begun(self, kind, options, changes, [&](Call& call) {
               return begin(self, call, required..., optional...);
             });
             return PyWork(std::move(work), std::move(kept));
           },
           names..., "changes"_a,
           (std::string("As ") + name +
            "(), but returns Work at once. The arrays are the call's until "
            "it is done.")
               .c_str());
  }
};
template <typename... Required>
using Calls = CallsOf<CallKind::collective, Required...>;
template <typename... Required>
using Messages = CallsOf<CallKind::message, Required...>;

void def_calls(nb::class_<PyCommunicator>& to) {
  using Any = nb::handle;
  const auto options = "options"_a.none() = nb::none();
  const nb::kw_only by_name;
  Calls<Any>::def(
      to, "all_reduce", &all_reduce,
      "The reduction over all ranks, in place, or into `output` of the same size.\n\n"
      "Options are a CollectiveOptions, single fields of it as keywords, or both:\n"
      "all_reduce(x, op=\"avg\", delivery=best_effort(\"20ms\")). Any shape; all ranks the same\n"
      "number and type of elements. Returns a Report.",
      "tensor"_a.none(), options, by_name, "output"_a.none() = nb::none());
  Calls<Any, Any>::def(
      to, "reduce_scatter", &reduce_scatter,
      "Rank i gets the reduction of block i of `input`, which has size times as many elements.\n"
      "`counts`: elements of each block, where they differ.",
      "input"_a.none(), "output"_a.none(), options, by_name, "counts"_a.none() = nb::none());
  Calls<Any, Any>::def(
      to, "all_gather", &all_gather,
      "Every rank gets all ranks' `input`, in rank order. `counts`: elements of each rank, where\n"
      "they differ. Exact only.",
      "input"_a.none(), "output"_a.none(), options, by_name, "counts"_a.none() = nb::none());
  Calls<Any, Any>::def(
      to, "broadcast", &broadcast,
      "Every rank gets the root's data, in place. The array is writable on all ranks.",
      "tensor"_a.none(), "root"_a.none(), options);
  Calls<Any, Any, Any>::def(to, "reduce", &reduce,
                            "The root gets the reduction; others may pass output=None.",
                            "input"_a.none(), "output"_a.none(), "root"_a.none(), options);
  Calls<Any, Any, Any>::def(
      to, "gather", &gather,
      "The root gets all ranks' `input`, in rank order; others may pass output=None.",
      "input"_a.none(), "output"_a.none(), "root"_a.none(), options);
  Calls<Any, Any, Any>::def(to, "scatter", &scatter,
                            "Rank i gets block i of the root's `input`; others may pass None.",
                            "input"_a.none(), "output"_a.none(), "root"_a.none(), options);
  Calls<Any, Any>::def(
      to, "all_to_all", &all_to_all,
      "Block j of rank i becomes block i of rank j. Counts: elements of each block, where they\n"
      "differ.",
      "input"_a.none(), "output"_a.none(), options, by_name, "input_counts"_a.none() = nb::none(),
      "output_counts"_a.none() = nb::none());
  Messages<Any, Any>::def(to, "send", &send,
                          "Sends to one rank; matched with its recv by order and tag.",
                          "tensor"_a.none(), "peer"_a.none(), options);
  Messages<Any, Any>::def(
      to, "recv", &recv,
      "Receives from one rank; peer=None: from whichever sends next with this tag. The report's\n"
      "messages[0] says from whom, and how many elements.",
      "tensor"_a.none(), "peer"_a.none(), options);
  Messages<Any>::def(
      to, "exchange", &exchange,
      "Any number of sends and receives as one call: a list of (\"send\" or \"recv\", array,\n"
      "peer[, tag]).",
      "messages"_a.none(), options);
}

Work barrier(Self self, nb::handle deadline) {
  const Duration patience = read_counted(self, [&] { return to_duration(deadline, "deadline"); });
  return self.get().barrier_async(patience);
}

std::unique_ptr<PyCommunicator> wrap(std::unique_ptr<Communicator> communicator) {
  if (communicator == nullptr) return nullptr;
  return std::make_unique<PyCommunicator>(std::move(communicator));
}

// Waits without the GIL, and checks signals, because a join may take a minute. `pending` is
// destroyed without the GIL, too, because its destructor joins a thread that may be in a store
// written in Python.
std::unique_ptr<PyCommunicator> wait_for(PendingCommunicator pending) {
  struct Done {
    std::mutex mutex;
    std::condition_variable woken;
    bool value = false;
  };
  const auto done = std::make_shared<Done>();
  pending.on_done([done] {
    const std::lock_guard lock(done->mutex);
    done->value = true;
    done->woken.notify_all();
  });
  for (bool over = false; !over;) {
    {
      WithoutGil free;
      std::unique_lock lock(done->mutex);
      over =
          done->woken.wait_for(lock, std::chrono::milliseconds(100), [&] { return done->value; });
    }
    if (!over && PyErr_CheckSignals() != 0) {
      const nb::python_error interrupted;
      {
        WithoutGil free;
        pending = PendingCommunicator();
      }
      throw interrupted;
    }
  }
  auto made = pending.wait();
  {
    WithoutGil free;
    pending = PendingCommunicator();
  }
  return wrap(value_of(std::move(made)));
}

std::unique_ptr<PyCommunicator> split(Self self, nb::handle color, nb::handle key) {
  const auto number = [](nb::handle value, const char* what, int least) {
    return static_cast<int>(to_number(value, what, least, std::numeric_limits<int>::max()));
  };
  const auto [chosen, order] = read_counted(self, [&] {
    return std::pair(color.is_none() ? Communicator::kNoColor : number(color, "color", 0),
                     number(key, "key", std::numeric_limits<int>::min()));
  });
  return wait_for(self.get().split_async(chosen, order));
}

// Returns whether sys.exit() ended a block, and says that all is well. That is a normal end.
bool exits_well(nb::handle error) {
  if (!nb::isinstance(error, nb::handle(PyExc_SystemExit))) return false;
  const nb::object code = error.attr("code");
  return code.is_none() || (PyLong_Check(code.ptr()) != 0 && PyObject_IsTrue(code.ptr()) == 0);
}

}  // namespace

const PyCommunicator& to_communicator(nb::handle value) {
  if (nb::isinstance<PyCommunicator>(value)) return nb::cast<const PyCommunicator&>(value);
  refuse("communicator: %s is not a leeway.Communicator", nb::repr(value).c_str());
}

namespace {

// All communicators; access needs the GIL. Never destroyed, because Python's objects may outlive
// it.
std::set<PyCommunicator*>& living() {
  static auto* const all = new std::set<PyCommunicator*>;
  return *all;
}

}  // namespace

PyCommunicator::PyCommunicator(std::unique_ptr<Communicator> communicator)
    : communicator_(std::move(communicator)) {
  living().insert(this);
}

PyCommunicator::PyCommunicator(PyCommunicator&& other) noexcept
    : communicator_(std::move(other.communicator_)) {
  living().insert(this);
}

PyCommunicator::~PyCommunicator() {
  living().erase(this);
  close();
}

void PyCommunicator::close_all() {
  std::vector<std::unique_ptr<Communicator>> all;
  for (PyCommunicator* const one : living()) {
    if (!one->closed()) all.push_back(std::move(one->communicator_));
  }
  WithoutGil free;
  std::vector<std::thread> leaving;
  try {
    for (auto& one : all) leaving.emplace_back([&one] { one.reset(); });
  } catch (const std::system_error&) {  // no more threads: the rest leave one after the other
  }
  for (std::thread& thread : leaving) thread.join();
}

void PyCommunicator::refuse_one() const {
  const TensorView nowhere(nullptr, 1, DataType::f32);
  if (communicator_ != nullptr) (void)communicator_->all_reduce_async(nowhere, nowhere, {});
}

Communicator& PyCommunicator::get() const {
  if (communicator_ != nullptr) return *communicator_;
  throw Failure(Status::error(StatusCode::kInvalidArgument, "the communicator is closed"));
}

void PyCommunicator::close() {
  if (communicator_ == nullptr) return;
  WithoutGil free;
  communicator_.reset();
}

void bind_communicator(nb::module_& module) {
  module.def("_close_all", &PyCommunicator::close_all);
  nb::class_<PyCommunicator> communicator(module, "Communicator", nb::is_weak_referenceable(),
                                          "A fixed group of ranks and the calls between them.\n\n"
                                          "All ranks make the same calls in the same order, with "
                                          "equal sizes and types. Calls may come\n"
                                          "from several threads. The GIL is free while a call "
                                          "waits. `with` leaves the group at its\n"
                                          "end, also by sys.exit(0). Where another exception ends "
                                          "the block, it aborts: peers fail at\n"
                                          "once.\n\n"
                                          "Arrays are anything with DLPack or the buffer protocol, "
                                          "contiguous in C order, of\n"
                                          "float16/32/64, int8/32/64, uint8/32/64, bool, or "
                                          "bfloat16 and FP8 by typed().\n"
                                          "Arguments that cannot be read count as a call of this "
                                          "rank, which fails on all ranks.\n"
                                          "An exception of a signal handler (KeyboardInterrupt) "
                                          "ends a wait, not the call: its\n"
                                          "arrays are the library's until the call is done.");
  communicator
      .def_static(
          "create",
          [](const nb::kwargs& options) {
            return wait_for(Communicator::create_async(options_from(options)));
          },
          "Joins a group: the environment's, or its launcher's (torchrun, mpirun, srun), with "
          "these\n"
          "options changed: rank, world_size, rendezvous=\"host:port\", transport, secret_file, "
          "rate,\n"
          "seed, faults=\"loss=0.1\", join_timeout, ... Waits for all ranks; UnavailableError "
          "names\n"
          "those that are missing.")
      .def_static(
          "create_inproc",
          [](int size, const nb::kwargs& options) {
            auto made = value_of(Communicator::create_inproc(size, options_from(options)));
            std::vector<PyCommunicator> all;
            for (auto& one : made) all.emplace_back(std::move(one));
            nb::list list;
            for (PyCommunicator& one : all) list.append(nb::cast(std::move(one)));
            return list;
          },
          "size"_a, "options"_a,
          "`size` communicators that are connected inside this process: rank i is element i. Each\n"
          "wants a thread of its own, since calls wait for each other.")
      .def_prop_ro(
          "rank", [](Self self) { return self.get().rank(); }, "of this process, from 0")
      .def_prop_ro(
          "size", [](Self self) { return self.get().size(); }, "ranks of the group")
      .def_prop_ro("closed", &PyCommunicator::closed)
      .def_prop_ro("datagram_bytes", [](Self self) { return self.get().datagram_bytes(); })
      .def_prop_ro("transport",
                   [](Self self) { return std::string(to_string(self.get().transport())); })
      .def_prop_ro(
          "options", [](Self self) { return shown(self.get().options()); },
          "as it was made, as a dict")
      .def_prop_ro(
          "state", [](Self self) { return std::string(to_string(self.get().state())); },
          "\"ok\", \"peer_lost\" if a rank is dead, \"cancelled\" after abort(), ... A rank that "
          "has left\n"
          "is not dead: see peer_left.")
      .def_prop_ro(
          "peer_left", [](Self self) { return self.get().peer_left(); },
          "Whether a rank has closed, aborted or ended: exact collectives fail from then on.")
      .def(
          "counters",
          [](Self self) {
            nb::dict rows;
            for (const auto& [name, count] : self.get().counters()) rows[name.c_str()] = count;
            return rows;
          },
          "Counts since creation: datagrams refused by reason, rounds, repairs, ...")
      .def(
          "split",
          [](Self self, nb::handle color, nb::handle key) { return split(self, color, key); },
          "color"_a.none(), "key"_a.none() = 0,
          "A communicator of the ranks that give the same color, in the order of their keys. All\n"
          "ranks call it. color=None: of no group, returns None.")
      .def(
          "shrink",
          [](Self self, nb::handle excluded) {
            return wait_for(self.get().shrink_async(to_numbers<Rank>(excluded, "excluded")));
          },
          "excluded"_a.none(),
          "A communicator without these ranks, which may be dead and do not call.")
      .def(
          "abort", [](Self self) { self.get().abort(); }, nb::call_guard<WithoutGil>(),
          "Everything in flight fails at once with CancelledError, and so does what comes later.")
      .def("close", &PyCommunicator::close,
           "Leaves the group, within a few round trips where peers answer. Nothing can be called\n"
           "afterwards.")
      .def("__enter__", [](nb::object self) { return self; })
      .def(
          "__exit__",
          [](PyCommunicator& self, nb::handle type, nb::handle value, nb::handle) {
            // Aborts if the block failed: peers must not wait for data that this rank will not
            // send.
            if (!type.is_none() && !exits_well(value) && !self.closed()) {
              WithoutGil free;
              self.get().abort();
            }
            self.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def(
          "barrier",
          [](Self self, nb::handle deadline) { return finish(barrier(self, deadline), {}); },
          "deadline"_a.none() = 60.0, "Returns when all ranks have called it.")
      .def(
          "barrier_async",
          [](Self self, nb::handle deadline) { return PyWork(barrier(self, deadline), {}); },
          "deadline"_a.none() = 60.0)
      .def("__repr__", [](Self self) {
        if (self.closed()) return std::string("<leeway.Communicator: closed>");
        const Communicator& open = self.get();
        return "<leeway.Communicator: rank " + std::to_string(open.rank()) + " of " +
               std::to_string(open.size()) + " over " + std::string(to_string(open.transport())) +
               ">";
      });
  def_calls(communicator);
}

}  // namespace leeway::python
