#include <algorithm>
#include <span>

#include "base/fnv.h"
#include "base/hex_text.h"
#include "base/random_bits.h"
#include "rendezvous/meeting.h"
#include "rendezvous/printable.h"
#include "rendezvous/store_table.h"

namespace leeway::rendezvous {
namespace {

// Longest part of a key made from a name. A longer name is cut and ends in a hash of all of it.
constexpr std::size_t kNameBytesMax = 120;

// Makes one part of a key from a name. '/' and characters that keys cannot have become '%' and two
// hexadecimal digits.
std::string key_part(const std::string& name) {
  std::string part;
  for (const char c : name) {
    const bool plain = c != '/' && c != '%' && is_key(std::string_view(&c, 1));
    if (plain) {
      part += c;
      continue;
    }
    part += '%';
    part += hex_text(std::as_bytes(std::span(&c, 1)));
  }
  if (part.size() <= kNameBytesMax) return part;
  return part.substr(0, kNameBytesMax - 17) + "%" + hex_text(fnv1a(name));
}

}  // namespace

MeetingKeys::MeetingKeys(const LocalConfiguration& local) {
  const std::string attempt = "leeway/" + std::to_string(local.restart_count);
  group_ = attempt + "/" + key_part(local.name);
  name_and_start_ = std::to_string(local.restart_count) + " " + local.name;
}

std::string MeetingKeys::hello(std::uint64_t meeting, Rank rank) const {
  return group_ + "/" + hex_text(meeting) + "/hello/" + std::to_string(rank);
}

std::string MeetingKeys::outcome(std::uint64_t meeting) const {
  return group_ + "/" + hex_text(meeting) + "/outcome";
}

bool WaitReport::due(Clock::time_point now) {
  if (now < begin_ + after_) return false;
  after_ *= 2;
  return true;
}

Duration at_once(const LocalConfiguration& local, Duration patience) {
  constexpr Duration kStopLook = std::chrono::milliseconds(100);
  return local.stop.stop_possible() ? std::min(patience, kStopLook) : patience;
}

Status taken_back(const LocalConfiguration& local) {
  return Status::error(StatusCode::kCancelled,
                       "rank %u of communicator \"%s\" was told to stop joining",
                       unsigned{local.rank}, printable(local.name).c_str());
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  while (number == 0) number = random_bits();
  return number;
}

void forget(Rendezvous& store, const std::string& key) {
  (void)store.put(key, {});
  (void)store.erase(key);
}

}  // namespace leeway::rendezvous
