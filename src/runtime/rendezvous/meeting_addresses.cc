#include "rendezvous/meeting_addresses.h"

#include <optional>

#include "rendezvous/address.h"

namespace leeway::rendezvous {
namespace {

void put(const asio::ip::address& address, std::string& bytes) {
  const std::vector<std::byte> raw = to_bytes(address);
  bytes.assign(reinterpret_cast<const char*>(raw.data()), raw.size());
}

std::optional<asio::ip::address> address_of(const std::string& bytes) {
  return plain_address(std::as_bytes(std::span(bytes)));
}

// Returns true if other hosts can reach the address. A link-local one needs its interface, too.
bool leads_elsewhere(const asio::ip::address& address) {
  const bool link_local = address.is_v6() && address.to_v6().is_link_local();
  return !address.is_loopback() && !address.is_unspecified() && !link_local;
}

// Returns true if this rank may tell others the address: without a secret, only a private one.
bool may_tell(const LocalConfiguration& local, const asio::ip::address& address) {
  return local.identity != nullptr || local.insecure || is_private(address);
}

// Returns true if the rank of `hello` is on rank 0's host. That rank reached rank 0 at `reached`.
bool is_of_one_host(const asio::ip::address& reached, const control::Hello& hello) {
  return reached.is_loopback() || reached == address_of(hello.data().address());
}

}  // namespace

void tell_addresses(const LocalConfiguration& local, const ConnectionEnds& ends,
                    control::Hello& hello) {
  control::Endpoint& data = *hello.mutable_data();
  put(ends.theirs, *data.mutable_reached());
  if (local.may_move && leads_elsewhere(ends.own) && may_tell(local, ends.own))
    put(ends.own, *data.mutable_address());
}

// WIRE 7.21
void settle_addresses(LocalConfiguration& root, std::vector<control::Hello>& others,
                      const std::function<bool(const asio::ip::address&)>& is_own) {
  std::optional<asio::ip::address> found;
  for (const control::Hello& hello : others) {
    const auto reached = address_of(hello.data().reached());
    if (found || !reached || is_of_one_host(*reached, hello)) continue;
    if (leads_elsewhere(*reached) && may_tell(root, *reached) && is_own(*reached)) found = reached;
  }
  if (!found) return;
  if (root.may_move) root.data_address = to_bytes(*found);
  for (control::Hello& hello : others) {
    const auto reached = address_of(hello.data().reached());
    if (!hello.data().fixed() && reached && is_of_one_host(*reached, hello))
      put(*found, *hello.mutable_data()->mutable_address());
  }
}

}  // namespace leeway::rendezvous
