// Lower bound on the cost of a small all-reduce over UDP: bare message patterns between processes
// on loopback, without a protocol. `leeway perf` measures the same call with the protocol.
//
//   message_pattern_bench [--ranks N] [--bytes B] [--calls K] [--batches M] [--json]
//
// N processes sum a float32 vector of B bytes. Each has one UDP socket, and yields while it waits.
// For each pattern the program prints two times of the slowest rank in us, as medians over batches:
// that of a call after a barrier (of empty messages, all to all), and that of one of K calls back
// to back. Nothing is repaired: a lost message ends the program. Sums are checked after every
// batch.
#include <arpa/inet.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  int ranks = 4;
  std::size_t bytes = 4096;
  int calls = 200;
  int batches = 15;
  bool json = false;
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

constexpr int kRanksMax = 64;
constexpr int kPhasesMax = 16;             // messages that one rank gets from another in a call
constexpr std::size_t kBytesMax = 60'000;  // bytes of one message: loopback takes it whole
constexpr int kReceiveBuffer = 8 * 1024 * 1024;
constexpr auto kPatience = std::chrono::seconds(5);

// One rank's socket, and messages of the next call that arrived early. A peer is at most one call
// ahead.
class Mailbox {
 public:
  Mailbox(int rank, std::span<const int> sockets, std::span<const sockaddr_in> addresses)
      : rank_(rank), socket_(sockets[rank]), addresses_(addresses) {}

  void send(int to, int phase, std::span<const float> values) {
    const Header header{call_, static_cast<std::uint16_t>(phase),
                        static_cast<std::uint16_t>(rank_)};
    std::array<iovec, 2> parts{iovec{const_cast<Header*>(&header), sizeof(header)},
                               iovec{const_cast<float*>(values.data()), values.size_bytes()}};
    msghdr message{};
    message.msg_name = const_cast<sockaddr_in*>(&addresses_[to]);
    message.msg_namelen = sizeof(sockaddr_in);
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    while (::sendmsg(socket_, &message, MSG_DONTWAIT) < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) give_up("sendmsg");
      sched_yield();
    }
  }

  // Waits for a message of this call. It is valid until the call after the next one.
  std::span<const float> receive(int from, int phase) {
    const auto start = Clock::now();
    Slot& slot = slot_of(call_, phase, from);
    while (slot.call != call_ + 1) {
      if (take()) continue;
      sched_yield();
      if (Clock::now() - start > kPatience) {
        std::fprintf(stderr, "error: rank %d: nothing of rank %d; was a message lost?\n", rank_,
                     from);
        std::exit(1);
      }
    }
    return slot.values;
  }

  void next_call() { ++call_; }

 private:
  struct Header {
    std::uint32_t call;
    std::uint16_t phase;
    std::uint16_t from;
  };
  struct Slot {
    std::uint32_t call = 0;  // number of the call, plus one
    std::vector<float> values;
  };

  Slot& slot_of(std::uint32_t call, int phase, int from) {
    return slots_[((call % 2) * kPhasesMax + static_cast<std::uint32_t>(phase)) * kRanksMax +
                  static_cast<std::uint32_t>(from)];
  }

  bool take() {
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(sizeof(Header))) return false;
    Header header;
    std::memcpy(&header, buffer_.data(), sizeof(header));
    Slot& slot = slot_of(header.call, header.phase, header.from);
    slot.values.resize((static_cast<std::size_t>(got) - sizeof(header)) / sizeof(float));
    std::memcpy(slot.values.data(), buffer_.data() + sizeof(header),
                slot.values.size() * sizeof(float));
    slot.call = header.call + 1;
    return true;
  }

  const int rank_;
  const int socket_;
  const std::span<const sockaddr_in> addresses_;
  std::uint32_t call_ = 0;
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{2} * kPhasesMax * kRanksMax);
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBytesMax + sizeof(Header));
};

class Rank {
 public:
  Rank(int rank, int ranks, std::size_t elements, Mailbox& mail)
      : rank_(rank), ranks_(ranks), mail_(mail), own_(elements), sum_(elements) {
    for (std::size_t i = 0; i < elements; ++i) own_[i] = static_cast<float>(rank + 1 + i % 7);
  }

  void one_shot() {
    begin();
    for_each_other([&](int peer) { mail_.send(peer, 0, own_); });
    for_each_other([&](int peer) { add(sum_, mail_.receive(peer, 0)); });
  }

