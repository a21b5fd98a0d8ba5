// A transport of your own: UDP at ports that you choose, because of a firewall, say. A transport
// moves datagrams and may lose some. Order, repair and time are Leeway's affair (transport.h).
//
//   ./run_ranks 4 build/custom_transport
#include <leeway/leeway.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

class FixedPorts final : public leeway::DatagramTransport {
 public:
  FixedPorts(int rank, int first_port) : first_port_(first_port) {
    const sockaddr_in own = address(rank);
    if (bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0)
      std::perror("bind");
  }
  ~FixedPorts() override { close(socket_), close(wake_); }
  std::string_view name() const override { return "fixed ports"; }
  const leeway::TransportLimits& limits() const override { return limits_; }
  leeway::TransportCounters counters() const override { return {}; }

  std::size_t send(std::span<const leeway::Train> trains) override {
    for (const leeway::Train& train : trains) {
      std::byte* end = train_.data();  // the slices, laid end to end and cut into datagrams
      for (const leeway::Slice& slice : train.slices)
        end = static_cast<std::byte*>(std::memcpy(end, slice.data, slice.bytes)) + slice.bytes;
      const sockaddr_in to = address(train.to);
      for (std::byte* at = train_.data(); at < end; at += train.segment_bytes)
        sendto(socket_, at, std::min<std::size_t>(train.segment_bytes, end - at), MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), sizeof to);
    }
    return trains.size();  // a datagram that the system did not take is lost
  }

  std::size_t receive(std::span<leeway::Received> out) override {
    std::size_t count = 0;
    for (; count < out.size() && (count + 1) * kBytes <= arrived_.size(); ++count) {
      std::byte* slot = &arrived_[count * kBytes];
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const auto bytes = recvfrom(socket_, slot, kBytes, MSG_DONTWAIT,
                                  reinterpret_cast<sockaddr*>(&from), &length);
      if (bytes < 0) break;
      out[count].from = static_cast<leeway::Rank>(ntohs(from.sin_port) - first_port_);
      out[count].bytes = {slot, static_cast<std::size_t>(bytes)};
    }
    return count;
  }

  void wait(leeway::Duration timeout) override {
    pollfd handles[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    const timespec time{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
    eventfd_t ignored;
    if (ppoll(handles, 2, &time, nullptr) > 0) eventfd_read(wake_, &ignored);
  }
  void wake() override { eventfd_write(wake_, 1); }

 private:
  static constexpr std::size_t kBytes = 1472;  // a datagram; the system queues 64 KiB of them
  const leeway::TransportLimits limits_{kBytes, 65507, 64, 256, 65536};
  sockaddr_in address(int rank) const {
    return {AF_INET,
            htons(static_cast<std::uint16_t>(first_port_ + rank)),
            {htonl(INADDR_LOOPBACK)},
            {}};
  }
  const int first_port_, socket_ = socket(AF_INET, SOCK_DGRAM, 0), wake_ = eventfd(0, EFD_NONBLOCK);
  std::vector<std::byte> train_{65507}, arrived_ = std::vector<std::byte>(64 * kBytes);
};

int main() {
  auto options = leeway::Options::from_environment();
  const int port = options.ok() ? std::atoi(std::strrchr(options->rendezvous.c_str(), ':') + 1) : 0;
  auto comm = leeway::Communicator::create(*options,
                                           std::make_unique<FixedPorts>(*options->rank, port + 1));
  if (!comm.ok()) return std::fprintf(stderr, "%s\n", comm.status().c_str()), 1;
  std::vector<float> values(1'000'000, 1.0f);
  auto report = (*comm)->all_reduce(std::span(values));
  std::printf("rank %d: %g over %s\n", (*comm)->rank(), values.back(),
              report.ok() ? "fixed ports" : report.status().c_str());
  return report.ok() ? 0 : 1;
}
