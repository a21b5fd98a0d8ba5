// Interface to watch the core endpoints from outside: checkers, one for each communicator. Ranks
// are those of the communicator. All calls are in the order of events.
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

  // The rank has become a member. Not called for communicators that are there from the start.
  virtual void on_open(std::uint32_t, const collective::Engine&) {}

  // A datagram reached no member of any communicator of the process. Only the first communicator's
  // observer is told.
  virtual void on_stray(Instant, std::uint32_t /*process*/) {}

  // A datagram of `from`, which may have been one of this communicator's, never reaches `rank`.
  virtual void on_lost(std::uint32_t /*rank*/, std::uint32_t /*from*/) {}

  // `call.spec` and the buffers it names are as the caller gave them: before the engine sees them.
  virtual void on_submit(Instant now, std::uint32_t rank, const Call& call) = 0;

  // Called before the engine of `rank` sees the datagram. Datagrams in a paused rank's socket are
  // told when the rank reads them.
  virtual void on_datagram(Instant now, std::uint32_t rank, std::uint32_t from,
                           ByteSpan datagram) = 0;

  // The call is over and its buffers hold the result; the client has not been told yet.
  virtual void on_done(Instant now, std::uint32_t rank, const Call& call,
                       const CallResult& result) = 0;

  // The engine has handled everything of this instant.
  virtual void on_pumped(Instant now, std::uint32_t rank, const collective::Engine& engine) = 0;
};

}  // namespace leeway::sim
