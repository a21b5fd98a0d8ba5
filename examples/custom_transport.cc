// Shows a transport of your own: UDP at ports that you choose, for instance because of a firewall.
// A transport moves datagrams and may lose some. Leeway restores order and repairs losses
// (transport.h).
//
//   ./run_ranks 4 build/custom_transport
#include <leeway/leeway.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

class FixedPorts final : public leeway::DatagramTransport {
 public:
  FixedPorts(int rank, int size, int port) : size_(size), port_(port) {
    const sockaddr_in own = address(rank);
    if (bind(socket_, (const sockaddr*)&own, sizeof own) != 0) std::perror("bind");
  }
  ~FixedPorts() override { close(socket_), close(wake_); }
  std::string_view name() const override { return "fixed ports"; }
  const leeway::TransportLimits& limits() const override { return limits_; }
  leeway::TransportCounters counters() const override { return {}; }

  std::size_t send(std::span<const leeway::Train> trains) override {
    for (const leeway::Train& train : trains) {
      std::byte* end = train_.data();  // slices are laid end to end, then cut into datagrams
      for (const auto& slice : train.slices) end = std::copy_n(slice.data, slice.bytes, end);
      const sockaddr_in to = address(train.to);
      for (std::byte* at = train_.data(); at < end; at += train.segment_bytes)
        sendto(socket_, at, std::min<std::size_t>(train.segment_bytes, end - at), MSG_DONTWAIT,
               (const sockaddr*)&to, sizeof to);
    }
    return trains.size();  // what the system did not take is lost
  }

  std::size_t receive(std::span<leeway::Received> out) override {
    std::size_t count = 0;
    while (count < std::min(out.size(), slots_.size())) {
      auto& slot = slots_[count];
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const auto n =
          recvfrom(socket_, slot.data(), kBytes, MSG_DONTWAIT, (sockaddr*)&from, &length);
      if (n < 0) break;
      out[count] = {leeway::Rank(ntohs(from.sin_port) - port_), {slot.data(), std::size_t(n)}};
      if (out[count].from < size_) ++count;  // else it came from a stranger
    }
    return count;
  }

  void wait(leeway::Duration timeout) override {
    pollfd handles[] = {{socket_, POLLIN, 0}, {wake_, POLLIN, 0}};
    const timespec time{timeout.count() / 1'000'000'000, timeout.count() % 1'000'000'000};
    if (eventfd_t ignored; ppoll(handles, 2, &time, nullptr) > 0) eventfd_read(wake_, &ignored);
  }
  void wake() override { eventfd_write(wake_, 1); }

 private:
  static constexpr std::size_t kBytes = 1472;  // of a datagram; the system queues 64 KiB of them
  sockaddr_in address(int rank) const {
    return {AF_INET, htons(port_ + rank), {htonl(INADDR_LOOPBACK)}, {}};
  }
  const int size_, port_;
  const int socket_ = socket(AF_INET, SOCK_DGRAM, 0), wake_ = eventfd(0, EFD_NONBLOCK);
  const leeway::TransportLimits limits_{kBytes, 65507, 64, 256,
                                        65536};  // the least that there may be
  std::array<std::byte, 65507> train_;
  std::array<std::array<std::byte, kBytes>, 64> slots_;
};

int main() {
  // value() ends the program with the error's text, if there is one.
  const leeway::Options options = leeway::Options::from_environment().value();
  const int port = 1 + std::stoi(options.rendezvous.substr(options.rendezvous.rfind(':') + 1));
  auto transport = std::make_unique<FixedPorts>(*options.rank, *options.world_size, port);
  auto communicator = leeway::Communicator::create(options, std::move(transport)).value();
  std::vector<float> values(1'000'000, 1.0f);
  communicator->all_reduce(std::span(values)).value();
  std::printf("rank %d: sum %g over fixed ports\n", communicator->rank(), values.back());
}
