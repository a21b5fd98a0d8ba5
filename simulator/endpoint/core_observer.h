// Interface for checkers that watch the core endpoints. Each communicator has its own observer.
// Ranks are those of the observer's communicator. Calls come in the order of events.
#pragma once

#include "base/time.h"
#include "endpoint/endpoints.h"
#include "leeway/types.h"

namespace leeway::collective {
class Engine;
}

namespace leeway::sim {

class CoreObserver {
 public:
  virtual ~CoreObserver() = default;

  // The rank has become a member. Not called for communicators that exist from the run's start.
  virtual void on_open(std::uint32_t, const collective::Engine&) {}

  // A datagram reached no member of the process. Called for the first communicator's observer only.
  virtual void on_stray(Instant, std::uint32_t /*process*/) {}

  // A datagram from `from` never reaches `rank`, or may not reach it. The datagram may have been
  // one of this communicator.
  virtual void on_lost(std::uint32_t /*rank*/, std::uint32_t /*from*/) {}

  // A rank submits a call. The engine has not seen the call, so its buffers are still unchanged.
  virtual void on_submit(Instant now, std::uint32_t rank, const Call& call) = 0;

  // A datagram is about to be handed to the engine of `rank`. For a datagram in a paused rank's
  // socket, this is when the rank reads it.
  virtual void on_datagram(Instant now, std::uint32_t rank, std::uint32_t from,
                           ByteSpan datagram) = 0;

  // The call is over and its buffers hold the result; the client has not been told yet.
  virtual void on_done(Instant now, std::uint32_t rank, const Call& call,
                       const CallResult& result) = 0;

  // The engine has handled all events of this instant.
  virtual void on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) = 0;
};

}  // namespace leeway::sim
