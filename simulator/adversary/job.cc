#include "adversary/job.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "rendezvous/meeting.h"
#include "seal/key_schedule.h"
#include "sealing/null_cipher.h"

namespace leeway::sim::adversary {

using namespace std::chrono_literals;
namespace rv = rendezvous;

namespace {

constexpr std::uint16_t kFirstPort = 5000;
constexpr std::size_t kSeenMax = 256;
// A call that is still open this long after the tampering ended is judged as never ending. The time
// is several times the longest silence that a peer is allowed.
constexpr Duration kPatience = 60s;
// A process that has not heard from all members of its group within this time leaves the group.
constexpr Duration kProofTime = 10s;
constexpr std::uint64_t kEventsMax = 2'000'000;

Duration microseconds(std::uint32_t count) {
  return std::chrono::microseconds(count);
}

}  // namespace

struct Job::Call {
  collective::Request request;
  std::vector<float> values;
  std::vector<float> expected;
};

// Membership of a process in one group.
struct Job::Membership {
  collective::Member* member = nullptr;
  std::uint32_t group = 0;
  Rank self = 0;
  std::vector<std::size_t> processes;  // by rank
  std::vector<std::unique_ptr<Call>> calls;
  // Time of the next probe. Has no value once all other members were heard.
  std::optional<Instant> probe_at;
  Duration pause = 2ms;
  Instant proof_end;
};

struct Job::Process {
  Process(std::size_t process, const seal::Rotation& rotation)
      : number(process), exchange(process), seals(0, rotation, exchange) {}

  const std::size_t number;
  std::shared_ptr<keys::OwnIdentity> identity;
  collective::Node node;
  NullExchange exchange;
  seal::Associations seals;
  std::map<keys::Key, Rank> slots;
  std::vector<std::uint16_t> addresses;  // by slot
  std::vector<std::unique_ptr<Membership>> memberships;

