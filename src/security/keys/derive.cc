#include "keys/derive.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <vector>

#include "base/contracts.h"
#include "base/exit_stop.h"

namespace leeway::keys {
namespace {

const unsigned char* raw(ByteSpan bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

Key hmac(ByteSpan key, ByteSpan text) {
  Key mac;
  unsigned int bytes = 0;
  const auto* const done =
      ::HMAC(EVP_sha256(), raw(key), static_cast<int>(key.size()), raw(text), text.size(),
             reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  LEEWAY_ASSERT(done != nullptr && bytes == mac.size());
  return mac;
}

std::atomic<bool> openssl_is_gone{false};

// Keeps OpenSSL usable while the process ends, because some threads, also the program's own, may
// still join or seal. The first initialisation of OpenSSL decides whether exit() tears it down. So
// this function initialises OpenSSL when the library is loaded. If the program initialised OpenSSL
// earlier, end_threads() runs before OpenSSL goes.
[[gnu::constructor]] void keep_openssl_at_exit() {
  (void)::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  (void)::OPENSSL_atexit([] {
    openssl_is_gone = true;
    end_threads();
  });
}

}  // namespace

Key extract(ByteSpan salt, ByteSpan input) {
  static constexpr Key kNoSalt{};
  return hmac(salt.empty() ? ByteSpan(kNoSalt) : salt, input);
}

void expand(const Key& key, std::string_view label, MutableByteSpan out) {
  LEEWAY_ASSERT(out.size() <= 255 * sizeof(Key));
  const ByteSpan info = std::as_bytes(std::span(label));
  std::vector<std::byte> block;  // T(n-1) | info | n
  Key last{};
  for (unsigned count = 1; !out.empty(); ++count) {
    if (count > 1) block.assign(last.begin(), last.end());
    block.insert(block.end(), info.begin(), info.end());
    block.push_back(static_cast<std::byte>(count));
    last = hmac(key, block);
    const std::size_t bytes = std::min(out.size(), last.size());
    std::copy_n(last.begin(), bytes, out.begin());
    out = out.subspan(bytes);
    wipe(block);
    block.clear();
  }
  wipe(last);
}

Key expand(const Key& key, std::string_view label) {
  Key out;
  expand(key, label, out);
  return out;
}

void fill_randomly(MutableByteSpan out) {
  const int done =
      ::RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size()));
  LEEWAY_ASSERT(done == 1);
}

Status check_random() {
  if (openssl_is_gone) return Status::error(StatusCode::kCancelled, "the process is ending");
  unsigned char byte = 0;
  if (::RAND_bytes(&byte, 1) == 1) return Status();
  ::ERR_clear_error();
  if (::syscall(SYS_getrandom, &byte, 1, GRND_NONBLOCK) >= 0)
    return Status::error(StatusCode::kResourceExhausted, "no memory is left for random numbers");
  return Status::error(StatusCode::kUnsupported,
                       "no random numbers can be had: getrandom: %s; does a seccomp filter of this "
                       "container forbid it?",
                       std::strerror(errno));
}

void wipe(MutableByteSpan secret) {
  ::OPENSSL_cleanse(secret.data(), secret.size());
}

}  // namespace leeway::keys
