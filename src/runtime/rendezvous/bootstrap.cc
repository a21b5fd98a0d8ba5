#include "rendezvous/bootstrap.h"

#include <algorithm>
#include <exception>

#include "base/limits.h"
#include "rendezvous/address.h"
#include "rendezvous/agreement.h"
#include "rendezvous/log.h"
#include "rendezvous/meeting.h"
#include "rendezvous/tcp_client.h"

namespace leeway::rendezvous {
namespace {

static_assert(limits::kWelcomeBytesMax <= Rendezvous::kValueBytesMax);

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
  if (local.size > 1 && local.rendezvous.empty() && local.store == nullptr)
    return rendezvous_unknown(local.rank);
  if (local.datagram_bytes < limits::kDatagramBytesMin ||
      local.datagram_bytes > limits::kDatagramBytesMax) {
    return Status::error(
        StatusCode::kInvalidArgument, "datagrams of %u bytes asked for; %zu to %zu are possible",
        local.datagram_bytes, limits::kDatagramBytesMin, limits::kDatagramBytesMax);
  }
  return {};
}

Result<TcpSecurity> security_of(const LocalConfiguration& local) {
  return make_tcp_security(local.identity == nullptr ? nullptr : local.identity->secrets,
                           local.insecure);
}

// Makes a group of one rank, which meets nobody.
Result<Group> alone(const LocalConfiguration& local) {
  return make_group(local, {},
                    std::max<std::uint32_t>(1, static_cast<std::uint32_t>(random_number())));
}

// Refuses certificates without a secret in a caller's store. Certificates protect only TLS
// connections, and not what lies in the store. So whoever writes to that store could replace
// members' keys.
Status check_store(const LocalConfiguration& local) {
  if (local.identity == nullptr || local.identity->secrets->are_secret()) return {};
  return Status::error(StatusCode::kInvalidArgument,
                       "certificates alone do not protect a meeting in a store of the program's "
                       "own: leave the store out (LEEWAY_RENDEZVOUS=host:port), give it with port "
                       "0, or add a secret (LEEWAY_SECRET_FILE)");
}

Result<Group> meet(const LocalConfiguration& local, const MeetingPlace& place, Log* log,
                   const RendezvousLimits& limits) {
  if (local.rank == 0) return MeetingHost(local, place, limits, log).run();
  return MeetingGuest(local, place, limits, log).run();
}

// Opens rank 0's server and meets there. Puts the server's address into the caller's store, if any.
Result<Group> meet_at_own_server(const LocalConfiguration& root, const HostPort& where, Log* log,
                                 const RendezvousLimits& limits) {
  auto server_log = log == nullptr ? nullptr : std::make_unique<Log>(log->level(), log->rank());
  const auto security = security_of(root);
  if (!security.ok()) return security.status();
  auto server = shared_server(where, limits, *security, std::move(server_log));
  if (!server.ok()) {
    if (server.status().code() == StatusCode::kInvalidArgument) return server.status();
    return Status::error(server.status().code(), "rank 0 %s", server.status().c_str());
  }
  const std::string published = MeetingKeys(root).address();
  if (root.store != nullptr) {
    const auto address = std::as_bytes(std::span((*server)->address()));
    if (Status status = root.store->put(published, address); !status.ok()) return status;
  }
  const MeetingPlace place{server->get(), (*server)->address(), true, server->get()};
  auto group = meet(root, place, log, limits);
  if (root.store != nullptr) forget(*root.store, published);
  if (group.ok()) group->place = *server;
  return group;
}

// Returns a function that finds the server's address. The address is `where` if that has a port.
// Otherwise the function reads the store each time, since rank 0 may replace the address there at
// any time.
TcpClient::Find finder(const LocalConfiguration& local, const HostPort& where) {
  if (where.port != 0) return [where] { return Result<HostPort>(where); };
  return [store = local.store, key = MeetingKeys(local).address()]() -> Result<HostPort> {
    const auto value = store->get(key, Duration(0));
    if (!value.ok() || value->empty()) {
      return Status::error(StatusCode::kUnavailable, "the store does not have rank 0's address%s%s",
                           value.ok() ? "" : ": ", value.ok() ? "" : value.status().c_str());
    }
    return parse_host_port({reinterpret_cast<const char*>(value->data()), value->size()});
  };
}

Result<Group> meet_at_server(const LocalConfiguration& local, const HostPort& where, Log* log,
                             const RendezvousLimits& limits) {
  constexpr Duration kAgain = std::chrono::milliseconds(100);
  const auto end = TcpClient::Clock::now() + local.join_timeout;
  WaitReport report(TcpClient::Clock::now(), limits.first_word);
  bool told = where.port != 0;
  while (!told && TcpClient::Clock::now() < end && !local.stop.stop_requested()) {
    const Duration left = end - TcpClient::Clock::now();
    const Duration until_word = std::max<Duration>(report.left(TcpClient::Clock::now()), kAgain);
    const Duration patience = at_once(local, std::min(left, until_word));
    told = local.store->get(MeetingKeys(local).address(), patience).ok();
    const auto now = TcpClient::Clock::now();
    if (told || !report.due(now) || log == nullptr) continue;
    log->print(LogLevel::warn, "rendezvous waits",
               "rendezvous: for %.0f s rank %u waits for rank 0, which has not told the store its "
               "address; it gives up in %.0f s",
               std::chrono::duration<double>(report.waited(now)).count(), unsigned{local.rank},
               std::max(0.0, std::chrono::duration<double>(end - now).count()));
  }
  if (!told && !local.stop.stop_requested()) {
    return Status::error(StatusCode::kUnavailable,
                         "rank %u: rank 0 has not told the store its address within %.1f s: "
                         "missing rank 0; is it running, with this store, name (\"%s\") and "
                         "LEEWAY_RUN_ID?",
                         unsigned{local.rank},
                         std::chrono::duration<double>(local.join_timeout).count(),
                         local.name.c_str());
  }
  const auto security = security_of(local);
  if (!security.ok()) return security.status();
  TcpClient client(finder(local, where), *security, "rank 0", end);
  // A refusal does not end join_group(), because it may come from a stranger in rank 0's place. But
  // this rank's secret may also be wrong, so the log tells the operator at once.
  if (log != nullptr) {
    client.on_refusal([log](const Status& why) {
      log->print(LogLevel::warn, "rendezvous refusal",
                 "rendezvous: %s; trying again until the join timeout", why.c_str());
    });
  }
  const std::string name = where.port == 0 ? "the address that the store tells" : to_text(where);
  const MeetingPlace place{&client, name, true, nullptr, &client};
  LocalConfiguration rest = local;
  rest.join_timeout = std::max<Duration>(end - TcpClient::Clock::now(), Duration(0));
  return MeetingGuest(rest, place, limits, log).run();
}

Result<Group> meet_over(const LocalConfiguration& local, Log* log, const RendezvousLimits& limits) {
  const auto where = local.store == nullptr     ? parse_host_port(local.rendezvous)
                     : local.rendezvous.empty() ? Result<HostPort>(HostPort{{}, 1})
                                                : parse_listen_address(local.rendezvous);
  if (!where.ok()) return rendezvous_refused(where.status());
  if (local.store != nullptr && where->port != 0) {
    if (Status status = check_store(local); !status.ok()) return status;
    const bool live = dynamic_cast<TcpRendezvous*>(local.store.get()) != nullptr;
    const std::string name =
        local.rendezvous.empty() ? "the store" : "the store at " + local.rendezvous;
    return meet(local, {local.store.get(), name, live, nullptr}, log, limits);
  }
  return local.rank == 0 ? meet_at_own_server(local, *where, log, limits)
                         : meet_at_server(local, *where, log, limits);
}

// Refuses a public address without a secret: anyone who reaches it could take part in the group.
Status check_data_address(const LocalConfiguration& local) {
  if (local.identity != nullptr || local.insecure) return {};
  const auto address = address_from_bytes(local.data_address);
  return !address || is_private(*address) ? Status() : public_address_refused(*address);
}

}  // namespace

