// The double's devices: the queues of their streams, and the threads that do the work.
//
// Each device is a thread. By a seeded choice, it picks one of the streams whose next work can
// begin, and now and then delays a stream. If the device has one connection, it does all work in
// the order of the calls. Work that cannot begin then holds up the work of all other streams behind
// it. Host functions run on one thread, as with CUDA.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "support/cuda_double/control.h"
#include "support/cuda_double/graph.h"

namespace cuda_double {

struct Event {
  // Becomes true when the stream reaches the last record of this event. Waiters keep the pointer,
  // so they wait for the same record even if the event is recorded again.
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
  std::shared_ptr<Capture> capture;  // capture in which the last record was made, if any
  std::vector<std::size_t> tips;
};

struct Stream {
  int device = 0;
  std::deque<Entry> queue;
  std::uint64_t enqueued = 0;
  std::uint64_t completed = 0;
  bool busy = false;  // busy with a function of the host, or on the device's thread
  int lies_for = 0;   // picks for which the stream is delayed
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> tips;  // nodes after which the next one comes
};

class Machine {
 public:
  explicit Machine(CudaDoubleSettings settings);

  std::shared_ptr<Stream> make_stream(int device);
  // Adds the work to the queue, or to the graph if the stream is being captured. Blocks while the
  // queue is full.
  void enqueue(const std::shared_ptr<Stream>& stream, Work work);
  void record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream);
  int wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event);
  void synchronize(const Stream& stream);
  void synchronize(int device);

  int begin_capture(const std::shared_ptr<Stream>& stream, int mode);
  int end_capture(const std::shared_ptr<Stream>& stream, std::shared_ptr<GraphBody>& out);
  std::shared_ptr<Capture> capture_of(const Stream& stream);
  // Returns true if some thread is capturing in a mode that forbids calls that may wait.
  bool guarded();

  void configure(const CudaDoubleSettings& settings);
  bool stream_waits();

 private:
  // Limit on a queue's length. Calls block while the queue is full, as with CUDA.
  static constexpr std::size_t kQueueMax = 1024;

  // A piece of work that can begin now.
  struct Pick {
    std::shared_ptr<Stream> stream;
    std::size_t node = 0;  // index of the node in a graph
  };
  void device_loop(int device);
  void host_loop();
  void start(int device);
  std::vector<Pick> picks(int device);
  void add_picks(const std::shared_ptr<Stream>& stream, std::vector<Pick>& out);
  void perform(const Pick& pick, std::unique_lock<std::mutex>& lock);
  void finish(const Pick& pick, std::unique_lock<std::mutex>& lock);
  std::size_t queued(const Stream& stream) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  CudaDoubleSettings settings_;
  std::mt19937_64 random_;
  std::vector<std::shared_ptr<Stream>> streams_;
  std::vector<bool> started_;
  bool host_started_ = false;
  struct HostCall {
    Pick pick;
    std::function<void()> run;
  };
  std::deque<HostCall> host_calls_;
  std::uint64_t sequence_ = 0;
  std::uint64_t captures_ = 0;
  int guarded_ = 0;
};

}  // namespace cuda_double
