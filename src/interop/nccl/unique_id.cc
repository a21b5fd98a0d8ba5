#include "interop/nccl/unique_id.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "base/crc32c.h"
#include "base/hex_text.h"
#include "base/network_address.h"

namespace leeway::nccl {
namespace {

// What differs between the uses of an id: the magic, the noun for it in messages, and what to do if
// another library made it.
struct Words {
  std::string_view magic;
  const char* noun;
  const char* foreign;
};
constexpr std::array<Words, 2> kWords{{
    {"LEEWAYID", "unique id",
     "the process that made this id did not load Leeway; start all processes of the job with "
     "`leeway nccl -- PROGRAM`, or with the same LD_PRELOAD"},
    {"LEEWAYNT", "handle of a connection",
     "the process that made it does not use Leeway's network plugin; give all processes of the job "
     "the same NCCL_NET_PLUGIN and NCCL_NET=Leeway"},
}};
constexpr std::uint8_t kIdVersion = 1;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kCountAt = 9;
constexpr std::size_t kPortAt = 10;
constexpr std::size_t kNonceAt = 12;
constexpr std::size_t kSecretAt = 28;
constexpr std::size_t kAddressesAt = 60;
constexpr std::size_t kChecksumAt = 124;
static_assert(kChecksumAt + 4 == sizeof(leeway_nccl_id));

std::uint32_t checksum(std::span<const std::uint8_t> bytes) {
  return crc32c(std::as_bytes(bytes.first(kChecksumAt)));
}

const Words& words_of(UniqueId::Use use) {
  return kWords[static_cast<std::size_t>(use)];
}

Status refused(const Words& words, const char* why) {
  return Status::error(StatusCode::kInvalidArgument, "%s: %s", words.noun, why);
}

}  // namespace

leeway_nccl_id UniqueId::encode(Use use) const {
  std::array<std::uint8_t, sizeof(leeway_nccl_id)> bytes{};
  std::ranges::copy(words_of(use).magic, bytes.begin());
  bytes[kVersionAt] = kIdVersion;
  bytes[kCountAt] = static_cast<std::uint8_t>(addresses.size());
  bytes[kPortAt] = static_cast<std::uint8_t>(port >> 8);
  bytes[kPortAt + 1] = static_cast<std::uint8_t>(port);
  std::copy(nonce.begin(), nonce.end(), bytes.begin() + kNonceAt);
  std::copy(secret.begin(), secret.end(), bytes.begin() + kSecretAt);
  auto* place = bytes.data() + kAddressesAt;
  for (const Address& address : addresses) place = std::copy(address.begin(), address.end(), place);
  const std::uint32_t sum = checksum(bytes);
  for (int i = 0; i < 4; ++i)
    bytes[kChecksumAt + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
  leeway_nccl_id id;
  std::memcpy(id.bytes, bytes.data(), bytes.size());
  return id;
}

Result<UniqueId> UniqueId::decode(const leeway_nccl_id& id, Use use) {
  const Words& words = words_of(use);
  std::array<std::uint8_t, sizeof id> bytes{};
  std::memcpy(bytes.data(), id.bytes, bytes.size());
  if (!std::equal(words.magic.begin(), words.magic.end(), bytes.begin()))
    return refused(words, words.foreign);
  std::uint32_t sum = 0;
  for (int i = 0; i < 4; ++i) sum = sum << 8 | bytes[kChecksumAt + i];
  if (sum != checksum(bytes))
    return refused(words, "its checksum is wrong: all 128 bytes must be handed on as they are");
  if (bytes[kVersionAt] != kIdVersion)
    return refused(words, "another version of Leeway made it; install the same one everywhere");
  UniqueId out;
  const std::size_t count = bytes[kCountAt];
  out.port = static_cast<std::uint16_t>(bytes[kPortAt] << 8 | bytes[kPortAt + 1]);
  if (count == 0 || count > kAddressesMax || out.port == 0)
    return refused(words, "it names no address");
  std::copy_n(bytes.begin() + kNonceAt, out.nonce.size(), out.nonce.begin());
  std::copy_n(bytes.begin() + kSecretAt, out.secret.size(), out.secret.begin());
  for (std::size_t i = 0; i < count; ++i) {
    auto& address = out.addresses.emplace_back();
    std::copy_n(bytes.begin() + kAddressesAt + i * address.size(), address.size(), address.begin());
  }
  return out;
}

bool UniqueId::has_secret() const {
  return std::any_of(secret.begin(), secret.end(), [](std::uint8_t byte) { return byte != 0; });
}

std::string UniqueId::name() const {
  return hex_text(std::as_bytes(std::span(nonce)));
}

std::string UniqueId::secret_text() const {
  return hex_text(std::as_bytes(std::span(secret)));
}

std::vector<std::string> UniqueId::places() const {
  std::vector<std::string> places;
  for (const Address& address : addresses)
    places.push_back(to_text(NetworkAddress{.ip = address, .port = port}));
  return places;
}

}  // namespace leeway::nccl
