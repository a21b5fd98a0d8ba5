// Interface for checkers that watch the core endpoints. Each communicator has its own observer;
// ranks are those of its communicator. Calls come in the order of events.
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

  // The rank has become a member. Not called for communicators that exist from the start of the
  // run.
  virtual void on_open(std::uint32_t, const collective::Engine&) {}

  // A datagram reached no member of the process. Called for the first communicator's observer only.
  virtual void on_stray(Instant, std::uint32_t /*process*/) {}

  // A datagram from `from` never reaches `rank`. It may have been one of this communicator.
  virtual void on_lost(std::uint32_t /*rank*/, std::uint32_t /*from*/) {}

  // Called before the engine sees the call, so its buffers are as the caller gave them.
  virtual void on_submit(Instant now, std::uint32_t rank, const Call& call) = 0;

  // Called before the engine of `rank` sees the datagram. For a datagram in a paused rank's socket
  // that is when the rank reads it.
  virtual void on_datagram(Instant now, std::uint32_t rank, std::uint32_t from,
                           ByteSpan datagram) = 0;

  // The call is over and its buffers hold the result; the client has not been told yet.
  virtual void on_done(Instant now, std::uint32_t rank, const Call& call,
                       const CallResult& result) = 0;

  // The engine has handled everything of this instant.
  virtual void on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) = 0;
};

}  // namespace leeway::sim
