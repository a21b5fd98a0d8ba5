#include "interop/nccl/joining.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <utility>

#include "base/network_address.h"
#include "base/thread.h"
#include "interop/nccl/context.h"
#include "interop/nccl/debug.h"
#include "interop/nccl/interfaces.h"
#include "interop/nccl/member.h"
#include "keys/derive.h"
#include "rendezvous/address.h"

namespace leeway::nccl {
namespace {

constexpr Duration kExitTime = std::chrono::milliseconds(200);

Result<Options> options_for(int ranks, int rank) {
  auto options = member_options(settings(), ranks, rank);
  if (!options.ok()) return options.status();
  const bool chosen = !settings().interfaces.empty() || settings().family != Settings::Family::any;
  if (chosen && options->bind_address.empty()) {
    const auto addresses = addresses_of(choose_local(settings()));
    if (!addresses.empty()) options->bind_address = ip_text(addresses.front());
  }
  return options;
}

// Returns the interface, if it is known, and its address; empty if neither is known.
std::string interface_of(const Options& options) {
  std::string address = options.bind_address;
  if (address.empty()) {
    const auto towards = rendezvous::address_towards(options.rendezvous);
    if (!towards.ok()) return {};
    address = rendezvous::unmapped(*towards).to_string();
  }
  for (const LocalAddress& local : addresses_of_host()) {
    if (ip_text(local.address) == address) return local.interface + " " + address;
  }
  return address;
}

// Makes the id of the address that NCCL_COMM_ID names. Everybody can make it, so it has no secret.
Result<UniqueId> id_of_place(const std::string& place) {
  const auto where = rendezvous::parse_host_port(place);
  if (!where.ok()) {
    return Status::error(StatusCode::kInvalidArgument, "NCCL_COMM_ID=\"%.100s\": %s", place.c_str(),
                         where.status().c_str());
  }
  asio::io_context io;
  const auto found = rendezvous::resolve(io, *where);
  if (!found.ok()) return found.status();
  UniqueId id;
  id.port = where->port;
  const auto address = found->endpoints.front().address();
  const auto v6 = address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4())
                                  : address.to_v6();
  std::ranges::copy(v6.to_bytes(), id.addresses.emplace_back().begin());
  const keys::Key name = keys::extract({}, std::as_bytes(std::span(place)));
  for (std::size_t i = 0; i < id.nonce.size(); ++i)
    id.nonce[i] = std::to_integer<std::uint8_t>(name[i]);
  return id;
}

// Warns, once in each process, that a group without a secret is not sealed.
void say_not_sealed() {
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  warn(
      "NCCL_COMM_ID has no secret: the group is not sealed, and whoever reaches that address may "
      "take part. Give all ranks LEEWAY_SECRET_FILE (`leeway keygen` makes one), or unset "
      "NCCL_COMM_ID");
}

}  // namespace

Result<UniqueId> make_unique_id() {
  Context& context = Context::get();
  if (!context.status.ok()) return context.status;
  const std::string& place = context.settings.meeting_place;
  return place.empty() ? context.listeners.open(context.settings) : id_of_place(place);
}

Status begin_joining(Comm& comm, const UniqueId& id, int ranks, int rank) {
  auto options = options_for(ranks, rank);
  if (!options.ok()) return options.status();
  if (!id.has_secret() && !has_credentials(*options)) say_not_sealed();
  auto place = Context::get().listeners.reach(id, *options, rank == 0);
  if (!place.ok()) return place.status();
  seal_by(id, settings(), *options);
  options->store = *place;
  options->rendezvous = (*place)->address();
  options->communicator_name = "nccl-" + id.name();
  comm.begin(Communicator::create_async(*options), std::move(*place));
  return Status();
}

Result<std::vector<std::unique_ptr<Communicator>>> create_in_process(int ranks) {
  auto options = options_for(ranks, 0);
  if (!options.ok()) return options.status();
  options->rank.reset();
  options->world_size.reset();
  options->transport = TransportKind::inproc;
  options->communicator_name = "nccl-in-process";
  return Communicator::create_inproc(ranks, *options);
}

std::string way_of(const Communicator& communicator) {
  if (communicator.transport() == TransportKind::inproc) return "over the memory of this process";
  std::string text = "over " + std::string(to_string(communicator.transport()));
  const Options& options = communicator.options();
  const std::string from = interface_of(options);
  if (!from.empty()) text.append(", from ").append(from);
  const bool sealed = has_credentials(options) || !options.secret.empty();
  return text + (sealed ? ", sealed" : ", not sealed");
}

void leave_at_exit() {
  end_threads_at_exit();  // after the handler below, as handlers run in reverse order
  static const int registered = std::atexit([] {
    const auto comms = Context::get().registry.take_all();
    for (const auto& comm : comms) comm->begin_leaving();
    const auto end = std::chrono::steady_clock::now() + kExitTime;
    for (const auto& comm : comms) comm->wait_left_until(end);
  });
  (void)registered;
}

}  // namespace leeway::nccl
