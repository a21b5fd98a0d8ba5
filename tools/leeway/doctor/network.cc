#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>

#include "base/limits.h"
#include "doctor/probes.h"

namespace leeway::tools::doctor {
namespace {

constexpr const char* kNetworkSection = "Network";

// Buffer size in bytes that the library asks for by default (Options::socket_buffer_bytes).
constexpr int kBufferBytesWanted = 8 << 20;

constexpr int kSegmentBytes = 1000;
constexpr int kSegments = 4;

class Socket {
 public:
  explicit Socket(int type) : handle_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (handle_ >= 0) ::close(handle_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int handle() const { return handle_; }
  bool set(int level, int name, int value) const {
    return ::setsockopt(handle_, level, name, &value, sizeof value) == 0;
  }
  int get(int level, int name) const {
    int value = -1;
    socklen_t bytes = sizeof value;
    return ::getsockopt(handle_, level, name, &value, &bytes) == 0 ? value : -1;
  }

 private:
  int handle_;
};

sockaddr_in ipv4(std::uint32_t address, std::uint16_t port) {
  sockaddr_in endpoint{};
  endpoint.sin_family = AF_INET;
  endpoint.sin_port = htons(port);
  endpoint.sin_addr.s_addr = htonl(address);
  return endpoint;
}

bool connect_to(const Socket& socket, const sockaddr_in& endpoint) {
  return ::connect(socket.handle(), reinterpret_cast<const sockaddr*>(&endpoint),
                   sizeof endpoint) == 0;
}

// A pair of UDP sockets that are connected over loopback. Their calls give up after 0.2 s.
struct LoopbackPair {
  Socket receiver{SOCK_DGRAM};
  Socket sender{SOCK_DGRAM};

  bool open() const {
    sockaddr_in endpoint = ipv4(INADDR_LOOPBACK, 0);
    socklen_t bytes = sizeof endpoint;
    const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
    return ::bind(receiver.handle(), reinterpret_cast<sockaddr*>(&endpoint), bytes) == 0 &&
           ::getsockname(receiver.handle(), reinterpret_cast<sockaddr*>(&endpoint), &bytes) == 0 &&
           ::setsockopt(receiver.handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) ==
               0 &&
           connect_to(sender, endpoint);
  }

  // Sends one train of segments. Returns false if the kernel cannot send trains (UDP_SEGMENT).
  bool send_train() const {
    const std::array<char, std::size_t{kSegmentBytes} * kSegments> train{};
    return sender.set(IPPROTO_UDP, UDP_SEGMENT, kSegmentBytes) &&
           ::send(sender.handle(), train.data(), train.size(), 0) ==
               static_cast<ssize_t>(train.size());
  }

