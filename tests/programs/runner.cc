#include "programs/runner.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "leeway/rendezvous.h"
#include "programs/player.h"

namespace leeway::programs {
namespace {

constexpr int kWrongStatus = 40;

// Reserves a port for this group, below the range from which the kernel takes ports. Rank 0 does
// not hold the port between two joins. So watchers reserve ports by abstract socket names. No other
// watcher can bind a name until `holder` is closed.
std::string reserve_address(int& holder) {
  static unsigned next = static_cast<unsigned>(::getpid()) * 97;
  for (;;) {
    const unsigned port = 10'000 + next++ % 20'000;
    holder = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // An abstract name begins with a zero byte, and is no file.
    const int length =
        std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "program_swarm.%u", port);
    const auto bytes =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<unsigned>(length));
    const int listener = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<std::uint16_t>(port));
    const bool free = ::bind(holder, reinterpret_cast<const sockaddr*>(&name), bytes) == 0 &&
                      (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address),
                                              sizeof address) == 0);
    if (listener >= 0) ::close(listener);
    if (free) return "127.0.0.1:" + std::to_string(port);
    ::close(holder);
  }
}

std::size_t entries(const char* folder) {
  DIR* const open = ::opendir(folder);
  if (open == nullptr) return 0;
  std::size_t count = 0;
  while (::readdir(open) != nullptr) ++count;
  ::closedir(open);
  return count;
}

// Resources of a process that its communicators should have released.
struct Holdings {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  std::string shared;  // mappings of shared memory

  static Holdings now() {
    Holdings all;
    all.threads = entries("/proc/self/task");
    all.descriptors = entries("/proc/self/fd");
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.find("/dev/shm") != std::string::npos || line.find("memfd:") != std::string::npos)
        all.shared += line + "; ";
    return all;
  }
  std::string beyond(const Holdings& before) const {
    if (threads > before.threads)
      return std::to_string(threads - before.threads) + " threads are left";
    if (descriptors > before.descriptors)
      return std::to_string(descriptors - before.descriptors) + " descriptors are left";
    if (shared.size() > before.shared.size()) return "memory is left mapped: " + shared;
    return {};
  }
};

// Returns which resources are left beyond `before`. Waits a moment, because threads and sockets may
// take time to disappear.
std::string leftovers(const Holdings& before) {
  std::string left;
  for (int i = 0; i < 200; ++i) {
    left = Holdings::now().beyond(before);
    if (left.empty()) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return left;
}

bool play_all(Player& player, const std::vector<Program>& programs) {
  if (!player.begin(programs.front())) return false;
  for (std::size_t i = 0; i < programs.size(); ++i)
    if (!player.play(programs[i], static_cast<int>(i))) return false;
  player.end();
  return true;
}

// Gives this process a /dev/shm of its own, so that the two halves of a mixed group share no
// memory. Returns false without the right to mount; all ranks then share memory.
bool hide_memory() {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("programs", "/dev/shm", "tmpfs", 0, "size=256m") == 0;
}

[[noreturn]] void be_threads(const std::vector<Program>& programs, Board& board, Meeting meeting) {
  const Program& first = programs.front();
  const std::unique_ptr<Library> library = library_of(first, meeting);
  const Holdings before = Holdings::now();
  bool right = true;
  {
    if (!first.by_address) meeting.store = std::make_shared<InprocRendezvous>();
    std::vector<std::unique_ptr<Comm>> worlds;
    if (first.route == Route::inproc) {
      Options options = options_for(first, meeting, 0);
      options.rank.reset();
      options.world_size.reset();
      auto made = library->create_inproc(first.ranks, options);
      if (!made.ok()) board.fail(0, 0, 0, std::string("create_inproc(): ") + made.status().c_str());
      if (!made.ok()) std::_Exit(kWrongStatus);
      worlds = std::move(*made);
    }
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < first.ranks; ++rank) {
      ranks.emplace_back([&, rank] {
        Player player(board, *library, meeting, rank);
        if (!worlds.empty()) player.take(std::move(worlds[static_cast<std::size_t>(rank)]));
        // Exits without destructors, because other threads still use their ranks' communicators.
        if (!play_all(player, programs)) std::_Exit(kWrongStatus);
      });
    }
    for (std::thread& one : ranks) one.join();
  }
  const std::string left = leftovers(before);
  if (!left.empty()) {
    board.leaked = true;
    board.fail(static_cast<int>(programs.size()) - 1, 0, -1, left);
    right = false;
  }
  board.over += first.ranks;
  std::_Exit(right ? 0 : kWrongStatus);
}

[[noreturn]] void be_process(const std::vector<Program>& programs, Board& board,
                             const Meeting& meeting, int rank) {
  const Program& first = programs.front();
  if (first.route == Route::mixed && rank >= first.ranks / 2) (void)hide_memory();
  const std::unique_ptr<Library> library = library_of(first, meeting);
  const Holdings before = Holdings::now();
  bool right = false;
  {
    Player player(board, *library, meeting, rank);
    right = play_all(player, programs);
    if (!right) std::_Exit(kWrongStatus);
  }
  const std::string left = leftovers(before);
  if (!left.empty()) {
    board.leaked = true;
    board.fail(static_cast<int>(programs.size()) - 1, 0, rank, left);
  }
  board.over += 1;
  std::_Exit(left.empty() ? 0 : kWrongStatus);
}

}  // namespace

bool can_hide_memory() {
  const int child = ::fork();
  if (child == 0) ::_exit(hide_memory() ? 0 : 1);
  int outcome = 1;
  return child > 0 && ::waitpid(child, &outcome, 0) == child && outcome == 0;
}

