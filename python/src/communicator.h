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
  // Makes a collective call that every route refuses, in place of a call of this rank whose
  // arguments cannot be read. It takes that call's number, and fails on the peers. Otherwise the
  // peers would match their call with this rank's next one. Does nothing after close().
  void refuse_one() const;
  // Called when the interpreter ends. Leaves all groups at the same time, so that no peer takes
  // this process for dead.
  static void close_all();

 private:
  std::unique_ptr<Communicator> communicator_;
};

// Returns the communicator that an argument is. Throws InvalidArgument if it is none.
const PyCommunicator& to_communicator(nanobind::handle value);

// Reads the arguments of a collective call. If they cannot be read, makes a refused call instead.
template <typename Read>
auto read_counted(const PyCommunicator& communicator, const Read& read) {
  try {
    return read();
  } catch (...) {
    communicator.refuse_one();
    throw;
  }
}

}  // namespace leeway::python