  // Every rank sums a shard, and sends the result to all.
  void transpose() {
    begin();
    for_each_other([&](int peer) { mail_.send(peer, 0, shard(own_, peer)); });
    for_each_other([&](int peer) { add(shard(sum_, rank_), mail_.receive(peer, 0)); });
    for_each_other([&](int peer) { mail_.send(peer, 1, shard(sum_, rank_)); });
    for_each_other([&](int peer) {
      const auto result = mail_.receive(peer, 1);
      std::copy(result.begin(), result.end(), shard(sum_, peer).begin());
    });
  }

  void recursive_doubling() {
    begin();
    for (int step = 1, phase = 0; step < ranks_; step *= 2, ++phase) {
      mail_.send(rank_ ^ step, phase, sum_);
      add(sum_, mail_.receive(rank_ ^ step, phase));
    }
  }

  void tree() {
    begin();
    int step = 1;
    for (; step < ranks_ && rank_ % (2 * step) == 0; step *= 2) {
      if (rank_ + step < ranks_) add(sum_, mail_.receive(rank_ + step, 0));
    }
    if (rank_ != 0) {
      mail_.send(rank_ - step, 0, sum_);
      take_result(rank_ - step);
    }
    for (step /= 2; step > 0; step /= 2) {
      if (rank_ + step < ranks_) mail_.send(rank_ + step, 1, sum_);
    }
  }

  void star() {
    begin();
    if (rank_ != 0) {
      mail_.send(0, 0, own_);
      return take_result(0);
    }
    for_each_other([&](int peer) { add(sum_, mail_.receive(peer, 0)); });
    for_each_other([&](int peer) { mail_.send(peer, 1, sum_); });
  }

  void barrier() {
    mail_.next_call();
    for_each_other([&](int peer) { mail_.send(peer, 0, {}); });
    for_each_other([&](int peer) { mail_.receive(peer, 0); });
  }

  bool right() const {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const std::size_t shift = i % 7 * static_cast<std::size_t>(ranks_);
      if (sum_[i] != static_cast<float>(ranks_ * (ranks_ + 1) / 2 + static_cast<int>(shift)))
        return false;
    }
    return true;
  }

 private:
  void begin() {
    mail_.next_call();
    sum_ = own_;
  }
  template <typename Visit>
  void for_each_other(Visit&& visit) const {
    for (int step = 1; step < ranks_; ++step) visit((rank_ + step) % ranks_);
  }
  static void add(std::span<float> sum, std::span<const float> values) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  template <typename T>
  std::span<T> shard_of(std::span<T> all, int owner) const {
    const std::size_t each =
        (all.size() + static_cast<std::size_t>(ranks_) - 1) / static_cast<std::size_t>(ranks_);
    const std::size_t first = std::min(all.size(), each * static_cast<std::size_t>(owner));
    return all.subspan(first, std::min(each, all.size() - first));
  }
  std::span<float> shard(std::vector<float>& all, int owner) const {
    return shard_of(std::span(all), owner);
  }
  void take_result(int from) {
    const auto result = mail_.receive(from, 1);
    std::copy(result.begin(), result.end(), sum_.begin());
  }

  const int rank_;
  const int ranks_;
  Mailbox& mail_;
  std::vector<float> own_;
  std::vector<float> sum_;
};

struct Pattern {
  const char* name;
  void (Rank::*call)();
  bool powers_of_two = false;  // needs a power of two of ranks
};
constexpr std::array kPatterns = {Pattern{"one_shot", &Rank::one_shot},
                                  Pattern{"transpose", &Rank::transpose},
                                  Pattern{"recursive_doubling", &Rank::recursive_doubling, true},
                                  Pattern{"tree", &Rank::tree}, Pattern{"star", &Rank::star}};

// Times of all ranks, in memory that their processes share. Each pattern has a time for every call
// after a barrier, then one for every batch back to back.
class Times {
 public:
  explicit Times(const Arguments& a)
      : ranks_(static_cast<std::size_t>(a.ranks)),
        batches_(static_cast<std::size_t>(a.batches)),
        calls_(batches_ * static_cast<std::size_t>(a.calls)) {
    const std::size_t bytes = kPatterns.size() * (calls_ + batches_) * ranks_ * sizeof(double);
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("mmap");
    us_ = static_cast<double*>(memory);
  }
  double& of_call(std::size_t pattern, std::size_t call, int rank) {
    return us_[(pattern * (calls_ + batches_) + call) * ranks_ + static_cast<std::size_t>(rank)];
  }
  double& of_batch(std::size_t pattern, std::size_t batch, int rank) {
    return of_call(pattern, calls_ + batch, rank);
  }
  double after_barrier(std::size_t pattern) const { return median(pattern, 0, calls_); }
  double back_to_back(std::size_t pattern) const { return median(pattern, calls_, batches_); }