std::string to_string(Verdict::What what) {
  constexpr const char* kNames[] = {"right", "wrong", "hang", "death", "leak"};
  return kNames[static_cast<int>(what)];
}

void Board::fail(int program, int step, int rank, const std::string& why) {
  int before = 0;
  if (!failed.compare_exchange_strong(before, 1)) return;
  failed_program = program;
  failed_step = step;
  failed_rank = rank;
  std::snprintf(text, sizeof text, "%s", why.c_str());
  failed = 2;
}

Board* make_board(int ranks) {
  void* const memory =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const board = new (memory) Board();
  pthread_barrierattr_t shared;
  ::pthread_barrierattr_init(&shared);
  ::pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  ::pthread_barrier_init(&board->barrier, &shared, static_cast<unsigned>(ranks));
  return board;
}

Run::Run(std::vector<Program> programs, std::chrono::milliseconds idle, bool loud)
    : programs_(std::move(programs)), idle_(idle), moved_(std::chrono::steady_clock::now()) {
  const Program& first = programs_.front();
  board_ = make_board(first.ranks);
  if (board_ == nullptr) std::abort();
  Meeting meeting;
  meeting.address = reserve_address(port_holder_);
  meeting.name = "programs";
  char folder[] = "/tmp/program_swarm.XXXXXX";
  if (::mkdtemp(folder) == nullptr) std::abort();
  folder_ = meeting.folder = folder;
  meeting.secret_file = folder_ + "/secret";
  std::ofstream(meeting.secret_file) << kSecret << "\n";
  ::chmod(meeting.secret_file.c_str(), 0600);
  if (loud) meeting.log_level = "warn";
  std::fflush(nullptr);
  const int watcher = ::getpid();
  const int count = first.processes ? first.ranks : 1;
  for (int rank = 0; rank < count; ++rank) {
    const int child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != watcher) std::_Exit(1);
      if (first.processes) be_process(programs_, *board_, meeting, rank);
      be_threads(programs_, *board_, meeting);
    }
    processes_.push_back(child);
  }
}

Run::~Run() {
  kill_all();
  ::close(port_holder_);
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  ::munmap(board_, sizeof(Board));
}

void Run::kill_all() {
  for (const int one : processes_)
    if (one > 0) ::kill(one, SIGKILL);
  for (int& one : processes_) {
    if (one > 0) (void)::waitpid(one, nullptr, 0);
    one = 0;
  }
}

// Reaps processes that have ended. Returns true if all have.
bool Run::reap() {
  bool all = true;
  for (int& one : processes_) {
    int status = 0;
    if (one > 0 && ::waitpid(one, &status, WNOHANG) != one) {
      all = false;
      continue;
    }
    if (one == 0) continue;
    one = 0;
    const auto rank = &one - processes_.data();
    if ((board_->left >> rank & 1) != 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
      continue;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kWrongStatus))
      continue;
    verdict_.what = Verdict::What::death;
    verdict_.rank = processes_.size() == 1 ? -1 : static_cast<int>(rank);
    verdict_.text = WIFSIGNALED(status) ? std::string("signal ") + ::strsignal(WTERMSIG(status))
                                        : "exit status " + std::to_string(WEXITSTATUS(status));
    verdict_.program = 0;
    for (const Board::Line& line : board_->lines)
      verdict_.program = std::max(verdict_.program, static_cast<int>(line.program));
    return true;
  }
  return all;
}

void Run::judge_hang() {
  verdict_.what = Verdict::What::hang;
  verdict_.program = static_cast<int>(programs_.size());
  for (int rank = 0; rank < programs_.front().ranks; ++rank) {
    const Board::Line& line = board_->lines[static_cast<std::size_t>(rank)];
    const int program = static_cast<int>(line.program);
    const int step = static_cast<int>(line.step);
    if (program < verdict_.program) {
      verdict_.program = program;
      verdict_.step = step;
      verdict_.rank = rank;
    }
    const auto& steps = programs_[static_cast<std::size_t>(program)].steps;
    const auto named = [&](int number) {
      const auto at = static_cast<std::size_t>(number);
      return std::to_string(number) + " " +
             (at < steps.size() ? std::string(to_string(steps[at].kind)) : "(the end)");
    };
    verdict_.text += "rank " + std::to_string(rank) + " is in program " + std::to_string(program) +
                     ", step " + named(step);
    const std::uint32_t waits = line.waits_for;
    if (waits > 0)
      verdict_.text += ", its last call was of step " + named(static_cast<int>(waits) - 1);
    verdict_.text += "; ";
  }
}

bool Run::poll() {
  if (processes_.empty() || !verdict_.right()) return true;
  const bool gone = reap();
  if (board_->failed != 0 && verdict_.right()) {
    while (board_->failed != 2) std::this_thread::yield();
    verdict_.what = board_->leaked ? Verdict::What::leak : Verdict::What::wrong;
    verdict_.program = board_->failed_program;
    verdict_.step = board_->failed_step;
    verdict_.rank = board_->failed_rank;
    verdict_.text = board_->text;
  }
  if (gone || !verdict_.right()) {
    kill_all();
    processes_.clear();
    return true;
  }
  std::uint64_t moves = static_cast<std::uint64_t>(board_->over);
  for (const Board::Line& line : board_->lines) moves += line.moves;
  const auto now = std::chrono::steady_clock::now();
  if (moves != moves_) {
    moves_ = moves;
    moved_ = now;
  }
  if (now - moved_ < idle_) return false;
  judge_hang();
  kill_all();
  processes_.clear();
  return true;
}

Verdict run(std::vector<Program> programs, std::chrono::milliseconds idle, bool loud) {
  Run one(std::move(programs), idle, loud);
  while (!one.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return one.verdict();
}

}  // namespace leeway::programs
