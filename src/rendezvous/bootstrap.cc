#include "rendezvous/bootstrap.h"

#include <algorithm>
#include <exception>
#include <random>

#include "base/limits.h"
#include "rendezvous/address.h"
#include "rendezvous/agreement.h"
#include "rendezvous/client.h"
#include "rendezvous/server.h"

namespace leeway::rendezvous {
namespace {

Status check_local(const LocalConfiguration& local) {
  if (local.size < 1 || local.size > limits::kPeersMax) {
    return Status::error(StatusCode::kInvalidArgument, "%d ranks asked for; 1 to %d are possible",
                         local.size, limits::kPeersMax);
  }
  if (local.rank >= local.size) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rank %u is impossible in a group of %d (ranks 0 to %d)",
                         unsigned{local.rank}, local.size, local.size - 1);
  }
  if (local.size > 1 && local.rendezvous.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rank %u of %d does not know where rank 0 is: launchers other than "
                         "torchrun tell no address "
                         "across machines; set LEEWAY_RENDEZVOUS=host:port (rank 0's machine, a "
                         "free port) on all ranks",
                         unsigned{local.rank}, local.size);
  }
  if (local.datagram_bytes < limits::kDatagramBytesMin ||
      local.datagram_bytes > limits::kFrameBytesMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "datagrams of %u bytes asked for; %zu to %zu are possible",
                         local.datagram_bytes, limits::kDatagramBytesMin, limits::kFrameBytesMax);
  }
  return {};
}

// A group of one: nobody to meet, and no datagram will ever be sent.
Result<Group> alone(const LocalConfiguration& local) {
  LocalConfiguration addressed = local;
  if (local.data_address.empty())
    addressed.data_address = to_bytes(asio::ip::address_v4::loopback());
  std::random_device device;
  return make_group(addressed, {}, std::max<std::uint32_t>(1, device()));
}

}  // namespace

Result<Group> join_group(const LocalConfiguration& local, Log* log,
                         const RendezvousLimits& limits) {
  if (Status status = check_local(local); !status.ok()) return status;
  if (local.size == 1) return alone(local);
  // Asio and Protobuf throw when memory or descriptors run out; their exceptions end here.
  try {
    return local.rank == 0 ? RendezvousServer(local, limits, log).run()
                           : RendezvousClient(local).run();
  } catch (const std::exception& failure) {
    return Status::error(StatusCode::kResourceExhausted,
                         "rank %u could not set up the rendezvous: %s", unsigned{local.rank},
                         failure.what());
  }
}

}  // namespace leeway::rendezvous
