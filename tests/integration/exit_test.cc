// Tests processes that exit at any moment: while they join, during calls, in a callback, or with a
// communicator that nobody destroyed. No process may die of a signal or take long.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "leeway/c.h"
#include "leeway/communicator.h"
#include "support/secret_line.h"

namespace leeway::integration {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 2;
constexpr int kTurns = 20;
// A process that lives longer counts as hanging. exit() itself waits for Leeway's threads half a
// second at most.
constexpr auto kLifeMax = 20s;

// One process of a test: its rank, and the turn that decides when it exits.
struct Life {
  int rank = 0;
  int turn = 0;
  int port = 0;  // a port that was free when the turn began
  std::string rendezvous() const { return "127.0.0.1:" + std::to_string(port); }
  // Time from the start until this process calls exit(): 0 to 11.4 ms, longer in each turn.
  std::chrono::microseconds moment() const { return std::chrono::microseconds(600) * turn; }
};

// Globals of a program. exit() destroys static objects that were made later before these.
std::vector<float> tensor_of_program;
std::unique_ptr<Communicator> communicator_of_program;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

int free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(probe, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(probe);
  return ntohs(address.sin_port);
}

std::string ending_of(pid_t child, std::chrono::steady_clock::time_point until) {
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > until) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "hung";
    }
    std::this_thread::sleep_for(1ms);
  }
  if (WIFSIGNALED(status)) return "died of signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit status " + std::to_string(WEXITSTATUS(status));
}

// Runs `live` in kTurns turns of two processes each, and expects that each process exits normally
// and in time.
void expect_none_dies(const std::function<void(const Life&)>& live) {
  for (int turn = 0; turn < kTurns; ++turn) {
    const int port = free_port();
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        live({rank, turn, port});
        std::exit(0);
      }
      children.push_back(child);
    }
    const auto until = std::chrono::steady_clock::now() + kLifeMax;
    for (const pid_t child : children) EXPECT_EQ(ending_of(child, until), "") << "turn " << turn;
    if (::testing::Test::HasFailure()) return;
  }
}

Options options_of(const Life& life, TransportKind transport, bool sealed) {
  Options options;
  options.rank = life.rank;
  options.world_size = kRanks;
  options.rendezvous = life.rendezvous();
  options.transport = transport;
  options.log_level = "off";
  options.peer_timeout = 1s;
  if (sealed) options.secret = secret_digits('e') + "\n";
  return options;
}

void wait_for_moment(const Life& life) {
  std::this_thread::sleep_for(life.moment());
}

TEST(Exit, WhileAnotherThreadJoins) {
  expect_none_dies([](const Life& life) {
    std::thread([life] {
      (void)Communicator::create(options_of(life, TransportKind::udp, true));
      ::pause();  // a thread of the program that does not end
    }).detach();
    wait_for_moment(life);
  });
}

// A program, or Python's ssl, may have used OpenSSL before Leeway was loaded. OpenSSL has then
// registered its cleanup for exit() before Leeway registers anything, as in this test.
TEST(Exit, WhileAnotherThreadJoinsAndOpensslIsTornDown) {
  expect_none_dies([](const Life& life) {
    std::atexit(::OPENSSL_cleanup);
    std::thread([life] {
      (void)Communicator::create(options_of(life, TransportKind::udp, true));
      ::pause();
    }).detach();
    wait_for_moment(life);
  });
}

TEST(Exit, WhileJoiningInTheBackground) {
  expect_none_dies([](const Life& life) {
    static auto pending = new PendingCommunicator(
        Communicator::create_async(options_of(life, TransportKind::udp, true)));
    (void)pending;
    wait_for_moment(life);
  });
}

// Makes calls until the process's moment to exit. exit() then frees the tensor while Leeway's
// threads may still work on the last call. No thread of the program waits for that call.
void call_until_the_moment(const Life& life, TransportKind transport, bool sealed) {
  auto made = Communicator::create(options_of(life, transport, sealed));
  if (!made.ok()) return;  // the other one has ended
  Communicator& communicator = *made->release();
  tensor_of_program.resize(1 << 20);
  const auto end = std::chrono::steady_clock::now() + life.moment();
  do {
    const Work work = communicator.all_reduce_async(std::span(tensor_of_program));
    while (!work.done() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
}

TEST(Exit, WhileCallsOverMemoryAreUnderWay) {
  expect_none_dies(
      [](const Life& life) { call_until_the_moment(life, TransportKind::automatic, false); });
}

TEST(Exit, WhileSealedCallsAreUnderWay) {
  expect_none_dies([](const Life& life) { call_until_the_moment(life, TransportKind::udp, true); });
}

// At exit() one of the program's own threads is in a sealed call, and drives it.
TEST(Exit, WhileAnotherThreadCallsAndOpensslIsTornDown) {
  expect_none_dies([](const Life& life) {
    std::atexit(::OPENSSL_cleanup);
    auto made = Communicator::create(options_of(life, TransportKind::udp, true));
    if (!made.ok()) return;  // the other one has ended
    std::thread([&communicator = *made->release()] {
      static auto& tensor = *new std::vector<float>(100000);
      while (communicator.all_reduce(std::span(tensor)).ok()) {
      }
      ::pause();
    }).detach();
    wait_for_moment(life);
  });
}

// A thread of the library wakes up after dlclose(), so the library's code must still be mapped.
TEST(Exit, AfterTheLibraryWasClosed) {
  expect_none_dies([](const Life&) {
    void* const library = ::dlopen(LEEWAY_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const auto serve = reinterpret_cast<decltype(&leeway_rendezvous_serve_tcp)>(
        ::dlsym(library, "leeway_rendezvous_serve_tcp"));
    leeway_rendezvous* store = nullptr;
    int port = 0;
    for (int attempt = 0; store == nullptr && attempt < 10; ++attempt) {
      port = free_port();  // another process may take it before this one does
      const std::string place = "127.0.0.1:" + std::to_string(port);
      if (serve == nullptr || serve(place.c_str(), &store) != LEEWAY_OK) store = nullptr;
    }
    if (store == nullptr) std::_Exit(1);
    ::dlclose(library);
    const int visitor = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port);
    (void)::connect(visitor, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    std::this_thread::sleep_for(5ms);
  });
}

TEST(Exit, InACallback) {
  expect_none_dies([](const Life& life) {
    const auto transport = life.turn % 2 == 0 ? TransportKind::automatic : TransportKind::udp;
    auto made = Communicator::create(options_of(life, transport, true));
    if (!made.ok()) return;
    tensor_of_program.resize(1000);
    auto work = (*made)->all_reduce_async(std::span(tensor_of_program));
    work.on_done([] { std::exit(0); });
    std::this_thread::sleep_for(kLifeMax);
  });
}

TEST(Exit, WithACommunicatorThatNobodyDestroyed) {
  expect_none_dies([](const Life& life) {
    const auto transport = life.turn % 2 == 0 ? TransportKind::automatic : TransportKind::udp;
    auto made = Communicator::create(options_of(life, transport, life.turn % 4 < 2));
    if (!made.ok()) return;
    communicator_of_program = std::move(*made);
    tensor_of_program.resize(1000);
    (void)communicator_of_program->all_reduce_async(std::span(tensor_of_program));
    wait_for_moment(life);
  });
}

}  // namespace
}  // namespace leeway::integration
