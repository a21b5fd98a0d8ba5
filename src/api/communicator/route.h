// One way by which the calls of a communicator go: through memory that all ranks map
// (near_route.h), inside sites and then between them (site_route.h), or as datagrams
// (datagram_route.h).
//
// A communicator has a list of routes in order of preference, and the last one takes every call.
// Which route takes a call follows from what all ranks know alike, so that all choose the same one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driving/channel.h"

namespace leeway::internal {

using driving::Channel;
using driving::WorkState;

// Numbers the collectives of one communicator, whatever route each takes. If one call takes
// different routes on different ranks, the next call therefore has the same number on all ranks
// again. Messages have no number here, since not all ranks make equally many.
struct CallOrder {
  // A route that queues calls holds the lock from taking a place until the call is in the queue.
  std::mutex mutex;
  std::uint64_t taken = 0;  // places that are taken: 0 and up
};

class Route {
 public:
  Route() = default;
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;
  virtual ~Route() = default;

  // Returns true if all ranks send this call by this route. Calls with wrong arguments are started
  // only on the last route of the list.
  virtual bool takes(const collective::OperationSpec& spec) const = 0;
  // Returns true if the route itself takes the places of its calls from the CallOrder.
  virtual bool takes_places() const { return false; }

  // Holds the place of a call that may yet take this route, so that later calls can start. Returns
  // the call's stand-ins. A call that is started at the place replaces the stand-ins; else
  // Driver::end() ends them. Makes no callbacks.
  using StandIns = std::vector<std::shared_ptr<WorkState>>;
  virtual StandIns hold(const collective::OperationSpec& spec, Channel::Place place) = 0;
  // Starts a call for a caller that does not wait. `place`: as collective::Request::place. Any
  // thread, also in a callback.
  virtual std::shared_ptr<WorkState> start(const collective::OperationSpec& spec,
                                           Channel::Place place) = 0;
  // Runs a call for a caller that waits. Not in a callback.
  virtual Result<CollectiveReport> run(const collective::OperationSpec& spec,
                                       Channel::Place place) {
    return driving::Driver::wait(*start(spec, place));
  }

  // Fails all calls of this route, now and later. `how`: the reason, for texts. Any thread.
  virtual void abort(const char* how) = 0;
  // Lets current calls end as Channel's destructor does, and begins no more. Appends functions to
  // `closing` that wait for peers. They run together, so that all routes leave at the same time.
  virtual void close(std::vector<std::function<void()>>& closing) = 0;
  virtual void add_counters(Channel::Counters& rows) = 0;
};

}  // namespace leeway::internal
