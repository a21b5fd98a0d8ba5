// Calls in flight, and the memory that they use.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "leeway/communicator.h"

namespace leeway::python {

// Objects that must live until the call is done.
using Kept = std::vector<nanobind::object>;

// A call in flight. Keeps the arrays of the call alive until it is done, also if nobody waits for
// it.
class PyWork {
 public:
  PyWork(Work work, Kept kept);
  ~PyWork();
  PyWork(PyWork&&) noexcept = default;
  PyWork& operator=(PyWork&&) = delete;

  bool done();
  bool test();
  // Waits without the GIL. Checks signals every 0.1 s: an exception of a handler
  // (KeyboardInterrupt) ends the wait but not the call. Throws the error of the call, and
  // TimeoutError after `timeout`.
  CollectiveReport wait(nanobind::handle timeout);
  Work& work() { return work_; }
  // For the garbage collector: the objects that it keeps, and how to let them go.
  const Kept& kept() const { return kept_; }
  void let_go();

 private:
  bool release_if(bool done);

  Work work_;
  Kept kept_;
};

// Waits for a call to which no other handle exists.
CollectiveReport finish(Work work, Kept kept);

}  // namespace leeway::python
