#include "transport/ucx/ucx_transport.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/limits.h"
#include "transport/train_limits.h"
#include "transport/ucx/address.h"
#include "transport/ucx/library.h"
#include "transport/ucx/report.h"

namespace leeway::transport {
namespace {

// All senders together may have this many bytes in flight to a rank, so nothing is dropped unless
// the rank stops. This is half of what a rank's queue of 64 messages of 32 KiB in shared memory
// holds. An all-reduce of 16 MiB between 8 ranks takes 39.2 ms with half a MiB here, 33.5 ms with
// one, 35.7 ms with two (4 ranks: 14.4, 14.0, 13.9).
constexpr std::size_t kReceiveBytes = 1u << 20;

// Pause before asking UCX again when it has nothing to do and cannot sleep.
constexpr Duration kNap = std::chrono::microseconds(100);

// Longest sleep, because UCX does not wake every sleeper (ucx_transport.h).
constexpr Duration kSleepMax = std::chrono::milliseconds(1);

// Time that waiting datagrams have to leave when the transport is destroyed.
constexpr Duration kFarewell = std::chrono::milliseconds(10);

}  // namespace

Result<std::unique_ptr<UcxTransport>> UcxTransport::open(const UcxOptions& options) {
  std::unique_ptr<UcxTransport> transport(new UcxTransport);
  if (Status status = transport->worker_.open(); !status.ok()) return status;
  const std::size_t fits = transport->worker_.datagram_bytes_max();
  const std::size_t bytes =
      options.datagram_bytes == 0 ? fits : std::min(options.datagram_bytes, fits);
  if (bytes < limits::kDatagramBytesMin) {
    return Status::error(StatusCode::kInvalidArgument,
                         "datagram size %zu: at least %zu bytes are supported", bytes,
                         limits::kDatagramBytesMin);
  }
  transport->limits_ = {bytes, kTrainBytesMax, kTrainDatagramsMax, kTrainSlicesMax, kReceiveBytes};
  if (Status status = transport->receiver_.open(transport->worker_.get(), bytes); !status.ok())
    return status;
  if (Status status = transport->sender_.open(bytes); !status.ok()) return status;
  if (Status status = transport->waiter_.open(transport->worker_.event_descriptor()); !status.ok())
    return status;
  const auto address = transport->worker_.address();
  if (!address.ok()) return address.status();
  transport->local_ = wrap_ucx_address(*address);
  if (transport->local_.size() <= kAddressBytesMax) return transport;
  return Status::error(
      StatusCode::kUnsupported,
      "UCX address of %zu bytes, %zu at most: name fewer devices in UCX_NET_DEVICES",
      transport->local_.size(), kAddressBytesMax);
}

UcxTransport::~UcxTransport() {
  const UcxQuiet quiet;
  sender_.drain(kFarewell);
  receiver_.close();
}

Status UcxTransport::set_peers(std::span<const std::vector<std::byte>> by_rank, Rank self) {
  const UcxQuiet quiet;
  std::vector<ByteSpan> addresses;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const auto address =
        unwrap_ucx_address(by_rank[rank], static_cast<Rank>(rank), kAddressBytesMax);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  const std::uint64_t group = ucx_group_digest(by_rank);
  receiver_.expect(group, by_rank.size());
  const Status status = sender_.connect(worker_.get(), addresses, self, group);
  limits_.intact = status.ok() && keeps_intact(self);
  return status;
}

std::size_t UcxTransport::send(std::span<const Train> trains) {
  const UcxQuiet quiet;
  return sender_.send(trains);
}

std::size_t UcxTransport::receive(std::span<Received> out) {
  const UcxQuiet quiet;
  return receiver_.receive(out);
}

void UcxTransport::wait(Duration timeout) {
  if (receiver_.pending()) return;
  const UcxQuiet quiet;
  const ucs_status_t armed = ucp_worker_arm(worker_.get());
  if (armed == UCS_OK) {
    waiter_.wait(std::min(timeout, kSleepMax), /*also_writable=*/false);
  } else if (!receiver_.progress()) {
    // UCX cannot sleep while sends wait for room at a peer. Shared memory does not announce room,
    // so look again soon.
    std::this_thread::sleep_for(std::min(timeout, kNap));
  }
}

// Returns true unless TCP connects this rank to some peer. Memory and reliable connections check
// what they carry (ECC, ICRC), but TCP's 16-bit checksum does not suffice for gigabytes.
bool UcxTransport::keeps_intact(Rank self) const {
  const auto is_tcp = [](const std::string& lane) { return lane.starts_with("tcp/"); };
  for (Rank peer = 0; peer < sender_.endpoints().size(); ++peer) {
    if (peer == self) continue;
    const std::vector<std::string> lanes = ucx_lanes(sender_.endpoints()[peer]);
    if (lanes.empty() || std::any_of(lanes.begin(), lanes.end(), is_tcp)) return false;
  }
  return true;
}

}  // namespace leeway::transport
