#include "rendezvous/client.h"

#include <algorithm>
#include <asio/write.hpp>
#include <thread>

#include "leeway/version.h"
#include "rendezvous/agreement.h"
#include "rendezvous/lane_agreement.h"
#include "wire/packet.h"

namespace leeway::rendezvous {
namespace {

using asio::ip::tcp;

// Rank 0 usually starts within milliseconds of us, but may take a minute: from quick to patient.
constexpr Duration kRetryFirst = std::chrono::milliseconds(10);
constexpr Duration kRetryMax = std::chrono::milliseconds(500);

// One connection attempt to an address that does not even refuse.
constexpr Duration kConnectMax = std::chrono::seconds(2);

}  // namespace

Result<Group> RendezvousClient::run() {
  const auto where = parse_host_port(local_.rendezvous);
  if (!where.ok()) return where.status();
  deadline_ = Clock::now() + local_.join_timeout;
  Duration pause = kRetryFirst;
  while (true) {
    if (auto outcome = attempt(*where)) return *outcome;
    // The last attempt keeps a little time for itself, so that it can fail for its own reason.
    const Duration left = deadline_ - Clock::now();
    if (left <= kRetryFirst) break;
    std::this_thread::sleep_for(std::min(pause, left - kRetryFirst));
    pause = std::min(2 * pause, kRetryMax);
  }
  return Status::error(StatusCode::kUnavailable,
                       "rank %u could not join through rank 0 at %.60s within %.1f s: %.100s",
                       unsigned{local_.rank}, local_.rendezvous.c_str(),
                       std::chrono::duration<double>(local_.join_timeout).count(),
                       obstacle_.c_str());
}

// An outcome that trying again would not change, or nothing.
std::optional<Result<Group>> RendezvousClient::attempt(const HostPort& where) {
  const auto resolved = resolve(io_, where);
  if (!resolved.ok()) {
    if (resolved.status().code() == StatusCode::kInvalidArgument) return resolved.status();
    obstacle_ = resolved.status();
    return std::nullopt;
  }
  if (!connect(resolved->endpoints) || !say_hello()) return std::nullopt;
  return hear_welcome();
}

bool RendezvousClient::connect(const std::vector<tcp::endpoint>& endpoints) {
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [this](const tcp::endpoint& endpoint) { return connect_one(endpoint); });
}

bool RendezvousClient::connect_one(const tcp::endpoint& endpoint) {
  std::error_code error;
  socket_.close(error);
  std::optional<std::error_code> done;
  socket_.async_connect(endpoint, [&done](std::error_code outcome) { done = outcome; });
  const bool in_time = run_until(std::min(deadline_, Clock::now() + kConnectMax), done);
  if (!in_time || *done) {
    const std::string reason = in_time ? done->message() : "no answer";
    obstacle_ =
        Status::error(StatusCode::kUnavailable,
                      "%s; is rank 0 running, and its port open to this machine?", reason.c_str());
    return false;
  }
  // A loopback connection to a port that nobody listens on can, by simultaneous open, meet itself.
  if (socket_.local_endpoint(error) != socket_.remote_endpoint(error)) return true;
  obstacle_ = Status::error(StatusCode::kUnavailable, "nobody listens there; is rank 0 running?");
  socket_.close(error);
  return false;
}

bool RendezvousClient::say_hello() {
  const std::string frame = hello_frame();
  std::optional<std::error_code> done;
  asio::async_write(socket_, asio::buffer(frame),
                    [&done](std::error_code outcome, std::size_t) { done = outcome; });
  if (run_until(deadline_, done) && !*done) return true;
  obstacle_ = Status::error(StatusCode::kUnavailable, "the connection broke while saying Hello");
  return false;
}

std::optional<Result<Group>> RendezvousClient::hear_welcome() {
  IncomingFrame frame;
  std::optional<FrameOutcome> done;
  async_read_frame(socket_, frame, limits::kWelcomeBytesMax,
                   [&done](FrameOutcome outcome) { done = outcome; });
  if (!run_until(deadline_, done)) {
    obstacle_ = Status::error(StatusCode::kUnavailable,
                              "connected, but no answer; other ranks may be missing");
    return std::nullopt;
  }
  if (*done == FrameOutcome::closed) {
    obstacle_ =
        Status::error(StatusCode::kUnavailable, "rank 0 hung up before the group was complete");
    return std::nullopt;
  }
  const auto welcome =
      *done == FrameOutcome::complete ? parse_welcome(frame.body, local_.size) : std::nullopt;
  if (!welcome) {
    return Status::error(StatusCode::kMismatch,
                         "what answers at %.60s is not a Leeway rank 0 of this version; does "
                         "another program use the "
                         "port? Choose another one in LEEWAY_RENDEZVOUS",
                         local_.rendezvous.c_str());
  }
  if (welcome->has_rejected()) return status_of(welcome->rejected());
  return group_of(welcome->group());
}

std::string RendezvousClient::hello_frame() const {
  control::Hello hello;
  hello.set_magic(kControlMagic);
  hello.set_protocol_version(wire::kVersion);
  hello.set_library_version(LEEWAY_VERSION_STRING);
  hello.set_rank(local_.rank);
  hello.set_world_size(static_cast<std::uint32_t>(local_.size));
  control::Configuration& configuration = *hello.mutable_configuration();
  configuration.set_communicator_name(local_.name);
  configuration.set_datagram_bytes(local_.datagram_bytes);
  configuration.set_receive_buffer_bytes(local_.receive_buffer_bytes);
  configuration.set_window_bytes(local_.window_bytes);
  configuration.set_seed(local_.seed);
  configuration.set_transport(static_cast<std::uint32_t>(local_.transport));
  configuration.set_multicast(local_.multicast);
  put_offers(local_.offers, hello);
  hello.mutable_data()->set_address(local_.data_address.data(), local_.data_address.size());
  hello.mutable_data()->set_port(local_.data_port);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
  hello.set_patience_ms(static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, UINT32_MAX)));
  return frame_of(hello);
}

template <typename T>
bool RendezvousClient::run_until(Clock::time_point end, const std::optional<T>& done) {
  io_.restart();
  io_.run_until(end);
  if (done) return true;
  std::error_code ignored;
  socket_.close(ignored);
  io_.restart();
  io_.run();  // lets the aborted operation finish before what it refers to goes away
  return false;
}

}  // namespace leeway::rendezvous
