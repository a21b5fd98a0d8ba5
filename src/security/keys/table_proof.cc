#include "keys/table_proof.h"

#include <openssl/crypto.h>

#include <algorithm>

namespace leeway::keys {
namespace {

// No place contains a zero byte, so a zero byte separates place and message.
Key proof_by(const Secret& secret, const std::string& place, ByteSpan message) {
  const ByteSpan text = std::as_bytes(std::span(place));
  std::vector<std::byte> input(text.begin(), text.end());
  input.push_back(std::byte{0});
  input.insert(input.end(), message.begin(), message.end());
  Key key = secret.key_for("table");
  const Key proof = extract(key, input);
  wipe(key);
  return proof;
}

}  // namespace

std::vector<std::byte> prove(const Secrets& secrets, const std::string& place, ByteSpan message) {
  std::vector<std::byte> proofs;
  for (const std::uint64_t id : secrets.ids()) {
    const Key proof = proof_by(*secrets.find(id), place, message);
    proofs.insert(proofs.end(), proof.begin(), proof.end());
  }
  return proofs;
}

bool is_proved(const Secrets& own, const std::vector<std::uint64_t>& theirs,
               const std::string& place, ByteSpan message, ByteSpan proof) {
  const std::uint64_t id = shared_secret(own.ids(), theirs);
  if (id == 0 || proof.size() != theirs.size() * sizeof(Key)) return false;
  const auto at =
      static_cast<std::size_t>(std::find(theirs.begin(), theirs.end(), id) - theirs.begin());
  const Key right = proof_by(*own.find(id), place, message);
  return ::CRYPTO_memcmp(right.data(), proof.data() + at * sizeof(Key), sizeof(Key)) == 0;
}

}  // namespace leeway::keys
