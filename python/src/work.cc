#include "work.h"

#include <nanobind/stl/shared_ptr.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "numbers.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

// Period at which a wait checks signals.
constexpr Duration kSlice = std::chrono::milliseconds(100);

// Objects that were kept by calls for which nobody waited. A callback must not wait for the GIL, so
// it asks the interpreter to drop these references. The interpreter's list of such requests is
// short. If that list is full, the next call from Python drops the references.
class Leftovers {
 public:
  void add(Kept kept) {
    const std::lock_guard lock(mutex_);
    for (nb::object& object : kept) objects_.push_back(object.release().ptr());
    if (!any_.exchange(true) && Py_IsInitialized() != 0) Py_AddPendingCall(&drop_all, nullptr);
  }
  static int drop_all(void*);
  // Drops the references. The caller holds the GIL.
  void drop() {
    if (!any_) return;
    std::vector<PyObject*> objects;
    {
      const std::lock_guard lock(mutex_);
      objects.swap(objects_);
      any_ = false;
    }
    for (PyObject* const object : objects) Py_DECREF(object);
  }

 private:
  std::mutex mutex_;
  std::vector<PyObject*> objects_;
  std::atomic<bool> any_{false};
};

// Never destroyed: calls may end while the interpreter does.
Leftovers& leftovers() {
  static auto* const all = new Leftovers;
  return *all;
}

int Leftovers::drop_all(void*) {
  leftovers().drop();
  return 0;
}

void keep_until_done(Work& work, Kept kept) {
  if (kept.empty()) return;
  // std::function copies what it holds, and references may only be copied with the GIL.
  auto* const held = new Kept(std::move(kept));
  work.on_done([held] {
    leftovers().add(std::move(*held));
    delete held;
  });
}

// Numbers of completed calls, for one event loop. The loop's selector watches the descriptor, so
// calls need neither a thread nor the GIL when they end.
class Completions {
 public:
  Completions() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0)
      throw Failure(
          Status::error(StatusCode::kResourceExhausted, "eventfd: %s", std::strerror(errno)));
  }
  ~Completions() { close(descriptor_); }
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  int descriptor() const { return descriptor_; }
  void add(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
    const std::uint64_t one = 1;
    (void)!write(descriptor_, &one, sizeof one);
  }
  std::vector<std::uint64_t> take() {
    const std::lock_guard lock(mutex_);
    std::uint64_t count = 0;
    (void)!read(descriptor_, &count, sizeof count);
    return std::exchange(numbers_, {});
  }

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;
};

// Waits until the call is done or `patience` is over; returns true if it is done. The caller holds
// the GIL. Throws the exception of a signal handler.
bool wait_interruptibly(Work& work, Duration patience) {
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    const Duration left =
        patience == no_deadline ? kSlice : patience - (std::chrono::steady_clock::now() - begun);
    bool done = false;
    {
      WithoutGil free;
      done = work.wait_for(std::min(left, kSlice));
    }
    if (done) return true;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (left <= kSlice && patience != no_deadline) return false;
  }
}

}  // namespace

PyWork::PyWork(Work work, Kept kept) : work_(std::move(work)), kept_(std::move(kept)) {
  leftovers().drop();
}

PyWork::~PyWork() {
  let_go();
}

void PyWork::let_go() {
  if (work_.valid() && !work_.done()) keep_until_done(work_, std::exchange(kept_, {}));
  kept_.clear();
}

bool PyWork::release_if(bool done) {
  if (done) kept_.clear();
  return done;
}

bool PyWork::done() {
  return release_if(work_.done());
}

bool PyWork::test() {
  bool done = false;
  {
    WithoutGil free;
    done = work_.test();
  }
  return release_if(done);
}

CollectiveReport PyWork::wait(nb::handle timeout) {
  if (!wait_interruptibly(work_, to_duration(timeout, "timeout"))) {
    PyErr_Format(PyExc_TimeoutError, "the call is not done within timeout=%R; it goes on",
                 timeout.ptr());
    throw nb::python_error();
  }
  release_if(true);
  return value_of(work_.wait());
}

CollectiveReport finish(Work work, Kept kept) {
  leftovers().drop();
  try {
    wait_interruptibly(work, no_deadline);
  } catch (...) {
    keep_until_done(work, std::move(kept));
    throw;
  }
  return value_of(work.wait());
}

namespace {

// A call's array may refer to the call, as an attribute of a subclass of numpy.ndarray. So Python's
// garbage collector must see the objects that a call keeps.
int visit_work(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const nb::object& object : nb::inst_ptr<PyWork>(self)->kept()) Py_VISIT(object.ptr());
  return 0;
}

int clear_work(PyObject* self) {
  nb::inst_ptr<PyWork>(self)->let_go();
  return 0;
}

PyType_Slot collected[] = {{Py_tp_traverse, reinterpret_cast<void*>(&visit_work)},
                           {Py_tp_clear, reinterpret_cast<void*>(&clear_work)},
                           {0, nullptr}};

}  // namespace

void bind_work(nb::module_& module) {
  nb::class_<Completions>(module, "_Completions")
      .def(nb::init<>())
      .def("fileno", &Completions::descriptor)
      .def("take", [](Completions& self) {
        nb::list numbers;
        for (const std::uint64_t number : self.take()) numbers.append(number);
        return numbers;
      });
  nb::class_<PyWork>(module, "Work", nb::type_slots(collected),
                     "A call in flight. wait() for it, ask done(), or await it in asyncio.\n\n"
                     "It keeps the call's arrays until it says that the call is done. Where it is "
                     "dropped, they\n"
                     "are kept until the call is done.")
      .def("done", &PyWork::done, "Whether wait() would return at once. Never blocks.")
      .def("test", &PyWork::test, "As done(), but takes part in the work first. Never blocks.")
      .def("wait", &PyWork::wait, nb::arg("timeout").none() = nb::none(),
           "The call's Report, when it is done; raises what it failed with. The GIL is free\n"
           "meanwhile. TimeoutError after `timeout` (seconds or \"20ms\"): the call goes on.")
      .def("_tell",
           [](PyWork& self, std::shared_ptr<Completions> completions, std::uint64_t number) {
             self.work().on_done(
                 [completions = std::move(completions), number] { completions->add(number); });
           })
      .def("__repr__", [](PyWork& self) {
        return nb::str(self.done() ? "<leeway.Work: done>" : "<leeway.Work: in flight>");
      });
}

}  // namespace leeway::python
