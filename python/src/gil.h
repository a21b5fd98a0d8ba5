// Gives up and takes Python's global lock (GIL) in threads that may run while the interpreter ends.
//
// Before Python 3.14 a thread that asks for the lock while the interpreter ends is made to exit by
// pthread_exit(). That unwinds C++ frames, and destructors are noexcept, so the first one on the
// way would end the process. Here such a thread sleeps for ever instead, as it does from Python
// 3.14 on.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace leeway::python {

template <typename Take>
auto take_gil(Take take) {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// Frees the lock until the end of the block.
class WithoutGil {
 public:
  WithoutGil() : thread_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    take_gil([this] { PyEval_RestoreThread(thread_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* const thread_;
};

// Holds the lock until the end of the block, in a thread of the library.
class WithGil {
 public:
  WithGil() : state_(take_gil([] { return PyGILState_Ensure(); })) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  const PyGILState_STATE state_;
};

}  // namespace leeway::python