  std::uint16_t port() const { return static_cast<std::uint16_t>(kFirstPort + number); }
};

// A meeting of one group, as one of its processes knows it.
struct Job::Meeting {
  std::uint32_t number = 0;
  std::uint64_t name = 0;
  std::vector<std::size_t> processes;  // by rank
  Rank self = 0;
  rv::Group group;
};

Job::Job(std::uint64_t seed) : dice_(seed, 7001) {
  std::string line(64, '0');
  for (char& digit : line) digit = "0123456789abcdef"[dice_.between(0, 15)];
  secrets_ = std::make_shared<const keys::Secrets>(*keys::Secrets::parse(line, "simulated"));
  const bool is_member = dice_.one_in(2);
  keeper_ = std::make_unique<Keeper>(dice_, dice_.pick({0u, 4u, 8u, 20u}),
                                     is_member ? secrets_ : nullptr);
  tampers_one_in_ = dice_.pick({0u, 4u, 10u, 30u});
  calm_ = now_ + std::chrono::milliseconds(dice_.magnitude(4, 4000));
  make_processes();
  const std::uint32_t groups = dice_.between(1, 3);
  for (std::uint32_t number = 0; number < groups; ++number) meet(number);
}

Job::~Job() = default;

keys::Key Job::random_key() {
  keys::Key key;
  for (std::byte& byte : key) byte = static_cast<std::byte>(dice_.between(0, 255));
  return key;
}

void Job::make_processes() {
  const std::uint32_t count = dice_.between(2, 4);
  // Keys rotate often, so that a process changes keys again while messages about an earlier change
  // are still under way.
  const seal::Rotation rotation{.datagrams = dice_.magnitude(2, 2000),
                                .time = std::chrono::milliseconds(dice_.magnitude(10, 10'000)),
                                .old_phase = std::chrono::milliseconds(dice_.magnitude(10, 3000))};
  for (std::size_t number = 0; number < count; ++number) {
    auto process = std::make_unique<Process>(number, rotation);
    process->identity = std::make_shared<keys::OwnIdentity>();
    process->identity->secrets = secrets_;
    process->identity->key = *keys::ProcessKey::make(random_key());
    process->identity->told = {process->identity->key->public_half(),
                               (dice_.between(1, 0xFFFF) << 16) & ~1u, secrets_->ids()};
    processes_.push_back(std::move(process));
  }
}

rv::LocalConfiguration Job::configuration(const Meeting& meeting, Rank rank) const {
  const Process& process = *processes_[meeting.processes[rank]];
  rv::LocalConfiguration local;
  local.rank = rank;
  local.size = static_cast<int>(meeting.processes.size());
  local.name = "group " + std::to_string(meeting.number);
  local.process = 100 + process.number;
  local.identity = process.identity;
  local.datagram_bytes = 600;
  local.receive_buffer_bytes = 1 << 20;
  local.data_address = {std::byte{127}, std::byte{0}, std::byte{0}, std::byte{1}};
  local.data_port = process.port();
  return local;
}

// Lets all processes, or some of them, meet as a group, with any of them as rank 0. A process that
// refuses what it reads in the store does not join.
void Job::meet(std::uint32_t number) {
  Meeting meeting{.number = number, .name = dice_.between(1, 1u << 30)};
  for (std::size_t at = 0; at < processes_.size(); ++at) {
    if (processes_.size() > 2 && dice_.one_in(5)) continue;
    meeting.processes.insert(
        meeting.processes.begin() +
            dice_.between(0, static_cast<std::uint32_t>(meeting.processes.size())),
        at);
  }
  if (meeting.processes.size() < 2) return;
  const rv::LocalConfiguration root = configuration(meeting, 0);
  const rv::MeetingKeys names(root);
  std::vector<control::Hello> hellos;
  for (Rank rank = 1; rank < meeting.processes.size(); ++rank) {
    const rv::LocalConfiguration local = configuration(meeting, rank);
    control::Hello hello = rv::hello_of(local, rank, 10s);
    hello.set_place("simulated");
    const std::string key = names.hello(meeting.name, rank);
    const Bytes value = rv::proved_value(hello, local, key);
    auto taken = rv::take_hello(keeper_->hello(key, value), key, root, rank);
    if (!taken.ok()) {
      ++refused_tables_;
      return;
    }
    hellos.push_back(std::move(*taken));
  }
  auto group = rv::make_group(root, hellos, dice_.between(1, 1u << 30));
  if (!group.ok()) {
    ++refused_tables_;
    return;
  }
  group->identities->nonce = random_key();
  const std::string key = names.outcome(meeting.name);
  const Bytes table = rv::proved_value(rv::welcome_of(*group), root, key);
  for (Rank rank = 0; rank < meeting.processes.size(); ++rank) {
    auto own = std::make_unique<Meeting>(meeting);
    own->self = rank;
    const Bytes value = rank == 0 ? table : keeper_->table(key, table, root.size);
    if (!hear(*own, rank, value)) {
      ++refused_tables_;
      continue;
    }
    const Instant when = now_ + microseconds(dice_.magnitude(1, 50'000));
    joins_.emplace(when.ns, std::pair(meeting.processes[rank], std::move(own)));
  }
}

// Reads the group's table as rendezvous/meeting_guest.cc does. Returns false if the table is
// refused.
bool Job::hear(Meeting& meeting, Rank rank, ByteSpan value) {
  const rv::LocalConfiguration local = configuration(meeting, rank);
  const auto welcome = rv::parse_welcome(value, local.size);
  if (!welcome || welcome->has_rejected() || welcome->group().attempts(rank) != rank) return false;
  const std::string key = rv::MeetingKeys(local).outcome(meeting.name);
  auto group = rv::take_group(*welcome, value, key, local);
  if (!group.ok() || !rv::take_keys(local, *group).ok()) return false;
  meeting.group = std::move(*group);
  return true;
}

// Gives each member of the group a slot in the process. Sets keys for members without keys, as
// communicator/udp_endpoint.cc and communicator/sealing.cc do.
bool Job::introduce(Process& process, const Meeting& meeting, std::vector<Rank>& slots) {
  const keys::JoinedKeys& keys = *meeting.group.keys;
  for (Rank rank = 0; rank < keys.members.size(); ++rank) {
    const keys::JoinedKeys::Member& peer = keys.members[rank];
    const auto next = static_cast<Rank>(process.addresses.size());
    const auto [known, is_new] = process.slots.emplace(peer.public_key, next);
    if (is_new) process.addresses.push_back(meeting.group.datagrams.members[rank].port);
    const Rank slot = known->second;
    slots.push_back(slot);
    if (rank == meeting.self || !process.seals.needs_keys(slot, keys.meeting)) continue;
    const auto agreed = process.identity->key->agree(peer.public_key, keys.meeting, 0);
    if (!agreed.ok()) return false;
    const keys::JoinedKeys::Member& own = keys.members[meeting.self];
    const seal::PairKeys pair =
        seal::derive_pair(*agreed, peer.pair, keys.meeting, {own.public_key, own.tag},
                          {peer.public_key, peer.tag}, 0, 0);
    process.seals.meet(now_, slot, pair, watched_cipher(book_), keys.meeting);
  }
  return true;
}

void Job::join(Process& process, std::unique_ptr<Meeting> meeting) {
  std::vector<Rank> slots;
  if (!introduce(process, *meeting, slots)) {
    ++refused_tables_;
    return;
  }
  protocol::EndpointConfig config;
  config.self = meeting->self;
  config.size = static_cast<int>(slots.size());
  config.epoch = meeting->group.epoch;
  config.seed = 5;
  config.datagram_bytes = meeting->group.datagrams.datagram_bytes;
  config.sum_payloads = false;
  config.window_bytes.assign(slots.size(), std::size_t{64} * 1024);
  config.peer_timeout = 3s;
  config.rtt_initial = 2ms;
  if (process.node.has(config.epoch)) return;
  auto membership = std::make_unique<Membership>();
  membership->member = &process.node.join(now_, config, slots);
  membership->group = meeting->number;
  membership->self = meeting->self;
  membership->processes = meeting->processes;
  membership->probe_at = now_;
  membership->proof_end = now_ + kProofTime;
  process.memberships.push_back(std::move(membership));
}

// Sends probes until all other members were heard, as driving::Channel::prove_paths() does. The
// first call begins only when all were heard.
void Job::prove(Process& process) {
  for (auto& membership : process.memberships) {
    if (!membership->probe_at) continue;
    protocol::Endpoint& endpoint = membership->member->engine().endpoint();
    if (endpoint.peers_proven() == membership->member->config().size - 1) {
      membership->probe_at.reset();
      submit(process, *membership);
    } else if (now_ >= membership->proof_end) {  // a member was not heard in time
      (void)process.node.part(*membership->member);
      membership.reset();
    } else if (now_ >= *membership->probe_at) {
      endpoint.probe_all();
      process.node.touch(*membership->member);
      membership->probe_at = now_ + membership->pause;
      membership->pause = std::min<Duration>(2 * membership->pause, 200ms);
    }
  }
  std::erase(process.memberships, nullptr);
}

void Job::submit(Process& process, Membership& membership) {
  for (std::uint32_t number = 0; number < 3; ++number) {
    auto call = std::make_unique<Call>();
    const std::uint32_t count = 1 + 613 * number * (1 + membership.group);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto value = [&](std::size_t rank) {
        return static_cast<float>((i * 7 + rank * 13 + number * 3 + membership.group) % 101);
      };
      call->values.push_back(value(membership.self));
      call->expected.push_back(0);
      for (std::size_t rank = 0; rank < membership.processes.size(); ++rank)
        call->expected.back() += value(rank);
    }
    call->request.spec.kind = collective::OperationKind::all_reduce;
    call->request.spec.input = std::span(std::as_const(call->values));
    call->request.spec.output = std::span(call->values);
    call->request.spec.options.delivery = exact();
    membership.member->engine().submit(now_, call->request);
    membership.calls.push_back(std::move(call));
  }
  process.node.touch(*membership.member);
}

void Job::pump(Process& process) {
  prove(process);
  process.node.on_wake(now_);
  while (process.node.poll_train(now_, *buffer_)) launch(process, buffer_->train());
  process.node.on_wake(now_);
  process.seals.on_wake(now_);
  while (const auto message = process.seals.poll_message()) {
    ++datagrams_;
    tamper({process.port(), process.addresses[message->slot],
            Bytes(message->datagram.begin(), message->datagram.end())});
  }
}

void Job::launch(Process& process, const Train& train) {
  Bytes sealed(seal::Associations::sealed_bytes(train));
  process.seals.seal(now_, train, sealed);
  const std::size_t segment = train.segment_bytes + seal::kOverheadBytes;
  for (std::size_t at = 0; at < sealed.size(); at += segment) {
    const auto begin = sealed.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(segment, sealed.size() - at));
    ++datagrams_;
    tamper({process.port(), process.addresses[train.to], Bytes(begin, end)});
  }
}

// Plays the attacker on the network: copies, drops, delays, reorders, changes, splices, misdirects
// or replays the datagram.
void Job::tamper(Flying flying) {
  if (seen_.size() < kSeenMax) {
    seen_.push_back(flying);
  } else {
    seen_[datagrams_ % kSeenMax] = flying;
  }
  if (tampers_one_in_ == 0 || now_ >= calm_ || !dice_.one_in(tampers_one_in_))
    return deliver(std::move(flying));
  const auto last = static_cast<std::uint32_t>(flying.bytes.size() - 1);
  const auto any_port = [&] {
    return static_cast<std::uint16_t>(
        kFirstPort + dice_.between(0, static_cast<std::uint32_t>(processes_.size())));
  };
  const Flying& old = seen_[dice_.between(0, static_cast<std::uint32_t>(seen_.size() - 1))];
  switch (dice_.between(0, 8)) {
    case 0:
      return;
    case 1:
      return deliver(std::move(flying), microseconds(dice_.magnitude(1, 6'000'000)));
    case 2:
      deliver(flying, microseconds(dice_.magnitude(1, 300'000)));
      break;
    case 3:
      flying.bytes[dice_.between(0, last)] ^= static_cast<std::byte>(dice_.between(1, 255));
      break;
    case 4:
      deliver(flying);
      flying.bytes.resize(dice_.between(0, last));
      break;
    case 5:
      std::copy_n(old.bytes.begin(),
                  std::min<std::size_t>(old.bytes.size(), dice_.between(1, last)),
                  flying.bytes.begin());
      break;
    case 6:
      flying.from = any_port();
      break;
    case 7:
      flying.to = any_port();
      break;
    default:
      deliver({any_port(), any_port(), old.bytes});
      deliver(old);
  }
  deliver(std::move(flying));
}

void Job::deliver(Flying flying, Duration further) {
  const Instant at = now_ + 1ms + further;
  trace_.add(at, 1, flying.from, flying.to, crc32c(flying.bytes));
  flights_.emplace(at.ns, std::move(flying));
}

void Job::arrive(Flying& flying) {
  if (flying.to < kFirstPort || flying.to >= kFirstPort + processes_.size()) return;
  Process& process = *processes_[flying.to - kFirstPort];
  const auto known = std::find(process.addresses.begin(), process.addresses.end(), flying.from);
  const Rank hint = known == process.addresses.end()
                        ? kNoRank
                        : static_cast<Rank>(known - process.addresses.begin());
  const auto opened = process.seals.open_from_anywhere(now_, hint, flying.bytes);
  if (opened.from != kNoRank && !opened.path_message)
    process.node.on_datagram(now_, opened.from, opened.bytes);
}

std::optional<Instant> Job::next_event() const {
  std::optional<Instant> next;
  const auto take = [&](Instant when) {
    if (!next || when < *next) next = when;
  };
  if (!flights_.empty()) take(Instant{flights_.begin()->first});
  if (!joins_.empty()) take(Instant{joins_.begin()->first});
  for (const auto& process : processes_) {
    take(process->node.next_wake());
    take(process->seals.next_wake());
    for (const auto& membership : process->memberships) {
      if (membership->probe_at) take(std::min(*membership->probe_at, membership->proof_end));
    }
  }
  return next;
}

bool Job::all_done() const {
  if (!joins_.empty()) return false;
  for (const auto& process : processes_) {
    for (const auto& membership : process->memberships) {
      if (membership->probe_at) return false;
      for (const auto& call : membership->calls) {
        if (!call->request.done) return false;
      }
    }
  }
  return true;
}

std::string Job::run() {
  const Instant end = calm_ + kPatience;
  while (!all_done() && book_.broken.empty() && events_ < kEventsMax) {
    const auto next = next_event();
    if (!next || *next > end) break;
    now_ = std::max(now_, *next);
    ++events_;
    while (!joins_.empty() && joins_.begin()->first <= now_.ns) {
      auto [process, meeting] = std::move(joins_.begin()->second);
      joins_.erase(joins_.begin());
      join(*processes_[process], std::move(meeting));
    }
    while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
      Flying flying = std::move(flights_.begin()->second);
      flights_.erase(flights_.begin());
      arrive(flying);
    }
    for (const auto& process : processes_) pump(*process);
  }
  for (const auto& process : processes_) {
    key_phases_ += process->seals.counters().phases;
    for (const auto& membership : process->memberships) {
      for (const auto& call : membership->calls) {
        if (!call->request.done) continue;
        ++(call->request.status.ok() ? right_calls_ : failed_calls_);
      }
    }
  }
  return verdict();
}

// Returns true if `reader` can open the datagrams of `writer`, however many were lost or repeated,
// or if one of them does not know the other.
bool Job::reads(Process& reader, Process& writer) {
  const auto to = writer.slots.find(reader.identity->told.public_key);
  const auto from = reader.slots.find(writer.identity->told.public_key);
  if (to == writer.slots.end() || from == reader.slots.end()) return true;
  const seal::Association* const sends = writer.seals.at(to->second);
  const seal::Association* const opens = reader.seals.at(from->second);
  if (sends == nullptr || opens == nullptr || sends->outbound_tag() != opens->inbound_tag())
    return true;  // they have not met, or will soon learn which meeting's keys the other one uses
  const std::byte byte{1};
  const Slice slice{&byte, 1};
  Bytes datagram(1 + seal::kOverheadBytes);
  writer.seals.seal(now_, {to->second, 1, 1, {&slice, 1}}, datagram);
  return reader.seals.open_from_anywhere(now_, from->second, datagram).from == from->second;
}

std::string Job::verdict() {
  if (!book_.broken.empty()) return book_.broken;
  for (const auto& reader : processes_) {
    for (const auto& writer : processes_) {
      if (reader != writer && !reads(*reader, *writer)) return "two have parted in their keys";
    }
  }
  for (const auto& process : processes_) {
    for (const auto& membership : process->memberships) {
      std::size_t number = 0;
      for (const auto& call : membership->calls) {
        const std::string where = "process " + std::to_string(process->number) + ", group " +
                                  std::to_string(membership->group) + ", call " +
                                  std::to_string(number++);
        if (!call->request.done) return where + " has neither a result nor an error";
        if (call->request.status.ok() && call->values != call->expected)
          return where + " has a wrong result and no error";
      }
    }
  }
  return "";
}

}  // namespace leeway::sim::adversary
