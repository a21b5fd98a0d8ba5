// The communicator of the Python interface.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "leeway/communicator.h"

namespace leeway::python {

// Holds a communicator until close() or destruction.
class PyCommunicator {
 public:
  explicit PyCommunicator(std::unique_ptr<Communicator> communicator);
  ~PyCommunicator();
  PyCommunicator(PyCommunicator&& other) noexcept;
  PyCommunicator& operator=(PyCommunicator&&) = delete;

  // The communicator. Throws after close().
  Communicator& get() const;
  bool closed() const { return communicator_ == nullptr; }
  // Leaves the group, without the GIL.
  void close();
  // Called when the interpreter ends. Leaves all groups at the same time, so that no peer takes
  // this process for dead.
  static void close_all();

 private:
  std::unique_ptr<Communicator> communicator_;
};

void bind_communicator(nanobind::module_& module);

}  // namespace leeway::python
