// Serves Prometheus over HTTP, with the latest snapshots of this process's drivers. It has a thread
// of its own and uses none of the drivers' threads.
//
// All drivers of a process that name one address share one server. It closes when the last of them
// releases it.
#pragma once

#include <memory>
#include <string>

#include "leeway/status.h"
#include "observe/board.h"
#include "rendezvous/metrics_address.h"

namespace leeway::observe {

class MetricsServer {
 public:
  MetricsServer() = default;
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  virtual ~MetricsServer() = default;

  // Returns the server at this address, and starts it if there is none. Returns kUnavailable if the
  // address cannot be listened at, or kUnsupported if this build has no prometheus-cpp.
  static Result<std::shared_ptr<MetricsServer>> at(const rendezvous::MetricsAddress& address);

  // The address in use, such as "127.0.0.1:9464", also if the system chose the port.
  virtual std::string address() const = 0;
  // Serves this board from now on, as long as it exists.
  virtual void show(std::weak_ptr<const Board> board) = 0;
};

}  // namespace leeway::observe