 private:
  // Returns the median over calls of the slowest rank's time.
  double median(std::size_t pattern, std::size_t first, std::size_t count) const {
    std::vector<double> slowest;
    for (std::size_t i = first; i < first + count; ++i) {
      const double* const row = us_ + (pattern * (calls_ + batches_) + i) * ranks_;
      slowest.push_back(*std::max_element(row, row + ranks_));
    }
    const auto middle = slowest.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(slowest.begin(), middle, slowest.end());
    return *middle;
  }

  const std::size_t ranks_;
  const std::size_t batches_;
  const std::size_t calls_;
  double* us_ = nullptr;
};

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

bool fits(const Pattern& pattern, int ranks) {
  return !pattern.powers_of_two || std::has_single_bit(static_cast<unsigned>(ranks));
}

void run_batch(int self, const Arguments& a, std::size_t pattern, int batch, Rank& rank,
               Times& times) {
  const auto call = kPatterns[pattern].call;
  for (int i = 0; i < a.calls; ++i) {
    rank.barrier();
    const auto start = Clock::now();
    (rank.*call)();
    times.of_call(pattern, static_cast<std::size_t>(batch * a.calls + i), self) = us_since(start);
  }
  rank.barrier();
  const auto start = Clock::now();
  for (int i = 0; i < a.calls; ++i) (rank.*call)();
  times.of_batch(pattern, static_cast<std::size_t>(batch), self) = us_since(start) / a.calls;
  if (rank.right()) return;
  std::fprintf(stderr, "error: rank %d: wrong sum by %s\n", self, kPatterns[pattern].name);
  std::exit(1);
}

void run_rank(int self, const Arguments& a, Rank& rank, Times& times) {
  for (int batch = 0; batch < a.batches; ++batch) {
    for (std::size_t p = 0; p < kPatterns.size(); ++p) {
      if (fits(kPatterns[p], a.ranks)) run_batch(self, a, p, batch, rank, times);
    }
  }
  rank.barrier();  // no rank leaves while another one waits for a message
}

void print(const Arguments& a, const Times& times) {
  if (a.json) {
    std::printf("{\"ranks\":%d,\"bytes\":%zu", a.ranks, a.bytes);
  } else {
    std::printf("%d ranks, %zu bytes; us a call\n%-20s %14s %14s\n", a.ranks, a.bytes, "",
                "after barrier", "back to back");
  }
  const char* const row = a.json ? ",\"%s\":{\"after_barrier_us\":%.2f,\"back_to_back_us\":%.2f}"
                                 : "%-20s %14.1f %14.1f\n";
  for (std::size_t p = 0; p < kPatterns.size(); ++p) {
    if (!fits(kPatterns[p], a.ranks)) continue;
    std::printf(row, kPatterns[p].name, times.after_barrier(p), times.back_to_back(p));
  }
  if (a.json) std::printf("}\n");
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      a.json = true;
      continue;
    }
    const long value = i + 1 < argc ? std::atol(argv[++i]) : 0;
    if (word == "--ranks") a.ranks = static_cast<int>(value);
    if (word == "--bytes") a.bytes = static_cast<std::size_t>(value);
    if (word == "--calls") a.calls = static_cast<int>(value);
    if (word == "--batches") a.batches = static_cast<int>(value);
  }
  const bool sane = a.ranks >= 2 && a.ranks <= kRanksMax && a.bytes >= 4 && a.bytes <= kBytesMax &&
                    a.calls > 0 && a.batches > 0;
  if (!sane) {
    std::fprintf(stderr,
                 "usage: message_pattern_bench [--ranks 2..%d] [--bytes 4..%zu] [--calls K] "
                 "[--batches M] [--json]\n",
                 kRanksMax, kBytesMax);
    std::exit(2);
  }
  return a;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments a = parse(argc, argv);
  std::vector<int> sockets;
  std::vector<sockaddr_in> addresses;
  for (int rank = 0; rank < a.ranks; ++rank) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    if (socket < 0 || ::bind(socket, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      give_up("socket");
    }
    (void)::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
    sockets.push_back(socket);
    addresses.push_back(address);
  }
  Times times(a);
  for (int self = 0; self < a.ranks; ++self) {
    if (::fork() != 0) continue;
    Mailbox mail(self, sockets, addresses);
    Rank rank(self, a.ranks, a.bytes / sizeof(float), mail);
    run_rank(self, a, rank, times);
    std::_Exit(0);
  }
  bool all_well = true;
  for (int status = 0; ::wait(&status) > 0;)
    all_well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!all_well) return 1;
  print(a, times);
}
