// The calls of a library interface (C++, C or NCCL) that a program's interpreter makes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "leeway/communicator.h"
#include "programs/program.h"
#include "programs/values.h"

namespace leeway::programs {

using Outcome = Result<CollectiveReport>;

struct Call {
  const Step* step = nullptr;
  int rank = 0;  // in the communicator
  int size = 1;
  const Extent* extent = nullptr;
  ConstTensorView input{nullptr, 0, DataType::f32};
  TensorView output{nullptr, 0, DataType::f32};
  std::vector<Message> messages;
};

class Flight {
 public:
  virtual ~Flight() = default;
  virtual bool test() = 0;
  virtual bool wait_for(Duration patience) = 0;
  virtual Outcome wait() = 0;
  virtual void on_done(std::function<void()> callback) = 0;
};

class Comm {
 public:
  virtual ~Comm() = default;
  virtual Outcome run(const Call& call) = 0;
  virtual std::unique_ptr<Flight> start(const Call& call) = 0;
  // Returns null for a rank without a color.
  virtual Result<std::unique_ptr<Comm>> split(int color, int key, Way::How how) = 0;
  virtual Result<std::unique_ptr<Comm>> shrink(std::span<const Rank> excluded, Way::How how) = 0;
  // The memory lives as long as this object.
  virtual Result<MutableByteSpan> allocate(std::size_t bytes) = 0;
  virtual void abort() = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
};

class Library {
 public:
  virtual ~Library() = default;
  virtual Result<std::unique_ptr<Comm>> create(const Options& options, Way::How how) = 0;
  virtual Result<std::vector<std::unique_ptr<Comm>>> create_inproc(int size,
                                                                   const Options& options) = 0;
  // Starts to join a group that no other rank joins. The attempt goes on until the result is
  // destroyed.
  virtual std::shared_ptr<void> join(const Options& options) = 0;
};

struct Meeting {
  std::string address;
  std::shared_ptr<Rendezvous> store;  // threads only
  std::string name;                   // group name
  std::string folder;                 // a folder for this group alone
  std::string secret_file;            // in `folder`
  std::string log_level = "off";
};

// Returns the interface that the program uses, or null if this executable does not have it.
std::unique_ptr<Library> library_of(const Program& program, const Meeting& meeting);
std::unique_ptr<Library> cpp_library();
std::unique_ptr<Library> c_library(const Meeting& meeting, bool sealed);
std::unique_ptr<Library> nccl_library(const Program& program, const Meeting& meeting);

// Deadline that is so long that it should cut no call.
inline constexpr std::chrono::seconds kLongDeadline(10);

// Returns the options of a step's call, in C++'s form.
CollectiveOptions options_of(const Step& step, int rank);
// Makes a call with invalid arguments, which the step's salt chooses.
Outcome make_wrong_call(Communicator& communicator, const Step& step);

}  // namespace leeway::programs
