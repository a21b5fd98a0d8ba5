// The communicator as Python has it.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "leeway/communicator.h"

namespace leeway::python {

// Holds a communicator until close(), or its end.
class PyCommunicator {
 public:
  explicit PyCommunicator(std::unique_ptr<Communicator> communicator)
      : communicator_(std::move(communicator)) {}
  ~PyCommunicator() { close(); }
  PyCommunicator(PyCommunicator&&) noexcept = default;
  PyCommunicator& operator=(PyCommunicator&&) = delete;

  // Throws after close().
  Communicator& get() const;
  bool closed() const { return communicator_ == nullptr; }
  // Leaves the group, without the GIL.
  void close();

 private:
  std::unique_ptr<Communicator> communicator_;
};

void bind_communicator(nanobind::module_& module);

}  // namespace leeway::python
