// Processes that may have too few threads or descriptors, or may not make some system calls. Every
// call must be right, or end with an error that names what is missing. No process may die.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread.h"
#include "leeway/communicator.h"
#include "leeway/rendezvous.h"
#include "support/secret_line.h"

namespace leeway::integration {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr unsigned kSecondsMax = 60;

// Runs `live` in `count` processes at the same time. Returns for each process the errors that it
// wrote, or how it died. An empty text means that nothing was wrong.
std::vector<std::string> of_children(int count, const std::function<std::string(int)>& live) {
  struct Child {
    pid_t id;
    int output;
  };
  std::vector<Child> children;
  for (int i = 0; i < count; ++i) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (const Child& other : children) ::close(other.output);
      ::close(ends[0]);
      ::alarm(kSecondsMax);
      ::dup2(ends[1], STDERR_FILENO);  // so that the log is part of the findings
      const std::string found = [&]() noexcept { return live(i); }();
      (void)!::write(ends[1], found.data(), found.size());
      std::exit(0);
    }
    ::close(ends[1]);
    children.push_back({child, ends[0]});
  }
  std::vector<std::string> all;
  for (const Child& child : children) {
    std::string found;
    char part[512];
    for (ssize_t got = 0; (got = ::read(child.output, part, sizeof part)) > 0;)
      found.append(part, static_cast<std::size_t>(got));
    ::close(child.output);
    int status = 0;
    ::waitpid(child.id, &status, 0);
    if (WIFSIGNALED(status)) found += "died of signal " + std::to_string(WTERMSIG(status));
    all.push_back(found);
  }
  return all;
}

void forbid(long number, unsigned error) {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    std::abort();
  }
}

struct Found {
  std::vector<std::string> errors;
  void note(const Status& status) {
    if (!status.ok()) errors.emplace_back(status.c_str());
  }
};

using Store = std::shared_ptr<TcpRendezvous>;

Options options_of(int rank, const Store& store, TransportKind transport, bool sealed) {
  Options options;
  options.rank = rank;
  options.world_size = 2;
  options.store = store;
  options.rendezvous = store->address();
  options.transport = transport;
  options.log_level = "error";
  options.join_timeout = 3s;
  options.peer_timeout = 3s;
  options.metrics = rank == 0 ? "127.0.0.1:0" : "";
  // The file's name has the user's id, because each child may be a user of its own.
  options.trace = ::testing::TempDir() + "limits." + std::to_string(::geteuid()) + ".sqlog";
  if (sealed) options.secret = secret_digits('e') + "\n";
  return options;
}

// Makes all calls that may start a thread or open a descriptor.
void live(int rank, const Store& store, TransportKind transport, bool sealed, Found& found) {
  auto pending = Communicator::create_async(options_of(rank, store, transport, sealed));
  auto made = pending.wait();
  found.note(made.status());
  if (!made.ok()) return;
  Communicator& all = **made;
  CollectiveOptions soon;
  soon.delivery = exact(5s);
  std::vector<float> values(5000, 1.0F);
  found.note(all.all_reduce(std::span(values), soon).status());
  Work first = all.all_reduce_async(std::span(values), soon);
  found.note(first.wait().status());
  auto part = all.split(0, rank);
  found.note(part.status());
  if (part.ok() && *part != nullptr) {
    Work second = (*part)->all_reduce_async(std::span(values), soon);
    found.note(second.wait().status());
  }
}

// Runs two ranks as threads, and returns their errors.
std::string errors_of_two_ranks(TransportKind transport, bool sealed) {
  auto server = TcpRendezvous::serve("127.0.0.1:0", {});
  if (!server.ok()) return server.status().c_str();
  Found ranks[2];
  std::thread other;
  try {
    other = std::thread([&] { live(1, *server, transport, sealed, ranks[1]); });
  } catch (const std::system_error&) {
    return "RLIMIT_NPROC is too small for this test";
  }
  live(0, *server, transport, sealed, ranks[0]);
  other.join();
  std::string all;
  for (const Found& rank : ranks) {
    for (const std::string& error : rank.errors) all += error + "\n";
  }
  return all;
}

class Routes : public ::testing::TestWithParam<std::pair<TransportKind, bool>> {};

// Checks the errors of children. Child i had i units of a limited resource. Child 0 must fail, and
// the last child, which had enough, must not. Every error must name the resource.
void expect_named(const std::vector<std::string>& found, const char* what) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].find("signal"), std::string::npos) << i << ": " << found[i];
    EXPECT_TRUE(found[i].empty() || found[i].find(what) != std::string::npos)
        << i << ": " << found[i];
  }
  EXPECT_NE(found.front(), "");
  EXPECT_EQ(found.back(), "");
}

TEST_P(Routes, EndWithAnErrorWithoutThreads) {
  const auto [transport, sealed] = GetParam();
  const auto found = of_children(36, [transport = transport, sealed = sealed](int threads) {
    limit_threads(threads);
    return errors_of_two_ranks(transport, sealed);
  });
  expect_named(found, "no thread can be had to");
}

// The kernel's limit on processes (RLIMIT_NPROC) counts all threads of a user, also those that
// other libraries start. So each child runs as a user of its own.
TEST_P(Routes, EndWithAnErrorUnderALimitOfProcesses) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may become a user without processes";
  const auto [transport, sealed] = GetParam();
  const auto found = of_children(20, [transport = transport, sealed = sealed](int more) {
    const auto processes = static_cast<rlim_t>(1 + more);
    const rlimit limit{processes, processes};
    if (::setuid(60200 + static_cast<uid_t>(more)) != 0) return std::string("no such user");
    ::setrlimit(RLIMIT_NPROC, &limit);
    return errors_of_two_ranks(transport, sealed);
  });
  expect_named(found, "RLIMIT_NPROC is");
}

