#include "communicator/sealing.h"

#include "base/limits.h"
#include "driving/driver.h"
#include "rendezvous/tcp_security.h"
#include "seal/aead.h"

namespace leeway::internal {

Status check_sealing(const Options& options) {
  constexpr std::size_t kDatagramLeast = limits::kDatagramBytesMin + seal::kOverheadBytes;
  if (!rendezvous::credentials_of(options).any()) return Status();
  if (options.multicast) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: multicast is not sealed: leave out multicast (LEEWAY_MULTICAST) "
                         "or secret_file (LEEWAY_SECRET_FILE) and certificates (LEEWAY_TLS_...)");
  }
  if (options.transport == TransportKind::ucx) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: transport ucx is not sealed: choose another (LEEWAY_TRANSPORT) "
                         "or leave out secret_file (LEEWAY_SECRET_FILE) and certificates "
                         "(LEEWAY_TLS_...)");
  }
  if (options.datagram_bytes != 0 && options.datagram_bytes < kDatagramLeast) {
    return Status::error(StatusCode::kInvalidArgument,
                         "create: datagram_bytes %zu is less than %zu, which a sealed datagram has "
                         "at least",
                         options.datagram_bytes, kDatagramLeast);
  }
  return Status();
}

std::unique_ptr<transport::SealedTransport> seal_transport(
    std::unique_ptr<DatagramTransport> transport, std::uint8_t lane) {
  return std::make_unique<transport::SealedTransport>(std::move(transport), driving::steady_now,
                                                      seal::Rotation(), lane);
}

Status introduce(const keys::JoinedKeys& keys, Rank self, std::span<const Rank> slots,
                 std::uint8_t lane, transport::SealedTransport& sealed) {
  const keys::JoinedKeys::Member& own = keys.members[self];
  for (Rank rank = 0; rank < slots.size(); ++rank) {
    if (rank == self || !sealed.needs_keys(slots[rank], keys.meeting)) continue;
    const keys::JoinedKeys::Member& peer = keys.members[rank];
    auto agreed = keys.own->key->agree(peer.public_key, keys.meeting, lane);
    if (!agreed.ok()) return agreed.status();
    const auto suite = static_cast<seal::AeadKind>((own.tag | peer.tag) & 1);  // WIRE 8.3
    const seal::PairKeys pair =
        seal::derive_pair(*agreed, peer.pair, keys.meeting, {own.public_key, own.tag},
                          {peer.public_key, peer.tag}, lane, static_cast<std::uint8_t>(suite));
    sealed.meet(slots[rank], pair, seal::aead_maker(suite), keys::name_of(peer.public_key),
                keys.meeting);
    keys::wipe(*agreed);
  }
  return Status();
}

}  // namespace leeway::internal
