#include <algorithm>
#include <cstring>
#include <thread>

#include "base/descriptors.h"
#include "rendezvous/log.h"
#include "rendezvous/meeting.h"
#include "rendezvous/meeting_addresses.h"
#include "rendezvous/printable.h"
#include "transport/udp/address.h"

namespace leeway::rendezvous {
namespace {

// Time that the other ranks get to read the outcome. It is as long as they may be busy with other
// keys.
constexpr Duration kTellTime = std::chrono::milliseconds(200);

// Pauses after the store could not be reached: short at first, then long.
constexpr Duration kAgain = std::chrono::milliseconds(20);
constexpr Duration kAgainMax = std::chrono::milliseconds(250);

std::uint32_t random_epoch() {
  std::uint32_t epoch = 0;
  while (epoch == 0) epoch = static_cast<std::uint32_t>(random_number());
  return epoch;
}

}  // namespace

MeetingHost::MeetingHost(const LocalConfiguration& root, const MeetingPlace& place,
                         const RendezvousLimits& limits, Log* log)
    : root_(root),
      place_(place),
      limits_(limits),
      log_(log),
      keys_(root),
      refused_before_(place.own == nullptr ? 0 : place.own->refusals().count),
      report_(Clock::now(), limits.first_word),
      patience_end_(Clock::now() + root.join_timeout),
      members_(static_cast<std::size_t>(root.size)),
      missing_(members_.size() - 1) {}

Result<Group> MeetingHost::run() {
  const Status invited = invite_patiently();
  if (!invited.ok()) {
    return Status::error(StatusCode::kUnavailable, "rank 0 cannot invite at %.60s: %.200s",
                         place_.name.c_str(), invited.c_str());
  }
  Duration look = kLookFirst;
  while (!failure_) {
    const Duration left = patience_end_ - Clock::now();
    if (left <= Duration(0)) {
      fail(too_few());
      break;
    }
    collect(at_once(root_, std::min(look, left)));
    look = std::min<Duration>(2 * look, kLookMax);
    if (!failure_ && place_.has_live_keys) look_at_hellos();
    if (!failure_ && missing_ == 0) return conclude();
    if (!failure_) look_at_invitation();
    if (!failure_ && root_.stop.stop_requested()) fail(taken_back(root_));
    if (!failure_) say_waiting("waits for " + waited_for(refused()));
  }
  tell_failure();
  return *failure_;
}

// Puts the invitation. Calls get() first, because its error shows that the store is out of reach,
// while put() would wait silently.
Status MeetingHost::invite_patiently() {
  for (Duration pause = kAgain;; pause = std::min<Duration>(2 * pause, kAgainMax)) {
    Status status;
    if (place_.own == nullptr) {
      status = place_.store->get(keys_.root(), Duration(0)).status();
      if (status.code() == StatusCode::kDeadlineExceeded) status = Status();  // there, and empty
    }
    if (status.ok()) status = invite();
    const bool is_over = Clock::now() + pause >= patience_end_ || root_.stop.stop_requested();
    if (status.ok() || is_over) return status;
    say_waiting(std::string("cannot invite: ") + status.c_str());
    std::this_thread::sleep_for(pause);
  }
}

void MeetingHost::say_waiting(const std::string& why) {
  const auto now = Clock::now();
  if (!report_.due(now) || log_ == nullptr) return;
  log_->print(LogLevel::warn, "rendezvous waits",
              "rendezvous: for %.0f s rank 0 at %.80s %.200s; it gives up in %.0f s",
              std::chrono::duration<double>(report_.waited(now)).count(), place_.name.c_str(),
              why.c_str(),
              std::max(0.0, std::chrono::duration<double>(patience_end_ - now).count()));
}

// Returns the connections refused since this meeting began. They are a sign that the missing ranks
// have another secret.
TcpServer::Refusals MeetingHost::refused() const {
  if (place_.own == nullptr) return {};
  TcpServer::Refusals refusals = place_.own->refusals();
  refusals.count -= refused_before_;
  return refusals;
}

std::string MeetingHost::waited_for(const TcpServer::Refusals& refused) const {
  const std::vector<Rank> missing = missing_ranks();
  std::string text = (missing.size() == 1 ? "rank " : "ranks ") + list_ranks(missing);
  if (refused.count == 0) return text;
  return text + "; " + std::to_string(refused.count) + " connections were refused, the last from " +
         refused.from + ": " + refused.why;
}

Status MeetingHost::invite() {
  const Status status = place_.store->put(keys_.root(), value_of(invitation_of(root_, meeting_)));
  if (!status.ok()) return status;
  return place_.store->put(MeetingKeys::kLatest, std::as_bytes(std::span(keys_.name_and_start())));
}

// Takes the Hellos that come within `patience`, until all ranks are here or a Hello ends the
// meeting. Also waits for an outcome, which a rank that finds a misfit puts. The outcome's key is
// last in the list, because some stores wait for the first key only.
void MeetingHost::collect(Duration patience) {
  std::vector<Rank> open = missing_ranks();
  std::vector<std::string> keys;
  keys.reserve(open.size() + 1);
  for (const Rank rank : open) keys.push_back(keys_.hello(meeting_, rank));
  keys.push_back(keys_.outcome(meeting_));
  const auto end_before = patience_end_;
  const Status status =
      place_.store->get_each(keys, patience, [&](std::size_t index, std::vector<std::byte> value) {
        const bool more = index < open.size() ? admit(open[index], value) : hear_outcome(value);
        return more && missing_ > 0 && patience_end_ == end_before;
      });
  if (status.ok()) return;
  if (log_ != nullptr) {
    log_->print(LogLevel::warn, "rendezvous store", "rendezvous: %s; trying again", status.c_str());
  }
  std::this_thread::sleep_for(std::min(kAgain, patience));
}

// Takes the Hello of a rank. If it does not fit, fails the meeting and returns false.
bool MeetingHost::admit(Rank rank, ByteSpan value) {
  auto hello = take_hello(value, keys_.hello(meeting_, rank), root_, rank);
  if (!hello.ok()) {
    fail(hello.status());
    return false;
  }
  Member& member = members_[rank];
  if (!std::exchange(member.here, true)) --missing_;
  const std::uint32_t patience_ms = hello->patience_ms();
  member.hello = std::move(*hello);
  if (missing_ > 0) shorten_patience(patience_ms);
  return true;
}

// Takes the outcome that another rank has put, which can only be a refusal.
bool MeetingHost::hear_outcome(ByteSpan value) {
  const auto welcome = parse_welcome(value, root_.size);
  told_by_other_ = true;
  fail(welcome && welcome->has_rejected()
           ? status_of(welcome->rejected())
           : Status::error(StatusCode::kMismatch, "another process put an outcome into %.60s",
                           place_.name.c_str()));
  return false;
}

// Looks at the Hellos again. A Hello is gone if its process ended, or replaced if another process
// has taken that process's place.
void MeetingHost::look_at_hellos() {
  std::vector<Rank> ranks;
  std::vector<std::string> keys;
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    if (!members_[rank].here) continue;
    ranks.push_back(static_cast<Rank>(rank));
    keys.push_back(keys_.hello(meeting_, ranks.back()));
  }
  std::vector<bool> seen(members_.size());
  const Status status = place_.store->get_each(
      keys, Duration(0), [&](std::size_t index, std::vector<std::byte> value) {
        seen[ranks[index]] = true;
        return admit(ranks[index], value);
      });
  if (!status.ok() || failure_) return;
  for (const Rank rank : ranks) {
    if (seen[rank]) continue;
    if (log_ != nullptr) {
      log_->print(LogLevel::warn, "rendezvous hang-up",
                  "rendezvous: rank %u at %s hung up; waiting for it again", unsigned{rank},
                  printable(members_[rank].hello.place(), 60).c_str());
    }
    members_[rank].here = false;
    ++missing_;
  }
}

