// Keys of a process that has joined a group. All keys that seal packets are derived from them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "keys/process_key.h"
#include "keys/secret.h"

namespace leeway::keys {

// The public part of a process's identity. The key and the tag belong to its endpoint, the secrets
// to a group.
struct Identity {
  Key public_key{};
  // The base of the tags that its senders use. It is random except for the lowest bit, which is 1
  // if the processor has no instructions for AES.
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
  // Returns the same process's identity in a group that has other secrets.
  std::shared_ptr<const OwnIdentity> with(std::shared_ptr<const Secrets> others) const;
};

// Keys for one meeting of a group that has a secret.
struct JoinedKeys {
  struct Member {
    Key public_key{};
    std::uint32_t tag = 0;
    // The key for the purpose "pair" of the secret that this process and the member share. Zero if
    // secrets are for meetings only.
    Key pair{};
  };
  std::shared_ptr<const OwnIdentity> own;
  Key meeting{};                // digest of the whole table and of its random nonce
  std::vector<Member> members;  // by rank, this process among them
};

// Returns kMismatch if two members have the same name, or if a member shares no secret with this
// process.
Result<std::shared_ptr<const JoinedKeys>> join_keys(std::shared_ptr<const OwnIdentity> own,
                                                    const Key& meeting,
                                                    const std::vector<Identity>& members);

// Returns the name of a process for others: the first bytes of its public half (WIRE 9.7).
std::uint64_t name_of(const Key& public_key);

// Returns kMismatch, with both ranks, if two members have the same name: then one of them uses the
// other's public key.
Status check_distinct(const std::vector<Identity>& members);

}  // namespace leeway::keys
