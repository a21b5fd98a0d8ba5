// The order of one communicator's operations, and the thread that hands their steps to the network.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "device/signal.h"
#include "device/transfer.h"

namespace leeway::device {

class Device;

// An enqueued step that the network has not begun, because its input is not ready yet.
struct Pending {
  Site site;
  std::function<void(std::byte*, std::function<void()>)> run;
  std::shared_ptr<StepKernels> kernels;
};

// The steps of one communicator on one device. They begin in the order in which they were enqueued,
// and steps of graphs in the order in which streams reach them.
class Lane {
 public:
  // `inputs`: a stream for copies into staging. `captured`: an event. Both belong only to this
  // lane.
  Lane(Device& device, cuda::Stream inputs, cuda::Event captured)
      : device_(device), inputs_(inputs), captured_(captured) {}
  // Gives the stream and the event back to the device. Makes no call of CUDA.
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  Device& device() const { return device_; }
  cuda::Stream inputs() const { return inputs_; }

 private:
  friend class Progress;
  friend class Enqueue;
  friend class Capture;

  Device& device_;
  const cuda::Stream inputs_;
  // State of Progress, under its mutex.
  std::deque<Pending> called_;
  std::deque<Pending> replayed_;
  bool listed_ = false;
  bool ended_ = false;
  // State of Enqueue, under the stager's mutex: steps whose outputs may not have been copied yet.
  std::deque<Signal> in_flight_;
  // State of Capture: the id of the capture that has the lane's last captured operation, and an
  // event behind the inputs of that operation.
  unsigned long captured_in_ = 0;
  const cuda::Event captured_;
};

// A thread that checks whether streams wrote that an input is ready, and begins that step. It makes
// no call of CUDA. It sleeps while no lane has a step, and between looks. The more looks were
// without result, the longer it sleeps.
class Progress {
 public:
  // Starts the thread, once. Returns kResourceExhausted if no thread can be had. exit() ends the
  // thread; steps that did not begin are dropped then.
  Status start();
  void add(const std::shared_ptr<Lane>& lane, Pending step);
  // Adds the steps of an operation that a graph's stream has reached. Never blocks, so a host
  // function may call it.
  void add_replay(const std::shared_ptr<Lane>& lane, const std::vector<Pending>& steps);
  // Drops all steps that did not begin, and those that are added later. Streams that wait for them
  // go on.
  void end(Lane& lane);
  // Waits until all steps that add() took have begun. Steps of graphs (add_replay()) are not waited
  // for.
  void wait_begun(const Lane& lane);

 private:
  void loop(const std::stop_token& stop);
  bool take_ready(std::vector<Pending>& out);
  // The caller must hold the mutex.
  void list(const std::shared_ptr<Lane>& lane);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable begun_;
  bool over_ = false;                         // the process is ending
  bool beginning_ = false;                    // some steps have left their lane, and are beginning
  std::vector<std::shared_ptr<Lane>> lanes_;  // lanes with steps that have not begun
  Thread thread_;
};

}  // namespace leeway::device