// Looks at the invitation again: another process may have replaced it, or the store may have lost
// it.
void MeetingHost::look_at_invitation() {
  const auto value = place_.store->get(keys_.root(), Duration(0));
  if (!value.ok()) {
    if (value.status().code() == StatusCode::kDeadlineExceeded) (void)invite();
    return;
  }
  const auto invitation = parse_invitation(*value);
  if (invitation && invitation->meeting() == meeting_) return;
  if (!invitation) return (void)invite();
  fail(claimed_twice(0, this_place(), invitation->place()));
  (void)place_.store->put(keys_.outcome(invitation->meeting()), value_of(rejection_of(*failure_)));
}

// The group cannot be complete without its least patient member, so rank 0 waits no longer than
// that member. It keeps an eighth of the time (at most 200 ms) for the answer to arrive.
void MeetingHost::shorten_patience(std::uint32_t patience_ms) {
  const Duration patience = std::chrono::milliseconds(patience_ms);
  const auto end =
      Clock::now() + patience - std::min<Duration>(patience / 8, std::chrono::milliseconds(200));
  patience_end_ = std::min(patience_end_, end);
}

Result<Group> MeetingHost::conclude() {
  std::vector<control::Hello> others;
  for (std::size_t rank = 1; rank < members_.size(); ++rank)
    others.push_back(std::move(members_[rank].hello));
  LocalConfiguration root = root_;
  settle_addresses(root, others, transport::is_own_address);
  auto group = make_group(root, others, random_epoch());
  if (!group.ok()) {
    fail(group.status());
    tell_failure();
    return group.status();
  }
  const std::string key = keys_.outcome(meeting_);
  const auto table = proved_value(welcome_of(*group), root_, key);
  bind_to_table(*group, table, key);
  const Status status = put_outcome(table);
  if (!status.ok()) {
    return Status::error(StatusCode::kUnavailable, "rank 0 cannot tell the group at %.60s: %.200s",
                         place_.name.c_str(), status.c_str());
  }
  forget(*place_.store, keys_.root());
  wait_told(kTellTime);
  return group;
}

