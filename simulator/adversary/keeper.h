// A store in which ranks meet, and its hostile keeper. The keeper reads and remembers every value,
// and may hand out another value in its place. A keeper who holds the job's secret is a member, so
// he also makes valid proofs for what he writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "keys/secret.h"
#include "leeway/types.h"
#include "swarm/dice.h"

namespace leeway::sim::adversary {

using Bytes = std::vector<std::byte>;

class Keeper {
 public:
  // The keeper changes one value in `one_in`, or none if `one_in` is 0. `secret` is null if he does
  // not hold the job's secret. `dice` outlives the keeper.
  Keeper(swarm::Dice& dice, std::uint32_t one_in, std::shared_ptr<const keys::Secrets> secret)
      : dice_(dice), one_in_(one_in), secret_(std::move(secret)) {}

  // Return the value that a rank finds at `key` after `value` was put there.
  Bytes hello(const std::string& key, const Bytes& value);
  Bytes table(const std::string& key, const Bytes& value, int size);

  std::uint64_t changed() const { return changed_; }

 private:
  // Damages the bytes, without regard to their meaning.
  Bytes damaged(Bytes value);
  Bytes hello_of_another(const std::string& key, const Bytes& value);
  Bytes table_of_others(const std::string& key, const Bytes& value, int size);
  Bytes proved(Bytes message, const std::string& key, const std::string& old_proof) const;
  const Bytes& any(const std::vector<Bytes>& seen) {
    return seen[dice_.between(0, static_cast<std::uint32_t>(seen.size() - 1))];
  }

  swarm::Dice& dice_;
  const std::uint32_t one_in_;
  const std::shared_ptr<const keys::Secrets> secret_;
  std::vector<Bytes> hellos_;  // hellos of all meetings
  std::vector<Bytes> tables_;
  std::uint64_t changed_ = 0;
};

}  // namespace leeway::sim::adversary
