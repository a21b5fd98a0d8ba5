// What a process knows about keys when it has joined: all that packets are sealed with is derived
// from this.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "keys/process_key.h"
#include "keys/secret.h"

namespace leeway::keys {

// What others are told of a process. Key and tag are those of its endpoint, secrets those of a
// group.
struct Identity {
  Key public_key{};
  // The base of the tags that its senders use: random, but for the lowest bit, which says that the
  // processor is without instructions for AES.
  std::uint32_t tag = 0;
  std::vector<std::uint64_t> secrets;  // ids of those that it holds
  friend bool operator==(const Identity&, const Identity&) = default;
};

// A process's own.
struct OwnIdentity {
  std::shared_ptr<const Secrets> secrets;
  std::shared_ptr<const ProcessKey> key;
  Identity told;

  static Result<std::shared_ptr<const OwnIdentity>> make(std::shared_ptr<const Secrets> secrets,
                                                         bool prefers_chacha = false);
  // The same process in a group that has other secrets.
  std::shared_ptr<const OwnIdentity> with(std::shared_ptr<const Secrets> others) const;
};

// Of a group that has a secret.
struct JoinedKeys {
  struct Member {
    Key public_key{};
    std::uint32_t tag = 0;
    // Of the secret that this process and the member share, for the purpose "pair"; zero where
    // secrets are for meetings only.
    Key pair{};
  };
  std::shared_ptr<const OwnIdentity> own;
  Key meeting{};                // digest of the whole table and of its random nonce
  std::vector<Member> members;  // by rank, this process among them
};

// kMismatch: two members have one name, or a member shares no secret with this process.
Result<std::shared_ptr<const JoinedKeys>> join_keys(std::shared_ptr<const OwnIdentity> own,
                                                    const Key& meeting,
                                                    const std::vector<Identity>& members);

// By which other processes know one: the first bytes of its public half (WIRE 9.7).
std::uint64_t name_of(const Key& public_key);

// kMismatch, with both ranks: two members have one name, so one carries the other's public half.
Status check_distinct(const std::vector<Identity>& members);

}  // namespace leeway::keys
