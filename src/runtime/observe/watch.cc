#include "observe/watch.h"

#include <utility>

#include "driving/channel.h"
#include "observe/board.h"
#include "observe/metrics_server.h"
#include "observe/operator_log.h"
#include "observe/trace.h"
#include "transport/udp/udp_transport.h"

namespace leeway::observe {
namespace {

using rendezvous::Log;
using rendezvous::LogLevel;

class Watcher final : public driving::Observer {
 public:
  Watcher(const Options& options, const Log& log, std::function<bool()> segmentation)
      : log_(log.level(), log.rank()),
        lines_(log_, {.injected_losses = options.faults.any(),
                      .buffer_bytes = options.socket_buffer_bytes != 0
                                          ? options.socket_buffer_bytes
                                          : transport::UdpOptions().socket_buffer_bytes}),
        segmentation_(std::move(segmentation)),
        segmented_(segmentation_ && segmentation_()),
        trace_(Trace::of(options)) {}

  void serve(std::shared_ptr<MetricsServer> server) {
    server_ = std::move(server);
    board_ = std::make_shared<Board>();
    server_->show(board_);
  }

  void on_snapshot(const driving::Snapshot& snapshot) override {
    lines_.look(snapshot);
    if (segmented_ && !segmentation_()) {
      segmented_ = false;
      lines_.lost_segmentation();
    }
    if (board_ != nullptr) board_->put(snapshot, book_.calls());
    if (trace_ != nullptr) trace_->look(snapshot);
  }
  void on_done(const std::string& channel, const collective::Request& request) override {
    if (board_ != nullptr) book_.add(channel, request);
    if (trace_ != nullptr) trace_->done(driving::steady_now(), request);
  }

 private:
  Log log_;
  OperatorLog lines_;
  const std::function<bool()> segmentation_;
  bool segmented_;
  const std::shared_ptr<Trace> trace_;     // set if the options ask for a trace
  std::shared_ptr<MetricsServer> server_;  // set if metrics are on
  std::shared_ptr<Board> board_;
  CallBook book_;
};

Result<std::shared_ptr<MetricsServer>> open_server(const Options& options) {
  const auto address = rendezvous::parse_metrics_address(options.metrics);
  if (!address.ok()) return address.status();
  return MetricsServer::at(*address);
}

}  // namespace

void watch(driving::Driver& driver, const Options& options, Log& log,
           std::function<bool()> segmentation) {
  if ((options.metrics.empty() && options.trace.empty() && !log.enabled(LogLevel::error)) ||
      driver.observed())
    return;
  auto watcher = std::make_shared<Watcher>(options, log, std::move(segmentation));
  if (!options.metrics.empty()) {
    auto server = open_server(options);
    if (server.ok()) {
      log.print(LogLevel::info, "metrics", "metrics at http://%s/metrics",
                (*server)->address().c_str());
      watcher->serve(std::move(*server));
    } else {
      log.print(LogLevel::warn, "no metrics", "no metrics: %s", server.status().c_str());
    }
  }
  driver.observe(std::move(watcher));
}

void log_joined(const driving::Channel& channel, const Options& options, bool sealed, Log& log) {
  const protocol::EndpointConfig& config = channel.config();
  std::string control(to_string(options.congestion));
  if (options.rate_bits_per_second != 0)
    control += " at " + std::to_string(options.rate_bits_per_second) + " b/s";
  log.print(LogLevel::info, "joined",
            "joined \"%s\": rank %u of %d over %s, %s, datagrams of %zu bytes, congestion control "
            "%s",
            options.communicator_name.c_str(), config.self, config.size,
            std::string(to_string(channel.kind())).c_str(), sealed ? "sealed" : "not sealed",
            config.datagram_bytes, control.c_str());
}

}  // namespace leeway::observe
