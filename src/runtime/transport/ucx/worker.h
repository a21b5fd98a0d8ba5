// UCP's objects of one rank: the context (devices and settings) and the worker (endpoints,
// progress, event descriptor).
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <vector>

#include "leeway/status.h"

namespace leeway::transport {

class UcxWorker {
 public:
  UcxWorker() = default;
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  Status open();

  ucp_context_h context() const { return context_; }
  ucp_worker_h get() const { return worker_; }
  int event_descriptor() const { return event_; }

  // Largest datagram in bytes that every device of this host takes in one piece. For a datagram of
  // several pieces UCX would allocate memory and copy the pieces together.
  std::size_t datagram_bytes_max() const { return datagram_bytes_max_; }

  // Returns the address that ucp_ep_create() of a peer needs.
  Result<std::vector<std::byte>> address() const;

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_ = -1;
  std::size_t datagram_bytes_max_ = 0;
};

}  // namespace leeway::transport
