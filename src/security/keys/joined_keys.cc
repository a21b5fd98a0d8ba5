#include "keys/joined_keys.h"

#include <cstring>
#include <map>
#include <span>
#include <utility>

namespace leeway::keys {

Result<std::shared_ptr<const OwnIdentity>> OwnIdentity::make(std::shared_ptr<const Secrets> secrets,
                                                             bool prefers_chacha) {
  auto key = ProcessKey::make();
  if (!key.ok()) return key.status();
  auto own = std::make_shared<OwnIdentity>();
  own->told.public_key = (*key)->public_half();
  own->told.secrets = secrets->ids();
  fill_randomly(std::as_writable_bytes(std::span(&own->told.tag, 1)));
  own->told.tag = (own->told.tag & ~1u) | (prefers_chacha ? 1u : 0u);
  own->key = std::move(*key);
  own->secrets = std::move(secrets);
  return std::shared_ptr<const OwnIdentity>(std::move(own));
}

std::shared_ptr<const OwnIdentity> OwnIdentity::with(std::shared_ptr<const Secrets> others) const {
  auto own = std::make_shared<OwnIdentity>(*this);
  own->told.secrets = others->ids();
  own->secrets = std::move(others);
  return own;
}

Result<std::shared_ptr<const JoinedKeys>> join_keys(std::shared_ptr<const OwnIdentity> own,
                                                    const Key& meeting,
                                                    const std::vector<Identity>& members) {
  if (Status status = check_distinct(members); !status.ok()) return status;
  auto joined = std::make_shared<JoinedKeys>();
  joined->meeting = meeting;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const Identity& one = members[rank];
    const Secret* const shared = own->secrets->find(shared_secret(own->told.secrets, one.secrets));
    if (shared == nullptr) {
      return Status::error(StatusCode::kMismatch,
                           "rank %zu shares no secret with this process; LEEWAY_SECRET_FILE must "
                           "hold one that all ranks have",
                           rank);
    }
    joined->members.push_back(
        {one.public_key, one.tag,
         own->secrets->for_meetings_only() ? Key{} : shared->key_for("pair")});
  }
  joined->own = std::move(own);
  return std::shared_ptr<const JoinedKeys>(std::move(joined));
}

std::uint64_t name_of(const Key& public_key) {
  std::uint64_t name = 0;
  std::memcpy(&name, public_key.data(), sizeof name);
  return name;
}

Status check_distinct(const std::vector<Identity>& members) {
  std::map<std::uint64_t, std::size_t> ranks;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const auto [other, is_new] = ranks.emplace(name_of(members[rank].public_key), rank);
    if (is_new) continue;
    return Status::error(StatusCode::kMismatch,
                         "rank %zu carries the public key of rank %zu: one of the two is not who "
                         "it says, so nothing can be sealed for either; find out what wrote it, "
                         "and make a new secret (leeway keygen)",
                         rank, other->second);
  }
  return Status();
}

}  // namespace leeway::keys
