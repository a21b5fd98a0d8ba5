// Keys of a process that has joined a group. All keys that seal datagrams are derived from them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "keys/process_key.h"
#include "keys/secret.h"

namespace leeway::keys {

// The public part of a process's identity. The key and the tag belong to its UDP endpoint, the
// secrets to a group.
struct Identity {
  Key public_key{};
  // Base of the tags in datagrams to this process. Random, but the lowest bit is 1 if the processor
  // has no instructions for AES.
  std::uint32_t tag = 0;
  std::vector<std::uint64_t> secrets;  // ids of the secrets that it holds
  friend bool operator==(const Identity&, const Identity&) = default;
};

// The identity of this process, with its private parts.
struct OwnIdentity {
  std::shared_ptr<const Secrets> secrets;
  std::shared_ptr<const ProcessKey> key;
  Identity told;

  static Result<std::shared_ptr<const OwnIdentity>> make(std::shared_ptr<const Secrets> secrets,
                                                         bool prefers_chacha = false);
  // Returns this identity with the secrets of another group.
  std::shared_ptr<const OwnIdentity> with(std::shared_ptr<const Secrets> others) const;
};

// Keys for one meeting of a group that has a secret.
struct JoinedKeys {
  struct Member {
    Key public_key{};
    std::uint32_t tag = 0;
    // Key for the purpose "pair", from the secret that this process shares with the member. Zero if
    // secrets are used for meetings only.
    Key pair{};
  };
  std::shared_ptr<const OwnIdentity> own;
  Key meeting{};                // digest of the whole table and of its random nonce
  std::vector<Member> members;  // by rank, this process among them
};

// Returns kMismatch if two members have the same name, or a member shares no secret with this
// process.
Result<std::shared_ptr<const JoinedKeys>> join_keys(std::shared_ptr<const OwnIdentity> own,
                                                    const Key& meeting,
                                                    const std::vector<Identity>& members);

// Returns the name by which others know a process: the first bytes of its public key (WIRE 9.7).
std::uint64_t name_of(const Key& public_key);

// Returns kMismatch, with both ranks, if two members have the same name, since one of them then
// uses the other's public key.
Status check_distinct(const std::vector<Identity>& members);

}  // namespace leeway::keys
