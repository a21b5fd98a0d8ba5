#include <algorithm>
#include <thread>

#include "rendezvous/log.h"
#include "rendezvous/meeting.h"
#include "rendezvous/meeting_addresses.h"
#include "rendezvous/printable.h"

namespace leeway::rendezvous {
namespace {

// Pauses after an invitation that is not for this rank, and after the store could not be reached.
// They double each time.
constexpr Duration kPauseFirst = std::chrono::milliseconds(2);
constexpr Duration kPauseMax = std::chrono::milliseconds(100);

// When only 1/8 of join_timeout is left without an invitation, the guest looks for the reason.
constexpr int kAbsencePart = 8;

// Longest wait for an answer at an address from the store; then the guest asks the store again. The
// address may be that of a dead rank 0, whose port another process has by now and does not answer.
// A live rank 0 answers sooner.
constexpr Duration kStoredAddressPatience = std::chrono::seconds(2);

}  // namespace

MeetingGuest::MeetingGuest(const LocalConfiguration& local, const MeetingPlace& place,
                           const RendezvousLimits& limits, Log* log)
    : local_(local),
      place_(place),
      log_(log),
      keys_(local),
      end_(Clock::now() + local.join_timeout),
      report_(Clock::now(), limits.first_word),
      pause_(kPauseFirst) {}

Result<Group> MeetingGuest::run() {
  while (left() > Duration(0) && !local_.stop.stop_requested()) {
    if (auto outcome = find_meeting()) return *outcome;
    say_waiting();
  }
  return local_.stop.stop_requested() ? taken_back(local_) : failure();
}

MeetingGuest::Outcome MeetingGuest::find_meeting() {
  const Duration asking = local_.join_timeout / kAbsencePart;
  const bool is_early = left() > asking;
  const bool is_stored_address = place_.client != nullptr && local_.store != nullptr;
  Duration patience = is_early ? left() - asking : left();
  if (is_stored_address) patience = std::min(patience, kStoredAddressPatience);
  patience = std::min(patience, std::max(report_.left(Clock::now()), kPauseMax));
  const auto value = place_.store->get(keys_.root(), at_once(local_, patience));
  if (!value.ok()) {
    const StatusCode code = value.status().code();
    if (code == StatusCode::kDeadlineExceeded) {
      const bool is_time_to_say = report_.left(Clock::now()) <= Duration(0);
      if (is_time_to_say || (is_early && left() <= asking)) note_absence();
      return std::nullopt;
    }
    // Keeps the error of an earlier attempt if the deadline cut this attempt off, because the
    // earlier error says more.
    if (obstacle_.ok() || left() > Duration(0)) obstacle_ = value.status();
    if (code == StatusCode::kInvalidArgument) return value.status();
    if (code == StatusCode::kMismatch && !is_stored_address) {
      return Status::error(StatusCode::kMismatch,
                           "what answers at %.60s is not a Leeway rank 0 of this version; does "
                           "another program use the port? Choose another one in LEEWAY_RENDEZVOUS",
                           place_.name.c_str());
    }
    pause(kPauseMax);
    return std::nullopt;
  }
  const auto invitation = parse_invitation(*value);
  if (!invitation && !value->empty()) {
    return Status::error(StatusCode::kMismatch,
                         "%.60s holds something else than Leeway's invitation at \"%.100s\"",
                         place_.name.c_str(), keys_.root().c_str());
  }
  if (!invitation || invitation->meeting() == over_) {
    if (!invitation) note_absence();
    pause(kPauseMax);
    return std::nullopt;
  }
  pause_ = kPauseFirst;
  return attend(*invitation);
}

// Takes part in a meeting until it has an outcome or rank 0 invites to another meeting. Goes on if
// the store is out of reach, or if the invitation is gone: rank 0 erases it after the outcome.
MeetingGuest::Outcome MeetingGuest::attend(const control::Invitation& invitation) {
  const std::uint64_t meeting = invitation.meeting();
  if (Status status = check_invitation(invitation, local_); !status.ok())
    return refuse(meeting, status);
  Duration look = kLookFirst;
  for (bool is_first = true; left() > Duration(0); is_first = false) {
    if (local_.stop.stop_requested()) return refuse(meeting, taken_back(local_));
    const Duration patience = at_once(local_, std::min(look, left()));
    const auto value = is_first ? say_hello_and_hear(meeting, patience)
                                : place_.store->get(keys_.outcome(meeting), patience);
    if (value.ok()) return judge(meeting, *value);
    obstacle_ = value.status();
    if (obstacle_.code() == StatusCode::kMismatch) return std::nullopt;
    if (obstacle_.code() == StatusCode::kDeadlineExceeded) {
      obstacle_ =
          Status::error(StatusCode::kUnavailable,
                        "rank 0 is there, and has not answered; other ranks may be missing");
      look = std::min<Duration>(2 * look, kLookMax);
    } else {
      const std::string why(obstacle_.text());
      obstacle_ =
          Status::error(StatusCode::kUnavailable,
                        "rank 0 was there, and is gone before all ranks came (%.80s)", why.c_str());
      look = kLookFirst;
      pause(kPauseMax);
    }
    const Seen seen = look_around(meeting);
    if (seen == Seen::meeting_is_over) return std::nullopt;
    if (seen == Seen::other_process)
      return refuse(meeting, claimed_twice(local_.rank, other_place_, this_place()));
    if (report_.left(Clock::now()) <= Duration(0)) {
      note_missing(meeting);
      say_waiting();
    }
  }
  return std::nullopt;
}

// The Hello tells the addresses of the connection by which the invitation came.
std::vector<std::byte> MeetingGuest::hello(std::uint64_t meeting) const {
  control::Hello hello = hello_of(local_, attempt_, left(), place_.store->round_trip());
  if (const auto ends = place_.client == nullptr ? std::nullopt : place_.client->ends())
    tell_addresses(local_, *ends, hello);
  return proved_value(hello, local_, keys_.hello(meeting, local_.rank));
}

// The store may erase the Hello once this process has ended.
Status MeetingGuest::say_hello(std::uint64_t meeting) {
  return place_.store->put_briefly(keys_.hello(meeting, local_.rank), hello(meeting),
                                   {.with_this_process = true});
}

// Puts the Hello and gets the outcome, in one exchange if the store can.
Result<std::vector<std::byte>> MeetingGuest::say_hello_and_hear(std::uint64_t meeting,
                                                                Duration patience) {
  if (place_.client != nullptr) {
    return place_.client->put_and_get(keys_.hello(meeting, local_.rank), hello(meeting),
                                      keys_.outcome(meeting), patience);
  }
  if (Status status = say_hello(meeting); !status.ok()) return status;
  return place_.store->get(keys_.outcome(meeting), patience);
}

// Reads the outcome. If its table lacks this guest's attempt number, the meeting was an earlier one
// or took another process as this rank, so the guest tries again.
MeetingGuest::Outcome MeetingGuest::judge(std::uint64_t meeting, ByteSpan value) {
  const auto welcome = parse_welcome(value, local_.size);
  if (!welcome) {
    return Status::error(StatusCode::kMismatch,
                         "what rank 0 put into %.60s is not a table of this version of Leeway",
                         place_.name.c_str());
  }
  if (!place_.has_live_keys) (void)place_.store->erase(keys_.hello(meeting, local_.rank));
  if (welcome->has_rejected()) return status_of(welcome->rejected());
  if (welcome->group().attempts(local_.rank) == attempt_) {
    return take_group(*welcome, value, keys_.outcome(meeting), local_);
  }
  over_ = meeting;
  obstacle_ = Status::error(StatusCode::kUnavailable,
                            "another process met there as rank %u, now or in an earlier run",
                            unsigned{local_.rank});
  return std::nullopt;
}

MeetingGuest::Seen MeetingGuest::look_around(std::uint64_t meeting) {
  const auto root = place_.store->get(keys_.root(), Duration(0));
  if (root.ok()) {
    const auto invitation = parse_invitation(*root);
    if (invitation && invitation->meeting() != meeting) return Seen::meeting_is_over;
  }
  const auto value = place_.store->get(keys_.hello(meeting, local_.rank), Duration(0));
  if (!value.ok()) {
    if (value.status().code() == StatusCode::kDeadlineExceeded) (void)say_hello(meeting);
    return Seen::unchanged;
  }
  const auto hello = parse_hello(*value);
  if (!hello || hello->attempt() == attempt_) return Seen::unchanged;
  other_place_ = hello->place();
  return Seen::other_process;
}

// Puts `reason` as the outcome for all ranks, unless there is an outcome already.
Result<Group> MeetingGuest::refuse(std::uint64_t meeting, const Status& reason) {
  const std::string key = keys_.outcome(meeting);
  const auto outcome = place_.store->get(key, Duration(0));
  const auto welcome = outcome.ok() ? parse_welcome(*outcome, local_.size) : std::nullopt;
  if (welcome && welcome->has_rejected()) return status_of(welcome->rejected());
  if (!outcome.ok()) (void)place_.store->put(key, value_of(rejection_of(reason)));
  return reason;
}

void MeetingGuest::pause(Duration at_most) {
  std::this_thread::sleep_for(std::min(pause_, std::max<Duration>(left(), Duration(0))));
  pause_ = std::min(2 * pause_, at_most);
}

// Notes why rank 0 may be absent. The name of the last group that met in the store often shows why,
// for instance if this group's name is misspelt.
void MeetingGuest::note_absence() {
  const auto latest = place_.store->get(MeetingKeys::kLatest, Duration(0));
  if (!latest.ok() && latest.status().code() != StatusCode::kDeadlineExceeded) {
    obstacle_ = latest.status();
    return;
  }
  std::string other;
  if (latest.ok()) other.assign(reinterpret_cast<const char*>(latest->data()), latest->size());
  const std::string own = printable(local_.name);
  obstacle_ = Status::error(StatusCode::kUnavailable,
                            "rank 0 of communicator \"%s\" has not come there", own.c_str());
  if (other.empty()) return;
  const std::size_t space = std::min(other.find(' '), other.size());
  const std::string name = other.substr(std::min(space + 1, other.size()));
  if (other.substr(0, space) != std::to_string(local_.restart_count)) {
    seen_ =
        "; ranks of another start (LEEWAY_RUN_ID) met there: is this process left from an "
        "earlier one?";
  } else if (name != local_.name) {
    obstacle_ =
        Status::error(StatusCode::kUnavailable,
                      "rank 0 of communicator \"%s\" has not come there yet; the last one "
                      "that met there is \"%s\": if rank 0 means this one by it, names must "
                      "be equal",
                      own.c_str(), printable(name).c_str());
  } else {
    seen_ =
        "; that group began without this process, perhaps with one that an earlier start left: "
        "end that one, and start all ranks anew";
  }
}

// Notes which ranks rank 0 waits for.
void MeetingGuest::note_missing(std::uint64_t meeting) {
  std::vector<std::string> keys;
  std::vector<bool> is_here(static_cast<std::size_t>(local_.size));
  for (std::size_t rank = 1; rank < is_here.size(); ++rank)
    keys.push_back(keys_.hello(meeting, static_cast<Rank>(rank)));
  const Status status = place_.store->get_each(
      keys, Duration(0), [&](std::size_t index, const std::vector<std::byte>&) {
        is_here[index + 1] = true;
        return true;
      });
  if (!status.ok()) return;
  std::vector<Rank> missing;
  for (std::size_t rank = 1; rank < is_here.size(); ++rank) {
    if (!is_here[rank]) missing.push_back(static_cast<Rank>(rank));
  }
  if (missing.empty()) return;
  obstacle_ = Status::error(StatusCode::kUnavailable, "rank 0 is there, and waits for rank%s %s",
                            missing.size() == 1 ? "" : "s", list_ranks(missing).c_str());
}

void MeetingGuest::say_waiting() {
  const auto now = Clock::now();
  const Duration rest = left();
  if (!report_.due(now) || log_ == nullptr || rest <= Duration(0)) return;
  log_->print(LogLevel::warn, "rendezvous waits",
              "rendezvous: for %.0f s rank %u at %.80s waits: %.200s%s; it gives up in %.0f s",
              std::chrono::duration<double>(report_.waited(now)).count(), unsigned{local_.rank},
              place_.name.c_str(), obstacle_.c_str(), seen_,
              std::chrono::duration<double>(rest).count());
}

Status MeetingGuest::failure() const {
  return Status::error(StatusCode::kUnavailable,
                       "rank %u could not join through rank 0 at %.60s within %.1f s: %.200s%s",
                       unsigned{local_.rank}, place_.name.c_str(),
                       std::chrono::duration<double>(local_.join_timeout).count(),
                       obstacle_.c_str(), seen_);
}

}  // namespace leeway::rendezvous
