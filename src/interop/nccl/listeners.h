// Listeners where the groups of this process's unique ids meet. Each id has one listener, in the
// process that made the id. That process need not become a rank.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "base/per_process.h"
#include "interop/nccl/place.h"
#include "interop/nccl/settings.h"
#include "interop/nccl/unique_id.h"
#include "leeway/options.h"
#include "leeway/rendezvous.h"

namespace leeway::nccl {

// Time that a listener waits for its group, and a rank for the other ranks.
inline constexpr Duration kMeetingTime = std::chrono::minutes(10);

class Listeners {
 public:
  // Makes an id, and opens a listener for it.
  Result<UniqueId> open(const Settings& settings);
  // Returns the place where the id's group meets: this process's own listener, or a connection to
  // an address of the id. Leaving the place closes the listener. An id of NCCL_COMM_ID is made by
  // every process, so for such an id rank 0 opens the listener here. The options then say who may
  // connect.
  Result<std::shared_ptr<Place>> reach(const UniqueId& id, const Options& options, bool rank_0);

 private:
  struct Listener {
    std::shared_ptr<TcpRendezvous> server;
    std::chrono::steady_clock::time_point end;
  };
  struct State {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::map<std::string, Listener> open;
    // If true, there is a thread that closes listeners after kMeetingTime. It ends with the last
    // listener.
    bool watched = false;
  };
  static void expire(State& state, const std::stop_token& stop);
  static void close(State& state, const std::string& name);

  PerProcess<State> state_;
};

}  // namespace leeway::nccl