  // Receives a message of at most 64 KiB. Returns its length, or a negative number if none comes.
  ssize_t receive() const {
    std::array<char, 65536> buffer;
    return ::recv(receiver.handle(), buffer.data(), buffer.size(), 0);
  }
};

Finding udp_sockets() {
  const LoopbackPair pair;
  const char byte = 1;
  if (pair.open() && ::send(pair.sender.handle(), &byte, 1, 0) == 1 && pair.receive() == 1) {
    return {kNetworkSection, "UDP sockets", Verdict::ok, "a datagram came over loopback", {}};
  }
  return {kNetworkSection, "UDP sockets", Verdict::missing,
          std::string("no datagram came over loopback: ") + std::strerror(errno),
          "bring loopback up (sudo ip link set lo up) and let the firewall pass UDP on it"};
}

Finding segmentation() {
  const LoopbackPair pair;
  int arrived = 0;
  if (pair.open() && pair.send_train()) {
    while (arrived < kSegments && pair.receive() == kSegmentBytes) ++arrived;
  }
  if (arrived == kSegments) {
    return {kNetworkSection,
            "UDP_SEGMENT",
            Verdict::ok,
            "one call sent " + std::to_string(kSegments) + " datagrams",
            {}};
  }
  return {kNetworkSection, "UDP_SEGMENT", Verdict::warn,
          "not supported: every datagram is handed to the kernel alone",
          "use Linux 4.18 or newer (Debian 12 has 6.1)"};
}

Finding coalescing() {
  const LoopbackPair pair;
  const bool enabled = pair.open() && pair.receiver.set(IPPROTO_UDP, UDP_GRO, 1);
  if (enabled && pair.send_train() && pair.receive() > kSegmentBytes) {
    return {kNetworkSection, "UDP_GRO", Verdict::ok, "datagrams arrived joined in one message", {}};
  }
  return {kNetworkSection, "UDP_GRO", Verdict::warn,
          enabled ? "accepted, but datagrams came one by one" : "not supported",
          "use Linux 5.0 or newer (Debian 12 has 6.1)"};
}

// Finds out how large a socket buffer can be. The kernel reports twice the size that it grants, so
// the reported size is halved.
Finding buffer(const char* name, int force, int plain, const char* sysctl) {
  const Socket socket(SOCK_DGRAM);
  const bool forced = socket.set(SOL_SOCKET, force, kBufferBytesWanted);
  if (!forced) (void)socket.set(SOL_SOCKET, plain, kBufferBytesWanted);
  const int granted = socket.get(SOL_SOCKET, plain) / 2;
  Finding finding{kNetworkSection,
                  name,
                  Verdict::ok,
                  bytes_text(static_cast<std::uint64_t>(std::max(granted, 0))),
                  {}};
  if (granted >= kBufferBytesWanted) {
    finding.value +=
        forced ? " granted (this user may go beyond " + std::string(sysctl) + ")" : " granted";
    return finding;
  }
  finding.verdict = Verdict::warn;
  finding.value +=
      " granted of " + bytes_text(kBufferBytesWanted) + ": " + sysctl + " is the limit";
  const std::string setting = std::string(sysctl) + "=" + std::to_string(kBufferBytesWanted);
  finding.remedy = "sudo sysctl -w " + setting + "; to keep it: echo " + setting +
                   " | sudo tee -a /etc/sysctl.d/90-leeway.conf";
  return finding;
}

// Returns the largest UDP payload that fits an MTU without IPv4 fragments.
std::size_t datagram_bytes_for(int mtu) {
  constexpr int kHeaderBytes = 20 + 8;
  return std::min<std::size_t>(limits::kFrameBytesMax,
                               static_cast<std::size_t>(std::max(mtu - kHeaderBytes, 0)));
}

Finding mtu_finding(const std::string& name, int mtu, const std::string& where) {
  const std::size_t bytes = datagram_bytes_for(mtu);
  Finding finding{kNetworkSection, name, Verdict::ok, {}, {}};
  finding.value =
      where + "MTU " + std::to_string(mtu) + ", datagrams of " + std::to_string(bytes) + " bytes";
  if (bytes < limits::kDatagramBytesMin) {
    finding.verdict = Verdict::warn;
    finding.remedy = "too small for Leeway; sudo ip link set dev <interface> mtu 1500";
  }
  return finding;
}

std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(),
                text.size());
  } else if (address.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, text.data(),
                text.size());
  }
  return text.data();
}

int mtu_of(const std::string& interface) {
  const Socket socket(SOCK_DGRAM);
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  return ::ioctl(socket.handle(), SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
}

// Adds the interfaces that are up and have an address.
void add_interfaces(Findings& findings) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return;
  std::map<std::string, std::string> facts;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const std::string address = address_text(*entry->ifa_addr);
    if (address.empty()) continue;
    std::string& text = facts[entry->ifa_name];
    if (text.empty())
      text = (entry->ifa_flags & IFF_MULTICAST) != 0 ? "multicast, " : "no multicast, ";
    text += address + ", ";
  }
  ::freeifaddrs(list);
  for (const auto& [name, text] : facts)
    findings.push_back(mtu_finding("interface " + name, mtu_of(name), text));
}

// Asks the kernel for the default route and its MTU. Sends nothing.
Finding path() {
  constexpr std::uint32_t kSomewhereElse = 0xCB007101;  // 203.0.113.1, reserved for documentation
  const Socket socket(SOCK_DGRAM);
  if (!connect_to(socket, ipv4(kSomewhereElse, 9))) {
    return {
        kNetworkSection, "default route", Verdict::info, "none; ranks must share a network", {}};
  }
  return mtu_finding("default route", socket.get(IPPROTO_IP, IP_MTU), "");
}

}  // namespace

void probe_network(Findings& findings) {
  findings.push_back(udp_sockets());
  findings.push_back(segmentation());
  findings.push_back(coalescing());
  findings.push_back(buffer("receive buffer", SO_RCVBUFFORCE, SO_RCVBUF, "net.core.rmem_max"));
  findings.push_back(buffer("send buffer", SO_SNDBUFFORCE, SO_SNDBUF, "net.core.wmem_max"));
  add_interfaces(findings);
  findings.push_back(path());
}

}  // namespace leeway::tools::doctor