TEST_P(Routes, EndWithAnErrorWithoutDescriptors) {
  const auto [transport, sealed] = GetParam();
  const auto found = of_children(40, [transport = transport, sealed = sealed](int more) {
    const auto descriptors = static_cast<rlim_t>(4 + more);  // the three standard ones and the pipe
    const rlimit limit{descriptors, descriptors};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    return errors_of_two_ranks(transport, sealed);
  });
  expect_named(found, "(ulimit -n)");
}

// Rank 0 serves the rendezvous. If it has no descriptor for another rank's connection, the error
// must say so. It must not ask whether that rank is running.
TEST(RankZero, SaysThatItCannotTakeConnections) {
  const auto found = of_children(24, [](int more) {
    std::string port;
    {
      const auto free = TcpRendezvous::serve("127.0.0.1:0", {});
      if (!free.ok()) return std::string(free.status().c_str());
      port = (*free)->address();
    }
    Options options;
    options.world_size = 2;
    options.rendezvous = port;
    options.log_level = "off";
    options.join_timeout = 3s;
    options.rank = 1;
    const pid_t other = ::fork();
    if (other == 0) {
      (void)Communicator::create(options);
      ::_exit(0);
    }
    const auto descriptors = static_cast<rlim_t>(6 + more);
    const rlimit limit{descriptors, descriptors};
    ::setrlimit(RLIMIT_NOFILE, &limit);
    options.rank = 0;
    const Status status = Communicator::create(options).status();
    ::waitpid(other, nullptr, 0);
    return std::string(status.c_str());
  });
  expect_named(found, "(ulimit -n)");
}

INSTANTIATE_TEST_SUITE_P(Limits, Routes,
                         ::testing::Values(std::pair(TransportKind::automatic, false),
                                           std::pair(TransportKind::udp, true)));

// Runs two ranks in a process that may map only 32 MiB more, and allocates 256 MiB on both. Returns
// both errors.
std::string allocate_beyond_the_limit() {
  auto server = TcpRendezvous::serve("127.0.0.1:0", {});
  if (!server.ok()) return server.status().c_str();
  std::barrier both(2);
  std::string found[2];
  const auto live = [&](int rank) {
    auto made = Communicator::create(options_of(rank, *server, TransportKind::automatic, false));
    std::vector<float> values(1000, 1.0F);
    if (rank == 0) {
      long pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const auto bytes = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE)) + (rlim_t{32} << 20);
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    both.arrive_and_wait();
    if (!made.ok()) return;
    const auto memory = (*made)->allocate(std::size_t{256} << 20);
    found[rank] = memory.status().c_str();
    if (!(*made)->all_reduce(std::span(values)).ok()) found[rank] += "no call works any more";
  };
  std::thread other([&] { live(1); });
  live(0);
  other.join();
  return found[0] + "\n" + found[1] + "\n";
}

TEST(MemoryThatCannotBeMapped, IsNamed) {
  const std::string found = of_children(1, [](int) { return allocate_beyond_the_limit(); }).front();
  EXPECT_THAT(found,
              ::testing::MatchesRegex("no memory of 268435456 bytes: Cannot allocate memory\n"
                                      "no memory of 268435456 bytes: Cannot allocate memory\n"));
}

// By default, the kernel kills a process that makes a file longer than its limit. No process may
// die of this, and with shm the error must name the limit.
TEST(FilesThatMayNotBeLong, AreNamed) {
  for (const TransportKind transport : {TransportKind::automatic, TransportKind::shm}) {
    const std::string found = of_children(1, [&](int) {
                                const rlimit limit{65'536, 65'536};
                                ::setrlimit(RLIMIT_FSIZE, &limit);
                                return errors_of_two_ranks(transport, false);
                              }).front();
    EXPECT_EQ(found.find("died of"), std::string::npos) << found;
    EXPECT_EQ(found.find("ulimit -f") != std::string::npos, transport == TransportKind::shm)
        << found;
  }
}

TEST(GroupsInAProcessWithoutMemory, AreRefused) {
  const std::string found = of_children(1, [](int) {
                              const rlimit limit{rlim_t{1} << 20, rlim_t{1} << 20};
                              ::setrlimit(RLIMIT_AS, &limit);
                              const auto made = Communicator::create_inproc(4);
                              return std::string(to_string(made.status().code()));
                            }).front();
  EXPECT_EQ(found, "resource_exhausted");
}

TEST(ForbiddenSystemCalls, AreNamed) {
  struct Case {
    long number;
    const char* name;
  };
  for (const Case& one : {Case{SYS_sendmmsg, "sendmmsg"}, Case{SYS_recvmmsg, "recvmmsg"},
                          Case{SYS_getrandom, "getrandom"}}) {
    for (const unsigned error : {EPERM, ENOSYS}) {
      const std::string found = of_children(1, [&](int) {
                                  forbid(one.number, error);
                                  return errors_of_two_ranks(TransportKind::udp, true);
                                }).front();
      EXPECT_THAT(found, HasSubstr(one.name)) << std::strerror(static_cast<int>(error));
      EXPECT_THAT(found, HasSubstr(std::strerror(static_cast<int>(error))));
      EXPECT_EQ(found.find("signal"), std::string::npos) << found;
    }
  }
}

}  // namespace
}  // namespace leeway::integration
