#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/contracts.h"
#include "seal/aead.h"

namespace leeway::seal {
namespace {

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

const EVP_CIPHER* cipher_of(AeadKind kind) {
  return kind == AeadKind::aes_128_gcm ? EVP_aes_128_gcm() : EVP_chacha20_poly1305();
}

const unsigned char* octets(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* octets(std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(bytes);
}

// Calls of OpenSSL fail only for want of memory or for wrong arguments. After the context was made
// neither can happen, so failures are asserted.
class OpensslAead final : public Cipher {
 public:
  OpensslAead(AeadKind kind, bool seals) : seals_(seals), context_(EVP_CIPHER_CTX_new()) {
    LEEWAY_ASSERT(context_ != nullptr && EVP_CipherInit_ex(context_.get(), cipher_of(kind), nullptr,
                                                           nullptr, nullptr, seals_) == 1);
  }
  ~OpensslAead() override { OPENSSL_cleanse(vector_.data(), vector_.size()); }

  void set_key(const CipherKey& key, const NonceVector& vector) override {
    vector_ = vector;
    const int done = EVP_CipherInit_ex(context_.get(), nullptr, nullptr, octets(key.data()),
                                       octets(vector.data()), seals_);
    LEEWAY_ASSERT(done == 1);
  }

  void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) override {
    start(number, out);
    std::byte* to = out.data() + kHeaderBytes;
    for (const Slice& piece : pieces) {
      update(octets(to), piece.data, piece.bytes);
      to += piece.bytes;
    }
    int rest = 0;
    const bool done =
        EVP_EncryptFinal_ex(context_.get(), octets(to), &rest) == 1 &&
        EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_GET_TAG, kProofBytes, to) == 1;
    LEEWAY_ASSERT(done && rest == 0 && to + kProofBytes == out.data() + out.size());
  }

  bool open(std::uint64_t number, MutableByteSpan datagram) override {
    start(number, datagram);
    std::byte* const sealed = datagram.data() + kHeaderBytes;
    std::byte* const proof = datagram.data() + datagram.size() - kProofBytes;
    update(octets(sealed), sealed, static_cast<std::size_t>(proof - sealed));
    LEEWAY_ASSERT(EVP_CIPHER_CTX_ctrl(context_.get(), EVP_CTRL_AEAD_SET_TAG, kProofBytes, proof) ==
                  1);
    int rest = 0;
    return EVP_DecryptFinal_ex(context_.get(), octets(proof), &rest) == 1;
  }

 private:
  // Sets the nonce, and the header as the additional data that the authentication tag covers.
  void start(std::uint64_t number, ByteSpan datagram) {
    const NonceVector nonce = nonce_of(vector_, number);
    LEEWAY_ASSERT(EVP_CipherInit_ex(context_.get(), nullptr, nullptr, nullptr, octets(nonce.data()),
                                    seals_) == 1);
    update(nullptr, datagram.data(), kHeaderBytes);
  }

  void update(unsigned char* out, const std::byte* data, std::size_t bytes) {
    int length = 0;
    LEEWAY_ASSERT(
        EVP_CipherUpdate(context_.get(), out, &length, octets(data), static_cast<int>(bytes)) == 1);
  }

  const bool seals_;
  NonceVector vector_{};
  std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context_;
};

}  // namespace

std::unique_ptr<Cipher> make_openssl_aead(AeadKind kind, bool seals) {
  return std::make_unique<OpensslAead>(kind, seals);
}

}  // namespace leeway::seal
