// The communicator as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "leeway/communicator.h"

namespace leeway::python {

// Holds a communicator until close(), or its end.
class PyCommunicator {
 public:
  explicit PyCommunicator(std::unique_ptr<Communicator> communicator);
  ~PyCommunicator();
  PyCommunicator(PyCommunicator&& other) noexcept;
  PyCommunicator& operator=(PyCommunicator&&) = delete;

  // Throws after close().
  Communicator& get() const;
  bool closed() const { return communicator_ == nullptr; }
  // Leaves the group, without the GIL.
  void close();
  // As the interpreter ends: leaves all groups at the same time, so that no peer takes this process
  // for dead.
  static void close_all();

 private:
  std::unique_ptr<Communicator> communicator_;
};

void bind_communicator(nanobind::module_& module);

}  // namespace leeway::python
