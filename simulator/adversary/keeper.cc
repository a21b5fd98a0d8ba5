#include "adversary/keeper.h"

#include <algorithm>
#include <utility>

#include "keys/table_proof.h"
#include "rendezvous/control_message.h"

namespace leeway::sim::adversary {

namespace rv = rendezvous;

Bytes Keeper::hello(const std::string& key, const Bytes& value) {
  hellos_.push_back(value);
  if (one_in_ == 0 || !dice_.one_in(one_in_)) return value;
  ++changed_;
  switch (dice_.between(0, 3)) {
    case 0:
      return damaged(value);
    case 1:
      return any(hellos_);
    default:
      return hello_of_another(key, value);
  }
}

Bytes Keeper::table(const std::string& key, const Bytes& value, int size) {
  tables_.push_back(value);
  if (one_in_ == 0 || !dice_.one_in(one_in_)) return value;
  ++changed_;
  switch (dice_.between(0, 3)) {
    case 0:
      return damaged(value);
    case 1:
      return any(tables_);
    default:
      return table_of_others(key, value, size);
  }
}

Bytes Keeper::damaged(Bytes value) {
  const std::uint32_t last = static_cast<std::uint32_t>(value.size() - 1);
  for (std::uint32_t count = dice_.between(1, 3); count > 0; --count) {
    std::byte& byte = value[dice_.between(0, last)];
    byte ^= static_cast<std::byte>(dice_.between(1, 255));
  }
  if (dice_.one_in(8)) value.resize(dice_.between(0, last));
  return value;
}

// Returns the Hello `value` with one part replaced by the same part of another rank's Hello.
Bytes Keeper::hello_of_another(const std::string& key, const Bytes& value) {
  auto mine = rv::parse_hello(value);
  const auto other = rv::parse_hello(any(hellos_));
  if (!mine || !other) return value;
  switch (dice_.between(0, 3)) {
    case 0:
      mine->mutable_identity()->set_public_key(other->identity().public_key());
      break;
    case 1:
      *mine->mutable_identity() = other->identity();
      break;
    case 2:
      *mine->mutable_data() = other->data();
      break;
    default:
      mine->set_process(other->process());
      *mine->mutable_identity() = other->identity();
  }
  const std::string old_proof = std::exchange(*mine->mutable_proof(), {});
  return proved(rv::value_of(*mine), key, old_proof);
}

// Returns the table `value` with one row, or a part of it, overwritten from or swapped with another
// row.
Bytes Keeper::table_of_others(const std::string& key, const Bytes& value, int size) {
  auto welcome = rv::parse_welcome(value, size);
  if (!welcome || !welcome->has_group()) return value;
  control::Group& group = *welcome->mutable_group();
  const int to = static_cast<int>(dice_.between(0, static_cast<std::uint32_t>(size - 1)));
  const int from = static_cast<int>(dice_.between(0, static_cast<std::uint32_t>(size - 1)));
  switch (dice_.between(0, 4)) {
    case 0:
      group.mutable_identities(to)->set_public_key(group.identities(from).public_key());
      break;
    case 1:
      group.mutable_identities()->SwapElements(to, from);
      break;
    case 2:
      group.mutable_identities(to)->set_public_key(group.identities(from).public_key());
      group.set_processes(to, group.processes(to) + 1);
      break;
    case 3:
      group.mutable_datagrams()->mutable_members()->SwapElements(to, from);
      group.mutable_identities()->SwapElements(to, from);
      break;
    default:
      group.mutable_datagrams()->mutable_members(to)->set_port(
          group.datagrams().members(from).port());
  }
  const std::string old_proof = std::exchange(*welcome->mutable_proof(), {});
  return proved(rv::value_of(*welcome), key, old_proof);
}

Bytes Keeper::proved(Bytes message, const std::string& key, const std::string& old_proof) const {
  if (secret_ != nullptr) {
    const Bytes proof = keys::prove(*secret_, key, message);
    return rv::with_proof(std::move(message), proof);
  }
  return rv::with_proof(std::move(message), std::as_bytes(std::span(old_proof)));
}

}  // namespace leeway::sim::adversary
