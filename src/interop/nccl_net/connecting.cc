#include "interop/nccl_net/connecting.h"

#include <utility>

#include "interop/nccl/member.h"

namespace leeway::nccl_net {
namespace {

constexpr int kRanks = 2;
constexpr int kReceiver = 0;
constexpr int kSender = 1;

// Time for the listener's process to answer. It was there when it made the handle, so silence means
// that the process is gone or that no path leads to it. The process may accept the connection at
// any later time.
constexpr auto kReachTime = std::chrono::seconds(30);

}  // namespace

Connecting::Connecting(const nccl::UniqueId& id, const nccl::Settings& settings, const char* verb)
    : label_(std::string(verb) + " " + id.places().front()),
      deadline_(settings.timeout),
      reached_by_(std::chrono::steady_clock::now() + kReachTime) {}

Result<std::unique_ptr<Connecting>> Connecting::accept(const nccl::UniqueId& id,
                                                       const nccl::Settings& settings,
                                                       std::shared_ptr<Rendezvous> store) {
  std::unique_ptr<Connecting> made(new Connecting(id, settings, "connection accepted at"));
  if (Status status = made->begin(id, settings, kReceiver, std::move(store)); !status.ok())
    return status;
  return made;
}

Result<std::unique_ptr<Connecting>> Connecting::connect(const nccl::UniqueId& id,
                                                        const nccl::Settings& settings) {
  std::unique_ptr<Connecting> made(new Connecting(id, settings, "connection to"));
  made->reach_ = std::make_shared<Reach>(id);
  if (Status status = made->begin(id, settings, kSender, made->reach_); !status.ok()) return status;
  return made;
}

Status Connecting::begin(const nccl::UniqueId& id, const nccl::Settings& settings, int rank,
                         std::shared_ptr<Rendezvous> store) {
  auto options = nccl::member_options(settings, kRanks, rank);
  if (!options.ok()) return options.status();
  nccl::seal_by(id, settings, *options);
  place_ = std::make_shared<nccl::Place>(std::move(store), id.places().front(), nullptr);
  options->store = place_;
  options->rendezvous = place_->address();
  options->communicator_name = "nccl-net-" + id.name();
  join_timeout_ = options->join_timeout;
  pending_ = Communicator::create_async(*options);
  return Status();
}

Result<std::unique_ptr<Connection>> Connecting::poll() {
  if (communicator_ == nullptr) {
    if (!pending_.done()) {
      if (reach_ == nullptr || reach_->reached() || std::chrono::steady_clock::now() < reached_by_)
        return std::unique_ptr<Connection>();
      return Status::error(StatusCode::kUnavailable, "%s: nobody answers there", label_.c_str());
    }
    auto made = pending_.wait();
    if (!made.ok()) return made.status();
    communicator_ = std::move(*made);
    met_ = communicator_->barrier_async(join_timeout_);
  }
  if (!met_.test()) return std::unique_ptr<Connection>();
  if (const auto met = met_.wait(); !met.ok()) return met.status();
  place_->leave();
  return std::make_unique<Connection>(std::move(communicator_), label_, deadline_);
}

}  // namespace leeway::nccl_net
