// Rank 0's judgement, free of sockets: may this rank join, who is missing, and what the group looks
// like.
#pragma once

#include <asio/ip/address.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control.pb.h"
#include "leeway/status.h"
#include "rendezvous/bootstrap.h"

namespace leeway::rendezvous {

// A rank that said Hello, and how the two ends of its connection saw each other.
struct Joined {
  control::Hello hello;
  asio::ip::address seen_from;   // the rank's address as rank 0 sees it
  asio::ip::address reached_at;  // rank 0's address as the rank reached it
};

// Whether a Hello fits rank 0's own configuration; the error names both sides. `from` is where it
// came from.
Status check_hello(const control::Hello& hello, const LocalConfiguration& root,
                   const std::string& from);

// The table of all ranks. `others` are ranks 1 .. size-1 in order. kMismatch when the data
// addresses are not all of one family, because then some ranks could not send to each other;
// kUnsupported when a rank lacks the transport that all ask for.
//
// A rank on rank 0's machine may have come over loopback, and ranks elsewhere over the network.
// Addresses that everyone can use are wanted, so with at least one rank elsewhere the loopback ones
// give way to rank 0's network address.
Result<Group> make_group(const LocalConfiguration& root, std::span<const Joined> others,
                         std::uint32_t epoch);

control::Welcome welcome_of(const Group& group);
Group group_of(const control::Group& message);

}  // namespace leeway::rendezvous
