#include "observe/watch.h"

#include <utility>

#include "observe/board.h"
#include "observe/metrics_server.h"

namespace leeway::observe {
namespace {

using rendezvous::Log;
using rendezvous::LogLevel;

class Watcher final : public driving::Observer {
 public:
  explicit Watcher(std::shared_ptr<MetricsServer> server)
      : server_(std::move(server)), board_(std::make_shared<Board>()) {
    server_->show(board_);
  }

  void on_snapshot(const driving::Snapshot& snapshot) override {
    board_->put(snapshot, book_.calls());
  }
  void on_done(const std::string& channel, const collective::Request& request) override {
    book_.add(channel, request);
  }

 private:
  const std::shared_ptr<MetricsServer> server_;
  const std::shared_ptr<Board> board_;
  CallBook book_;
};

Result<std::shared_ptr<MetricsServer>> open_server(const Options& options) {
  const auto address = rendezvous::parse_metrics_address(options.metrics);
  if (!address.ok()) return address.status();
  return MetricsServer::at(*address);
}

}  // namespace

void watch(driving::Driver& driver, const Options& options, Log& log) {
  if (options.metrics.empty() || driver.observed()) return;
  auto server = open_server(options);
  if (!server.ok()) {
    log.print(LogLevel::warn, "metrics", "no metrics: %s", server.status().c_str());
    return;
  }
  log.print(LogLevel::info, "metrics", "metrics at http://%s/metrics",
            (*server)->address().c_str());
  driver.observe(std::make_shared<Watcher>(std::move(*server)));
}

}  // namespace leeway::observe
