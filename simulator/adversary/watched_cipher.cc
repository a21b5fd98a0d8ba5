#include "adversary/watched_cipher.h"

#include <algorithm>
#include <memory>

#include "seal/aead.h"

namespace leeway::sim::adversary {
namespace {

class WatchedCipher final : public seal::Cipher {
 public:
  WatchedCipher(SealBook& book, bool seals)
      : book_(book), inner_(seal::make_aead(seal::AeadKind::aes_128_gcm, seals)) {}

  void set_key(const seal::CipherKey& key, const seal::NonceVector& vector) override {
    decltype(book_.uses)::key_type name;
    std::copy(vector.begin(), vector.end(), std::copy(key.begin(), key.end(), name.begin()));
    use_ = &book_.uses[name];
    inner_->set_key(key, vector);
  }

  void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) override {
    if (number <= use_->sealed) note("a nonce was used twice under one key");
    use_->sealed = std::max(use_->sealed, number);
    inner_->seal(number, pieces, out);
  }

  bool open(std::uint64_t number, MutableByteSpan datagram) override {
    if (!inner_->open(number, datagram)) return false;
    if (number > use_->sealed) note("a datagram was opened that nobody had sealed");
    if (!use_->opened.insert(number).second) note("a datagram was opened twice");
    return true;
  }

 private:
  void note(const char* what) {
    if (book_.broken.empty()) book_.broken = what;
  }

  SealBook& book_;
  const std::unique_ptr<seal::Cipher> inner_;
  SealBook::Use* use_ = nullptr;
};

}  // namespace

seal::CipherMaker watched_cipher(SealBook& book) {
  return [&book](bool seals) { return std::make_unique<WatchedCipher>(book, seals); };
}

}  // namespace leeway::sim::adversary
