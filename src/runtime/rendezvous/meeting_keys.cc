#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include "base/fnv.h"
#include "rendezvous/meeting.h"
#include "rendezvous/printable.h"

namespace leeway::rendezvous {
namespace {

// Longest part of a key that is made of a name. A longer one ends in a hash of all of it.
constexpr std::size_t kNameBytesMax = 120;

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(number));
  return text.data();
}

// One part of a key. Letters that keys do not have, and '/', become '%' and two digits.
std::string key_part(const std::string& name) {
  std::string part;
  for (const char c : name) {
    const bool plain = c != '/' && c != '%' && is_key(std::string_view(&c, 1));
    if (plain) {
      part += c;
      continue;
    }
    part += '%';
    part += hexadecimal(static_cast<unsigned char>(c)).substr(14);
  }
  if (part.size() <= kNameBytesMax) return part;
  return part.substr(0, kNameBytesMax - 17) + "%" + hexadecimal(fnv1a(name));
}

}  // namespace

MeetingKeys::MeetingKeys(const LocalConfiguration& local) {
  const std::string attempt = "leeway/" + std::to_string(local.restart_count);
  group_ = attempt + "/" + key_part(local.name);
  name_and_start_ = std::to_string(local.restart_count) + " " + local.name;
}

std::string MeetingKeys::hello(std::uint64_t meeting, Rank rank) const {
  return group_ + "/" + hexadecimal(meeting) + "/hello/" + std::to_string(rank);
}

std::string MeetingKeys::outcome(std::uint64_t meeting) const {
  return group_ + "/" + hexadecimal(meeting) + "/outcome";
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
  std::random_device device;
  std::uint64_t number = 0;
  while (number == 0) number = std::uint64_t{device()} << 32 | device();
  return number;
}

void forget(Rendezvous& store, const std::string& key) {
  (void)store.put(key, {});
  (void)store.erase(key);
}

}  // namespace leeway::rendezvous