// Puts the outcome. If the store is out of reach, tries again for as long as the others wait.
Status MeetingHost::put_outcome(ByteSpan value) {
  const auto readers = static_cast<std::uint32_t>(members_.size() - 1);
  while (true) {
    const Status status =
        place_.store->put_briefly(keys_.outcome(meeting_), value, {.readers = readers});
    if (status.ok() || Clock::now() + kAgain >= patience_end_) return status;
    std::this_thread::sleep_for(kAgain);
  }
}

// Tells all ranks why the meeting failed. Rank 0 then stays for a while to tell ranks that come
// later, unless their time is up.
void MeetingHost::tell_failure() {
  const bool in_time = Clock::now() < patience_end_ && !root_.stop.stop_requested();
  if (!told_by_other_) (void)put_outcome(value_of(rejection_of(*failure_)));
  const Duration time = in_time ? limits_.linger : kTellTime;
  if (place_.own != nullptr) {
    wait_told(time);
  } else if (in_time) {
    std::this_thread::sleep_for(time);
  }
  forget(*place_.store, keys_.root());
}

// Waits until the other ranks have read the outcome, since this process may close its server next.
void MeetingHost::wait_told(Duration patience) {
  if (place_.own == nullptr) return;
  const bool out_of_time = Clock::now() >= patience_end_;
  const std::size_t ranks = members_.size() - 1 - (out_of_time ? missing_ : 0);
  place_.own->wait_read(keys_.outcome(meeting_), static_cast<std::uint32_t>(ranks), patience);
}

std::vector<Rank> MeetingHost::missing_ranks() const {
  std::vector<Rank> missing;
  for (std::size_t rank = 1; rank < members_.size(); ++rank) {
    if (!members_[rank].here) missing.push_back(static_cast<Rank>(rank));
  }
  return missing;
}

Status MeetingHost::too_few() const {
  const TcpServer::Refusals refusals = refused();
  const std::string missing = waited_for(refusals);
  std::string advice;
  if (const int error = place_.own == nullptr ? 0 : place_.own->accept_error(); error != 0) {
    return Status::error(code_without(error, StatusCode::kUnavailable),
                         "the rendezvous at %.60s cannot take connections: %s%s; %zu of %d ranks "
                         "were not heard: %s",
                         place_.name.c_str(), std::strerror(error), descriptor_hint(error),
                         missing_, root_.size, missing.c_str());
  }
  if (refusals.count == 0) {
    advice = "; are they running, with this address, name (\"" + printable(root_.name) +
             "\") and LEEWAY_RUN_ID, and is the port open to them?";
  }
  return Status::error(StatusCode::kUnavailable,
                       "%zu of %d ranks never came to the rendezvous at %.60s: missing %s%s",
                       missing_, root_.size, place_.name.c_str(), missing.c_str(), advice.c_str());
}

}  // namespace leeway::rendezvous
