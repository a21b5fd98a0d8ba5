#include "namespaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

namespace leeway::lab {
namespace {

// Length of a device's queue: 100 ms at 2 Gb/s. It only holds packets until the laboratory reads
// them; the emulated network has queues of its own.
constexpr int kDeviceQueuePackets = 20'000;

Status refuse(const char* what) {
  const int error = errno;
  return Status::error(StatusCode::kUnavailable, "%s: %s", what, std::strerror(error));
}

int open_own_namespace() {
  return ::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

bool write_file(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  return !file.fail();
}

// Returns a line of uid_map or gid_map that maps `number` to root.
std::string root_is(const std::string& number) {
  return std::string("0 ").append(number).append(" 1");
}

// Unless the process is root, enters a new user namespace, in which it may make network namespaces.
Status become_root_within() {
  if (::geteuid() == 0) return {};
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) return refuse("not root, and no user namespaces");
  if (write_file("/proc/self/setgroups", "deny") &&
      write_file("/proc/self/uid_map", root_is(user)) &&
      write_file("/proc/self/gid_map", root_is(group))) {
    return {};
  }
  return refuse("not root, and user namespaces cannot be set up");
}

class DeviceSetup {
 public:
  DeviceSetup() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {}
  ~DeviceSetup() {
    if (socket_ >= 0) ::close(socket_);
  }
  DeviceSetup(const DeviceSetup&) = delete;
  DeviceSetup& operator=(const DeviceSetup&) = delete;

  Status address(const char* device, const std::string& text, const char* netmask) {
    if (Status status = set_address(device, text, SIOCSIFADDR); !status.ok()) return status;
    return set_address(device, netmask, SIOCSIFNETMASK);
  }
  Status mtu(const char* device, std::uint32_t bytes) {
    ifreq request = named(device);
    request.ifr_mtu = static_cast<int>(bytes);
    return ask(SIOCSIFMTU, request, "the device's MTU");
  }
  // Sets the queue's length. The root of a user namespace may not do that. The device's queue then
  // keeps its default length of 500 packets.
  void queue(const char* device, int packets) {
    ifreq request = named(device);
    request.ifr_qlen = packets;
    ::ioctl(socket_, SIOCSIFTXQLEN, &request);
  }
  Status up(const char* device) {
    ifreq request = named(device);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    return ask(SIOCSIFFLAGS, request, "taking the device up");
  }

 private:
  static ifreq named(const char* device) {
    ifreq request{};
    std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    return request;
  }
  Status set_address(const char* device, const std::string& text, unsigned long what) {
    ifreq request = named(device);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
    std::memcpy(&request.ifr_addr, &address, sizeof(address));
    return ask(what, request, "the device's address");
  }
  Status ask(unsigned long what, ifreq& request, const char* name) {
    if (::ioctl(socket_, what, &request) == 0) return {};
    return refuse(name);
  }

  int socket_;
};

// Asks the kernel to deliver trains. It delivers UDP trains since Linux 6.2; an older kernel cuts
// them into packets.
bool take_trains(int device) {
  constexpr unsigned kTakesTcp = TUN_F_CSUM | TUN_F_TSO4;
  constexpr unsigned kTakesUdp = 0x20 | 0x40;  // TUN_F_USO4 and _USO6 go together
  return ::ioctl(device, TUNSETOFFLOAD, kTakesTcp | kTakesUdp) == 0 ||
         ::ioctl(device, TUNSETOFFLOAD, kTakesTcp) == 0;
}

Result<int> open_device() {
  const int device = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) return refuse("/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, kDevice, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(device, TUNSETIFF, &request) == 0 && take_trains(device)) return device;
  const Status status = refuse("making a TUN device");
  ::close(device);
  return status;
}

// Runs a program in the caller's namespace. The program itself prints its errors.
Status run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], nullptr, nullptr, arguments.data(), environ);
  int status = 0;
  if (error == 0 && ::waitpid(pid, &status, 0) == pid && status == 0) return {};
  return Status::error(StatusCode::kInvalidArgument, "`%s %s ...` failed%s%s", words[0].c_str(),
                       words[1].c_str(), error == 0 ? "" : ": ",
                       error == 0 ? "" : std::strerror(error));
}

