#include "endpoint/addresses.h"

namespace leeway::sim {
namespace {

constexpr std::uint16_t kFirstPort = 7000;

NetworkAddress address_of(std::uint16_t host, std::uint16_t port) {
  NetworkAddress address;
  address.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0};
  address.ip[14] = static_cast<std::uint8_t>(host >> 8);
  address.ip[15] = static_cast<std::uint8_t>(host & 0xFF);
  address.port = port;
  return address;
}

std::uint32_t half_of(const NetworkAddress& address) {
  return std::uint32_t{address.ip[14]} << 24 | std::uint32_t{address.ip[15]} << 16 | address.port;
}

}  // namespace

Addresses::Addresses(std::uint32_t processes)
    : places_(processes), hosts_(static_cast<std::uint16_t>(processes)), accounts_(processes) {
  for (std::uint32_t process = 0; process < processes; ++process) {
    places_[process].host = static_cast<std::uint16_t>(process + 1);
    places_[process].port.number = kFirstPort;
  }
}

void Addresses::translate(std::uint32_t process, Duration idle, bool symmetric) {
  places_[process].idle = idle;
  places_[process].symmetric = symmetric;
}

void Addresses::move(std::uint32_t process) {
  places_[process].host = ++hosts_;
  places_[process].port.number = kFirstPort;
  places_[process].ports.clear();
}

void Addresses::rebind(std::uint32_t process) {
  places_[process].port.number = next_port();
  places_[process].ports.clear();
}

NetworkAddress Addresses::told(std::uint32_t process) const {
  return address_of(static_cast<std::uint16_t>(process + 1), kFirstPort);
}

NetworkAddress Addresses::outbound(Instant now, std::uint32_t process, const NetworkAddress& to) {
  Place& place = places_[process];
  Port& port = place.symmetric ? place.ports[half_of(to)] : place.port;
  if (port.number == 0 || now - port.used > place.idle) port.number = next_port();
  port.used = now;
  return address_of(place.host, port.number);
}

bool Addresses::admits(Instant now, std::uint32_t process, const NetworkAddress& source,
                       const NetworkAddress& to) const {
  const Place& place = places_[process];
  const Port* port = &place.port;
  if (place.symmetric) {
    const auto found = place.ports.find(half_of(source));
    if (found == place.ports.end()) return false;
    port = &found->second;
  }
  return to == address_of(place.host, port->number) && now - port->used <= place.idle;
}

std::uint64_t Addresses::pack(const NetworkAddress& source, const NetworkAddress& to) {
  return std::uint64_t{half_of(source)} << 32 | half_of(to);
}

NetworkAddress Addresses::unpack(std::uint64_t half) {
  return address_of(static_cast<std::uint16_t>(half >> 16 & 0xFFFF),
                    static_cast<std::uint16_t>(half & 0xFFFF));
}

Addresses::Account& Addresses::account(std::uint32_t process, const NetworkAddress& address) {
  Account& found = accounts_[process][half_of(address)];
  const bool told =
      address.ip[14] * 256u + address.ip[15] <= places_.size() && address.port == kFirstPort;
  found.proven |= told;
  return found;
}

void Addresses::on_sent(std::uint32_t from, const NetworkAddress& to, std::size_t bytes,
                        bool path_message) {
  Account& there = account(from, to);
  if (there.proven) return;
  there.sent += bytes;
  if (!path_message || there.sent > there.allowed) ++overdrawn_;
}

void Addresses::on_received(std::uint32_t by, const NetworkAddress& source, std::size_t bytes,
                            bool answer) {
  Account& there = account(by, source);
  there.allowed += 3 * bytes;
  there.proven |= answer;
}

}  // namespace leeway::sim
