#include "seal/key_schedule.h"

#include <algorithm>
#include <string>

namespace leeway::seal {
namespace {

void append(std::string& text, const keys::Key& key) {
  text.append(reinterpret_cast<const char*>(key.data()), key.size());
}

std::string info_of(const char* label, const Party& from, const Party& to) {
  std::string info = label;
  append(info, from.public_key);
  append(info, to.public_key);
  return info;
}

Direction direction_of(const keys::Key& pair, const Party& from, const Party& to, std::uint8_t lane,
                       std::uint8_t suite) {
  std::string info = info_of("direction", from, to);
  info += {static_cast<char>(lane), static_cast<char>(suite)};
  Direction direction{.secret = keys::expand(pair, info)};
  std::array<std::byte, 2> low;
  keys::expand(pair, info_of("tag", from, to), low);
  direction.tag = (to.tag_base & 0xFFFF0000) | std::to_integer<std::uint32_t>(low[0]) |
                  std::to_integer<std::uint32_t>(low[1]) << 8;
  return direction;
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
  keys::Key pair = keys::extract(salt, input);
  keys::wipe(input);
  const PairKeys keys{.outbound = direction_of(pair, self, peer, lane, suite),
                      .inbound = direction_of(pair, peer, self, lane, suite),
                      .leads = first};
  keys::wipe(pair);
  return keys;
}

keys::Key next_phase(const keys::Key& secret) {
  return keys::expand(secret, "next");
}

void key_cipher(const keys::Key& secret, Cipher& cipher) {
  CipherKey key = keys::expand(secret, "key");
  NonceVector vector;
  keys::expand(secret, "iv", vector);
  cipher.set_key(key, vector);
  keys::wipe(key);
  keys::wipe(vector);
}

}  // namespace leeway::seal
