#include "seal/aead.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <memory>

#include "seal/ipsec_mb.h"
#include "unit/seal/pair.h"

namespace leeway::seal {
namespace {

const unsigned char* octets(const Bytes& bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// Computes the sealed bytes and the proof by calling OpenSSL in the way that its manual describes.
// Tests compare with it.
Bytes reference(const EVP_CIPHER* cipher, const Bytes& key, const Bytes& nonce,
                const Bytes& covered, const Bytes& plain) {
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  Bytes out(plain.size() + kProofBytes);
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  int length = 0;
  EVP_EncryptInit_ex(context, cipher, nullptr, octets(key), octets(nonce));
  EVP_EncryptUpdate(context, nullptr, &length, octets(covered), static_cast<int>(covered.size()));
  EVP_EncryptUpdate(context, to, &length, octets(plain), static_cast<int>(plain.size()));
  EVP_EncryptFinal_ex(context, to + length, &length);
  EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kProofBytes, to + plain.size());
  EVP_CIPHER_CTX_free(context);
  return out;
}

// The first case of NIST's CAVP file gcmEncryptExtIV128 in which key, plaintext, additional data
// and tag have 128 bits each.
TEST(AeadReference, HoldsForNistsVector) {
  EXPECT_EQ(
      reference(EVP_aes_128_gcm(), from_hex("c939cc13397c1d37de6ae0e1cb7c423c"),
                from_hex("b3d8cc017cbb89b39e0f67e2"), from_hex("24825602bd12a984e0092d3e448eda5f"),
                from_hex("c3b3c41f113a31b73d9a5cd432103069")),
      from_hex("93fe7d9e9bfd10348a5606e5cafa73540032a1dc85f1c9786925a2e71d8272dd"));
}

// RFC 8439, 2.8.2.
TEST(AeadReference, HoldsForTheVectorOfRfc8439) {
  EXPECT_EQ(
      reference(EVP_chacha20_poly1305(),
                from_hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"),
                from_hex("070000004041424344454647"), from_hex("50515253c0c1c2c3c4c5c6c7"),
                bytes_of("Ladies and Gentlemen of the class of '99: If I could offer you only one "
                         "tip for the future, sunscreen would be it.")),
      from_hex("d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca96712"
               "82fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58"
               "fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09"
               "e26a7e902ecbd0600691"));
}

enum class By { openssl, ipsec_mb };

// A cipher suite and the library that computes it.
struct Suite {
  AeadKind kind;
  By by;

  std::unique_ptr<Cipher> make(bool seals) const {
    return by == By::openssl ? make_openssl_aead(kind, seals) : make_ipsec_mb_aes_gcm();
  }
  bool is_here() const { return by == By::openssl || !ipsec_mb_version().empty(); }
};

constexpr Suite kSuites[] = {{AeadKind::aes_128_gcm, By::openssl},
                             {AeadKind::chacha20_poly1305, By::openssl},
                             {AeadKind::aes_128_gcm, By::ipsec_mb}};

class AeadTest : public ::testing::TestWithParam<Suite> {
 protected:
  static constexpr std::uint64_t kNumber = 77;

  void SetUp() override {
    if (!GetParam().is_here()) GTEST_SKIP() << "this build or this processor is without IPsec-MB";
    sealing_ = GetParam().make(true);
    opening_ = GetParam().make(false);
    const Bytes key = pattern(32, 5);
    std::copy(key.begin(), key.end(), key_.begin());
    const Bytes vector = pattern(12, 6);
    std::copy(vector.begin(), vector.end(), vector_.begin());
    sealing_->set_key(key_, vector_);
    opening_->set_key(key_, vector_);
  }

  Bytes seal(const Bytes& plain, std::size_t cut) {
    Bytes out(kOverheadBytes + plain.size());
    encode_header({.counter = kNumber}, out);
    const Slice pieces[] = {{plain.data(), cut}, {plain.data() + cut, plain.size() - cut}};
    sealing_->seal(kNumber, pieces, out);
    return out;
  }