Status rendezvous_unknown(int rank) {
  return Status::error(StatusCode::kInvalidArgument,
                       "create: rank %d does not know where rank 0 is: launchers other than "
                       "torchrun tell no address across machines; set LEEWAY_RENDEZVOUS=host:port "
                       "(rank 0's machine, a free port) on all ranks",
                       rank);
}

Status rendezvous_refused(const Status& why) {
  return Status::error(why.code(), "create: rendezvous %s (Options::rendezvous, LEEWAY_RENDEZVOUS)",
                       why.c_str());
}

Result<Group> join_group(const LocalConfiguration& local, Log* log,
                         const RendezvousLimits& limits) {
  if (Status status = check_local(local); !status.ok()) return status;
  if (local.size == 1) return alone(local);
  // Asio, Protobuf and stores of the caller's throw when memory or descriptors run out; their
  // exceptions end here.
  try {
    LocalConfiguration complete = local;
    if (local.data_address.empty() && local.transport != TransportKind::custom) {
      const auto address = address_towards(local.rendezvous);
      if (!address.ok()) return address.status();
      complete.data_address = to_bytes(unmapped(*address));
    }
    if (Status status = check_data_address(complete); !status.ok()) return status;
    auto group = meet_over(complete, log, limits);
    if (!group.ok()) return group.status();
    if (Status status = take_keys(complete, *group); !status.ok()) return status;
    return group;
  } catch (const std::exception& failure) {
    return Status::error(StatusCode::kResourceExhausted,
                         "rank %u could not set up the rendezvous: %s", unsigned{local.rank},
                         failure.what());
  }
}

}  // namespace leeway::rendezvous
