#include "sealing/null_cipher.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace leeway::sim {
namespace {

class NullCipher final : public seal::Cipher {
 public:
  void set_key(const seal::CipherKey& key, const seal::NonceVector& vector) override {
    key_ = crc32c(vector, crc32c(key));
  }

  void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) override {
    std::byte* to = out.data() + seal::kHeaderBytes;
    for (const Slice& piece : pieces) to = std::copy_n(piece.data, piece.bytes, to);
    const Proof proof = proof_of(number, out);
    std::copy(proof.begin(), proof.end(), to);
  }

  bool open(std::uint64_t number, MutableByteSpan datagram) override {
    const Proof proof = proof_of(number, datagram);
    return std::equal(proof.begin(), proof.end(), datagram.end() - seal::kProofBytes);
  }

 private:
  using Proof = std::array<std::byte, seal::kProofBytes>;

  // The proof repeats one checksum four times, so that damage to the proof is found, too.
  Proof proof_of(std::uint64_t number, ByteSpan datagram) const {
    std::array<std::byte, sizeof number> nonce;
    std::memcpy(nonce.data(), &number, sizeof number);
    const std::uint32_t sum =
        crc32c(datagram.first(datagram.size() - seal::kProofBytes), crc32c(nonce, key_));
    Proof proof;
    for (std::size_t at = 0; at < proof.size(); at += sizeof sum)
      std::memcpy(proof.data() + at, &sum, sizeof sum);
    return proof;
  }

  std::uint32_t key_ = 0;
};

seal::Party party_of(Rank process) {
  seal::Party party{.tag_base = static_cast<std::uint32_t>(process + 1) << 16};
  party.public_key[0] = static_cast<std::byte>(process >> 8);
  party.public_key[1] = static_cast<std::byte>(process & 0xFF);
  return party;
}

}  // namespace

seal::CipherMaker null_cipher() {
  return [](bool) { return std::make_unique<NullCipher>(); };
}

std::optional<seal::KeyExchange::Halves> NullExchange::make(const keys::Key&) {
  Halves halves;
  const std::uint64_t number[] = {seed_, ++made_};
  std::memcpy(halves.private_half.data(), number, sizeof number);
  halves.public_half = halves.private_half;
  return halves;
}

std::optional<keys::Key> NullExchange::agree(const keys::Key& private_half,
                                             const keys::Key& other) {
  keys::Key agreed;
  for (std::size_t i = 0; i < agreed.size(); ++i) agreed[i] = private_half[i] ^ other[i];
  return agreed;
}

seal::PairKeys null_keys(Rank self, Rank peer) {
  return seal::derive_pair({}, {}, {}, party_of(self), party_of(peer), 0, 0);
}

ByteSpan contents_of(ByteSpan datagram) {
  seal::Header header;
  if (seal::decode_header(datagram, header) != seal::Refusal::none) return datagram;
  return datagram.subspan(seal::kHeaderBytes, datagram.size() - seal::kOverheadBytes);
}

}  // namespace leeway::sim
