#include "seal/key_schedule.h"

#include <algorithm>
#include <string>

namespace leeway::seal {
namespace {

void append(std::string& text, const keys::Key& key) {
  text.append(reinterpret_cast<const char*>(key.data()), key.size());
}

std::string info_of(const char* label, const keys::Key& from, const keys::Key& to) {
  std::string info = label;
  append(info, from);
  append(info, to);
  return info;
}

std::uint32_t tag_of(const keys::Key& root, const Party& from, const Party& to) {
  std::array<std::byte, 2> low;
  keys::expand(root, info_of("tag", from.public_key, to.public_key), low);
  return (to.tag_base & 0xFFFF0000) | std::to_integer<std::uint32_t>(low[0]) |
         std::to_integer<std::uint32_t>(low[1]) << 8;
}

}  // namespace

PairKeys derive_pair(const keys::Key& agreed, const keys::Key& shared, const keys::Key& meeting,
                     const Party& self, const Party& peer, std::uint8_t lane, std::uint8_t suite) {
  const bool first = self.public_key < peer.public_key;
  std::array<std::byte, 64> salt;
  std::copy_n((first ? self : peer).public_key.begin(), 32, salt.begin());
  std::copy_n((first ? peer : self).public_key.begin(), 32, salt.begin() + 32);
  std::array<std::byte, 96> input;
  std::copy_n(agreed.begin(), 32, input.begin());
  std::copy_n(shared.begin(), 32, input.begin() + 32);
  std::copy_n(meeting.begin(), 32, input.begin() + 64);
  PairKeys keys{.root = keys::extract(salt, input),
                .own = self.public_key,
                .peers = peer.public_key,
                .lane = lane,
                .suite = suite,
                .leads = first};
  keys::wipe(input);
  keys.outbound_tag = tag_of(keys.root, self, peer);
  keys.inbound_tag = tag_of(keys.root, peer, self);
  return keys;
}

void next_phase(PairKeys& keys, const keys::Key& agreed) {
  keys::Key next = keys::extract(keys.root, agreed);
  keys.root = next;
  keys::wipe(next);
}

void key_cipher(const PairKeys& keys, bool seals, Cipher& cipher) {
  std::string info = seals ? info_of("direction", keys.own, keys.peers)
                           : info_of("direction", keys.peers, keys.own);
  info += {static_cast<char>(keys.lane), static_cast<char>(keys.suite)};
  keys::Key secret = keys::expand(keys.root, info);
  CipherKey key = keys::expand(secret, "key");
  NonceVector vector;
  keys::expand(secret, "iv", vector);
  cipher.set_key(key, vector);
  keys::wipe(secret);
  keys::wipe(key);
  keys::wipe(vector);
}

}  // namespace leeway::seal