  CipherKey key_;
  NonceVector vector_;
  std::unique_ptr<Cipher> sealing_;
  std::unique_ptr<Cipher> opening_;
};

class Aes128GcmTest : public AeadTest {};

// Seals NIST's vector as a datagram. The datagram's header is the vector's additional data.
TEST_P(Aes128GcmTest, SealsNistsVector) {
  constexpr std::uint64_t kNistNumber = 0x0102030405060708;
  NonceVector vector = array_of<12>("b3d8cc017cbb89b39e0f67e2");
  for (std::size_t i = 0; i < 8; ++i) vector[4 + i] ^= static_cast<std::byte>(i + 1);
  sealing_->set_key(array_of<32>("c939cc13397c1d37de6ae0e1cb7c423c"), vector);
  const Bytes plain = from_hex("c3b3c41f113a31b73d9a5cd432103069");
  Bytes out = from_hex("24825602bd12a984e0092d3e448eda5f");
  out.resize(kOverheadBytes + plain.size());
  const Slice pieces[] = {{plain.data(), 5}, {plain.data() + 5, 0}, {plain.data() + 5, 11}};
  sealing_->seal(kNistNumber, pieces, out);
  EXPECT_EQ(Bytes(out.begin() + kHeaderBytes, out.end()),
            from_hex("93fe7d9e9bfd10348a5606e5cafa73540032a1dc85f1c9786925a2e71d8272dd"));
}

TEST_P(AeadTest, SealsAsTheReferenceHoweverSlicesAreCut) {
  const bool aes = GetParam().kind == AeadKind::aes_128_gcm;
  NonceVector nonce = vector_;
  nonce[11] ^= static_cast<std::byte>(kNumber);
  for (std::size_t bytes = 1; bytes < 300; bytes += 7) {
    const Bytes plain = pattern(bytes);
    for (std::size_t cut = 0; cut <= bytes; cut += 13) {
      const Bytes out = seal(plain, cut);
      const Bytes covered(out.begin(), out.begin() + kHeaderBytes);
      ASSERT_EQ(Bytes(out.begin() + kHeaderBytes, out.end()),
                reference(aes ? EVP_aes_128_gcm() : EVP_chacha20_poly1305(),
                          Bytes(key_.begin(), key_.begin() + (aes ? 16 : 32)),
                          Bytes(nonce.begin(), nonce.end()), covered, plain))
          << bytes << " cut at " << cut;
    }
  }
}

TEST_P(AeadTest, OpensWhatWasSealed) {
  for (const std::size_t bytes : {1, 15, 16, 17, 56, 1440, 8940, 32'000}) {
    const Bytes plain = pattern(bytes);
    Bytes out = seal(plain, bytes / 3);
    ASSERT_TRUE(opening_->open(kNumber, out)) << bytes;
    EXPECT_EQ(Bytes(out.begin() + kHeaderBytes, out.end() - kProofBytes), plain) << bytes;
  }
}

TEST_P(AeadTest, RefusesAnotherNumber) {
  Bytes out = seal(pattern(100), 0);
  EXPECT_FALSE(opening_->open(kNumber + 1, out));
}

TEST_P(AeadTest, RefusesEveryFlippedBit) {
  const Bytes sealed = seal(pattern(40), 20);
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    Bytes damaged = sealed;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(opening_->open(kNumber, damaged)) << bit;
  }
}

std::string name_of(const ::testing::TestParamInfo<Suite>& suite) {
  const std::string kind =
      suite.param.kind == AeadKind::aes_128_gcm ? "Aes128Gcm" : "Chacha20Poly1305";
  return kind + (suite.param.by == By::openssl ? "ByOpenssl" : "ByIpsecMb");
}
INSTANTIATE_TEST_SUITE_P(Suites, AeadTest, ::testing::ValuesIn(kSuites), name_of);
INSTANTIATE_TEST_SUITE_P(Suites, Aes128GcmTest, ::testing::Values(kSuites[0], kSuites[2]), name_of);

// Two machines of a group may have different libraries, so each must open what the other sealed.
TEST(Aead, LibrariesOpenEachOthersDatagrams) {
  if (ipsec_mb_version().empty())
    GTEST_SKIP() << "this build or this processor is without IPsec-MB";
  const CipherKey key = array_of<32>("c939cc13397c1d37de6ae0e1cb7c423c");
  const NonceVector vector = array_of<12>("b3d8cc017cbb89b39e0f67e2");
  for (const bool first : {true, false}) {
    const auto sealing =
        first ? make_openssl_aead(AeadKind::aes_128_gcm, true) : make_ipsec_mb_aes_gcm();
    const auto opening =
        first ? make_ipsec_mb_aes_gcm() : make_openssl_aead(AeadKind::aes_128_gcm, false);
    sealing->set_key(key, vector);
    opening->set_key(key, vector);
    for (const std::size_t bytes : {1, 16, 1439, 1440, 8940}) {
      const Bytes plain = pattern(bytes);
      Bytes out(kOverheadBytes + bytes);
      encode_header({.counter = bytes}, out);
      const Slice pieces[] = {{plain.data(), bytes}};
      sealing->seal(bytes, pieces, out);
      ASSERT_TRUE(opening->open(bytes, out)) << bytes;
      EXPECT_EQ(Bytes(out.begin() + kHeaderBytes, out.end() - kProofBytes), plain) << bytes;
    }
  }
}

TEST(Aead, SaysForPeopleWhoSeals) {
  const std::string text = preferred_aead();
  EXPECT_EQ(text.find("IPsec-MB") != std::string::npos,
            !ipsec_mb_version().empty() && !prefers_chacha())
      << text;
}

}  // namespace
}  // namespace leeway::seal