Status choose_congestion_control(std::uint32_t rank, const std::string& name) {
  if (name.empty()) return {};
  const Status status =
      run_program({"ip", "route", "replace", "10.88.0.0/24", "dev", kDevice, "proto", "kernel",
                   "scope", "link", "src", address_text(rank), "congctl", name});
  if (status.ok()) return status;
  return Status::error(StatusCode::kInvalidArgument, "congestion control '%s': %s", name.c_str(),
                       status.c_str());
}

// Makes a rank's device. The caller must be in the rank's namespace.
Result<int> make_device(std::uint32_t rank, const DeviceOptions& options) {
  // The laboratory carries IPv4 only. Otherwise the kernel would send IPv6 neighbour discovery.
  write_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
  Result<int> device = open_device();
  if (!device.ok()) return device;
  DeviceSetup setup;
  setup.queue(kDevice, kDeviceQueuePackets);
  const std::uint32_t mtu = options.mtus.size() > 1 ? options.mtus[rank] : options.mtus.at(0);
  for (const Status& status :
       {setup.up("lo"), setup.mtu(kDevice, mtu),
        setup.address(kDevice, address_text(rank), "255.255.255.0"), setup.up(kDevice),
        choose_congestion_control(rank, options.congestion_control)}) {
    if (!status.ok()) return status;
  }
  return device;
}

Result<RankNetwork> make_namespace(std::uint32_t rank, const DeviceOptions& options) {
  if (::unshare(CLONE_NEWNET) != 0) return refuse("making a network namespace");
  RankNetwork network;
  network.namespace_fd = open_own_namespace();
  if (network.namespace_fd < 0) return refuse("/proc/self/ns/net");
  const Result<int> device = make_device(rank, options);
  if (!device.ok()) return device.status();
  network.device_fd = *device;
  return network;
}

}  // namespace

std::string address_text(std::uint32_t rank) {
  const in_addr address{htonl(kFirstAddress + rank)};
  char text[INET_ADDRSTRLEN];
  return ::inet_ntop(AF_INET, &address, text, sizeof(text));
}

Result<std::vector<RankNetwork>> make_namespaces(std::uint32_t ranks,
                                                 const DeviceOptions& options) {
  if (Status status = become_root_within(); !status.ok()) return status;
  const int home = open_own_namespace();
  if (home < 0) return refuse("/proc/self/ns/net");
  std::vector<RankNetwork> networks;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto network = make_namespace(rank, options);
    if (!network.ok()) return network.status();
    networks.push_back(*network);
  }
  // Without privileges a process may not return to its old namespace. It then stays in the last
  // rank's, which makes no difference to the laboratory.
  const bool back = ::setns(home, CLONE_NEWNET) == 0 || errno == EPERM;
  if (!back) return refuse("going back to the own network namespace");
  ::close(home);
  return networks;
}

Status enter_namespace(int namespace_fd) {
  if (::setns(namespace_fd, CLONE_NEWNET) == 0) return {};
  return refuse("entering a network namespace");
}

std::uint64_t device_drops(const std::vector<RankNetwork>& networks) {
  std::uint64_t drops = 0;
  for (const RankNetwork& network : networks) {
    ifaddrs* all = nullptr;
    if (!enter_namespace(network.namespace_fd).ok() || ::getifaddrs(&all) != 0) continue;
    for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
      const bool counts = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_PACKET &&
                          one->ifa_data != nullptr && std::string_view(one->ifa_name) == kDevice;
      if (counts) drops += static_cast<const rtnl_link_stats*>(one->ifa_data)->tx_dropped;
    }
    ::freeifaddrs(all);
  }
  return drops;
}

}  // namespace leeway::lab
