// Checks that ranks fit together, without sockets: each rank checks rank 0's invitation, and rank 0
// checks every rank and makes the table of the group.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control.pb.h"
#include "leeway/status.h"
#include "rendezvous/group.h"

namespace leeway::rendezvous {

// Returns where this rank runs, for people: "node-a, process 4711".
std::string this_place();

control::Invitation invitation_of(const LocalConfiguration& root, std::uint64_t meeting);
// `attempt` is a random number of this join, and `patience` the time left to it. `round_trip` is
// the round trip of the connection to the rendezvous, or 0 if not known.
control::Hello hello_of(const LocalConfiguration& local, std::uint64_t attempt, Duration patience,
                        Duration round_trip = Duration(0));

// Checks that rank 0 speaks this rank's version and expects the same number of ranks. The error
// names both sides. Rank 0 cannot be sure to check this: it never looks for the Hello of a rank
// beyond its own number of ranks.
Status check_invitation(const control::Invitation& invitation, const LocalConfiguration& local);

// Checks that the Hello found at the key of `rank` fits rank 0. The error names both sides.
Status check_hello(const control::Hello& hello, const LocalConfiguration& root, Rank rank);

// Returns the error for two live processes that claim one rank.
Status claimed_twice(std::uint32_t rank, const std::string& one_place,
                     const std::string& other_place);

// Makes the table of all ranks. `others` are ranks 1 .. size-1 in order. Returns kMismatch if the
// data addresses are not all of one family, because then some ranks could not send to each other.
// Returns kUnsupported if a rank lacks the transport that all ask for.
Result<Group> make_group(const LocalConfiguration& root, std::span<const control::Hello> others,
                         std::uint32_t epoch);

control::Welcome welcome_of(const Group& group);
Group group_of(const control::Group& message);

// Encodes a Hello or a Welcome as the value for `key`. Adds a proof if this process has a secret
// (WIRE 7.20).
std::vector<std::byte> proved_value(const google::protobuf::MessageLite& message,
                                    const LocalConfiguration& local, const std::string& key);

// Parses and checks a Hello, and its proof if this process has a secret. Returns kMismatch if it
// does not fit, or if no holder of the secret put it at `key` (this meeting and rank).
Result<control::Hello> take_hello(ByteSpan value, const std::string& key,
                                  const LocalConfiguration& root, Rank rank);

// Returns the group of a Welcome that parse_welcome() read from `value`. Checks the proof if both
// this process and the group have secrets.
Result<Group> take_group(const control::Welcome& welcome, ByteSpan value, const std::string& key,
                         const LocalConfiguration& local);

// Makes the group's keys depend on its table (`value` at `key`), so that no other table leads to
// the same keys.
void bind_to_table(Group& group, ByteSpan value, const std::string& key);

// Derives this process's keys from the table's identities. Returns kMismatch if the table has no
// identities, a wrong one for this rank, or the same one for two ranks.
Status take_keys(const LocalConfiguration& local, Group& group);

}  // namespace leeway::rendezvous
