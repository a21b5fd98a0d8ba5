#include "packet_loop.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace leeway::lab {
namespace {

// Packets read from a device before the next device has its turn. They are enough to amortise the
// cost of a turn, and few enough that packets at other devices wait for less than 0.1 ms.
constexpr int kBatchPackets = 128;

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns how long this thread was ready to run but had no core, according to the kernel.
double waited_seconds() {
  std::ifstream file("/proc/thread-self/schedstat");
  double ran_ns = 0, waited_ns = 0;
  file >> ran_ns >> waited_ns;
  return waited_ns * 1e-9;
}

// Takes a real-time priority. Otherwise other work delays packets by its time slices of some ms
// (measured: README.md). Returns false if the system does not permit it.
bool go_ahead_of_others() {
  const sched_param priority{.sched_priority = 1};
  return ::sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

}  // namespace

PacketLoop::PacketLoop(const std::vector<int>& devices, Duration grain)
    : grain_(grain), due_(devices.size()) {
  for (const int device : devices) watched_.push_back({device, POLLIN, 0});
}

Instant PacketLoop::now() const {
  return Instant{} +
         std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - start_);
}

bool PacketLoop::run(Wan& wan, int control) {
  ::prctl(PR_SET_TIMERSLACK, 1);  // ns
  precision_.ahead_of_others = go_ahead_of_others();
  empty_.assign(watched_.size(), Instant{});
  watched_.push_back({control, POLLIN, 0});
  start_ = std::chrono::steady_clock::now();
  while (watched_.back().revents == 0) {
    deliver_due(wan);
    const Found found = take_all(wan);
    found == Found::nothing ? sleep(wan.next_due())
                            : rest(found == Found::some ? grain_ : Duration{});
  }
  precision_.seconds = std::chrono::duration<double>(now() - Instant{}).count();
  precision_.processor_s = processor_seconds();
  precision_.waited_s = waited_seconds();
  char byte = 0;
  return ::read(control, &byte, 1) == 1;
}

PacketLoop::Found PacketLoop::take_all(Wan& wan) {
  const Instant begin = now();
  Found found = Found::nothing;
  for (std::uint32_t rank = 0; rank + 1 < watched_.size(); ++rank) {
    const Found here = take_batch(wan, rank);
    if (here == Found::nothing) continue;
    found = std::max(found, here);
    deliver_due(wan);
  }
  if (found != Found::nothing) precision_.pass.add((now() - begin).count());
  return found;
}

PacketLoop::Found PacketLoop::take_batch(Wan& wan, std::uint32_t rank) {
  for (int taken = 0; taken < kBatchPackets;) {
    const ssize_t bytes = ::read(watched_[rank].fd, buffer_.data(), buffer_.size());
    const Instant came = now();
    if (bytes <= 0) {
      empty_[rank] = came;
      return taken > 0 ? Found::some : Found::nothing;
    }
    Cut cut{std::span(buffer_).first(static_cast<std::size_t>(bytes))};
    for (ByteSpan packet = cut.next(); !packet.empty(); packet = cut.next(), ++taken) {
      precision_.intake.add(wan.line_is_busy(came, rank) ? 0 : (came - empty_[rank]).count());
      wan.take(came, rank, packet);
    }
  }
  return Found::more;
}

// Pauses although packets come, so that the next pass takes more packets at once, and the thread is
// woken less often. Only the end of the run cuts the pause short.
void PacketLoop::rest(Duration time) {
  const timespec timeout{.tv_sec = 0, .tv_nsec = time.count()};
  ::ppoll(&watched_.back(), 1, &timeout, nullptr);
}

void PacketLoop::sleep(Instant until) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = std::clamp<std::int64_t>((until - now()).count(), 0, kSecond);
  const timespec time{.tv_sec = ns / kSecond, .tv_nsec = ns % kSecond};
  ::ppoll(watched_.data(), watched_.size(), &time, nullptr);
  empty_.assign(empty_.size(), now());  // the first packet ended the sleep
}

void PacketLoop::deliver_due(Wan& wan) {
  wan.run_until(now());
  for (std::uint32_t rank = 0; rank < due_.size(); ++rank) {
    if (!due_[rank].empty()) write_trains(rank);
  }
}

void PacketLoop::deliver(Instant due, std::uint32_t rank, ByteSpan packet, bool damaged) {
  precision_.late.add((now() - due).count());
  if (due_[rank].add(packet, damaged)) return;
  write_trains(rank);
  due_[rank].add(packet, damaged);
}

void PacketLoop::write_trains(std::uint32_t rank) {
  due_[rank].flush([&](ByteSpan train) {
    // As on a real host, a packet is lost if the rank's device is gone or down, so the error is
    // ignored.
    [[maybe_unused]] const ssize_t written = ::write(watched_[rank].fd, train.data(), train.size());
  });
}

}  // namespace leeway::lab
