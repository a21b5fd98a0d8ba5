// The error texts for RDMA that cannot be used. Each says what is missing, where, and what to do
// about it. The functions are pure, so machines without a device can test every text.
#pragma once

#include <asio/ip/address.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "leeway/status.h"
#include "transport/verbs/verbs_devices.h"

namespace leeway::transport::refusal {

Status no_device();

// Returns EACCES if `file` of /dev/infiniband exists but must not be used, because the libraries
// report such a file as missing. Otherwise returns `error`.
int reason_of(const std::string& file, int error);

// Returns the error to report if the kernel's connection manager cannot be opened; `error` is
// errno.
Status no_connection_manager(int error);

// Returns the error to report if the device's file in /dev/infiniband cannot be opened; `error` is
// errno.
Status device_closed(const std::string& device, int error);

// Returns the error to report if no port can be bound to `address`. Either the port that has the
// address is down, or no port has it (the text names the ports there are), or no port can be
// opened.
Status no_port(const asio::ip::address& address, std::span<const VerbsPort> ports);

// Returns what is wrong with a port that was found: it is down, has no RoCE v2 GID for the address,
// or has an MTU below Leeway's smallest datagram. Returns nullopt if it can be used.
std::optional<Status> unusable(const VerbsPort& port, const asio::ip::address& address);

// Returns the error to report if `what` ("receive ring", ...), which needs `bytes` bytes, could not
// be registered or made. `error` is errno. `limit_bytes` is the memory that the process may lock,
// or nullopt if it is unlimited.
Status no_memory(const VerbsPort& port, const char* what, std::size_t bytes, int error,
                 std::optional<std::size_t> limit_bytes);

// Returns the error to report if there is no way to the peer, for example because its address does
// not resolve.
Status no_route(const VerbsPort& port, std::size_t rank, const std::string& peer, int error);

// Returns the error to report if the group cannot be joined; `error` is errno.
Status no_multicast(const VerbsPort& port, const asio::ip::address& group, int error);

// Returns the error to report if any other call fails. `what` names it, and `error` is errno.
Status failed(const VerbsPort& port, const char* what, int error);

// Returns the error to report if the device went away or broke; `why` says it in words.
Status device_gone(const VerbsPort& port, const char* why);

// Returns the bytes that this process may lock into memory (RLIMIT_MEMLOCK), or nullopt if there is
// no limit.
std::optional<std::size_t> locked_memory_limit();

}  // namespace leeway::transport::refusal
