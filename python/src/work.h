// Calls in flight, and the memory that they use.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "leeway/communicator.h"

namespace leeway::python {

// Objects that must live until the call is done.
using Kept = std::vector<nanobind::object>;

// A call in flight. Keeps the arrays of the call until it is done, also where nobody waits for it.
class PyWork {
 public:
  PyWork(Work work, Kept kept);
  ~PyWork();
  PyWork(PyWork&&) noexcept = default;
  PyWork& operator=(PyWork&&) = delete;

  bool done() const { return work_.done(); }
  bool test();
  // Without the GIL, but for signals, which it looks at every tenth of a second: an exception of a
  // handler (KeyboardInterrupt) ends the wait and not the call. Throws what the call failed with,
  // and TimeoutError after `timeout`.
  CollectiveReport wait(nanobind::handle timeout);
  Work& work() { return work_; }

 private:
  void release_if_done();

  Work work_;
  Kept kept_;
};

// Waits for one that nobody else has a handle of.
CollectiveReport finish(Work work, Kept kept);

void bind_work(nanobind::module_& module);

}  // namespace leeway::python
