// Answers Prometheus by HTTP with what the drivers of this process last put up. It has threads of
// its own, and none of theirs.
//
// One server an address: all drivers of a process that name one share it. It closes with the last.
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

  // kUnavailable: nobody can listen there; kUnsupported: this build has no prometheus-cpp.
  static Result<std::shared_ptr<MetricsServer>> at(const rendezvous::MetricsAddress& address);

  // "127.0.0.1:9464", also where the system chose the port.
  virtual std::string address() const = 0;
  // Shown from now on, as long as it is there.
  virtual void show(std::weak_ptr<const Board> board) = 0;
};

}  // namespace leeway::observe
