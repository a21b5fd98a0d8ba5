#include "seal/ipsec_mb.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "base/contracts.h"

namespace leeway::seal {
namespace {

// Returns the library's functions; null if this processor cannot use them. They have no state, so
// all threads share them, as long as the process lives.
const IMB_MGR* functions() {
  static const IMB_MGR* const found = []() -> const IMB_MGR* {
    constexpr std::uint64_t kNeeded =
        IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ | IMB_FEATURE_SELF_TEST_PASS;
    IMB_MGR* const manager = alloc_mb_mgr(0);
    if (manager == nullptr) return nullptr;
    init_mb_mgr_auto(manager, nullptr);
    if ((manager->features & kNeeded) == kNeeded) return manager;
    free_mb_mgr(manager);
    return nullptr;
  }();
  return found;
}

class IpsecMbAesGcm final : public Cipher {
 public:
  ~IpsecMbAesGcm() override {
    OPENSSL_cleanse(&key_, sizeof key_);
    OPENSSL_cleanse(&context_, sizeof context_);
    OPENSSL_cleanse(vector_.data(), vector_.size());
  }

  void set_key(const CipherKey& key, const NonceVector& vector) override {
    vector_ = vector;
    IMB_AES128_GCM_PRE(functions_, key.data(), &key_);
  }

  void seal(std::uint64_t number, std::span<const Slice> pieces, MutableByteSpan out) override {
    start(number, out);
    std::byte* to = out.data() + kHeaderBytes;
    for (const Slice& piece : pieces) {
      IMB_AES128_GCM_ENC_UPDATE(functions_, &key_, &context_, octets(to), octets(piece.data),
                                piece.bytes);
      to += piece.bytes;
    }
    LEEWAY_ASSERT(to + kProofBytes == out.data() + out.size());
    IMB_AES128_GCM_ENC_FINALIZE(functions_, &key_, &context_, octets(to), kProofBytes);
  }

  bool open(std::uint64_t number, MutableByteSpan datagram) override {
    start(number, datagram);
    std::byte* const sealed = datagram.data() + kHeaderBytes;
    const std::byte* const proof = datagram.data() + datagram.size() - kProofBytes;
    std::array<std::uint8_t, kProofBytes> expected;
    IMB_AES128_GCM_DEC_UPDATE(functions_, &key_, &context_, octets(sealed), octets(sealed),
                              static_cast<std::uint64_t>(proof - sealed));
    IMB_AES128_GCM_DEC_FINALIZE(functions_, &key_, &context_, expected.data(), expected.size());
    return CRYPTO_memcmp(expected.data(), proof, kProofBytes) == 0;
  }

 private:
  static std::uint8_t* octets(std::byte* bytes) { return reinterpret_cast<std::uint8_t*>(bytes); }
  static const std::uint8_t* octets(const std::byte* bytes) {
    return reinterpret_cast<const std::uint8_t*>(bytes);
  }

  // Sets the nonce, and the header as the additional data that the authentication tag covers.
  void start(std::uint64_t number, ByteSpan datagram) {
    const NonceVector nonce = nonce_of(vector_, number);
    IMB_AES128_GCM_INIT(functions_, &key_, &context_, octets(nonce.data()), octets(datagram.data()),
                        kHeaderBytes);
  }

  const IMB_MGR* const functions_ = functions();
  NonceVector vector_{};
  alignas(64) gcm_key_data key_{};
  gcm_context_data context_{};
};

}  // namespace

std::string ipsec_mb_version() {
  return functions() == nullptr ? std::string() : imb_get_version_str();
}

std::unique_ptr<Cipher> make_ipsec_mb_aes_gcm() {
  LEEWAY_ASSERT(functions() != nullptr);
  return std::make_unique<IpsecMbAesGcm>();
}

}  // namespace leeway::seal
