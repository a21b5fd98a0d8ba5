// Measures how long a job takes to start while strangers attack, and what they cost rank 0's
// process. Prints a line for each attack: medians over starts of 4 ranks, quiet and attacked in
// turn, and memory.
//   join_flood_bench [STARTS [HELD CONNECTIONS]]
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "attack/strangers.h"
#include "keys/tls_session.h"
#include "rendezvous/tcp_server.h"

namespace leeway::attack {
namespace {

using namespace rendezvous;

constexpr int kRanks = 4;

// Starts a job. Returns the ms from the first call of join_group() until the last of the calls
// returned, or 0 if one failed.
double start_job(std::uint16_t port, const std::shared_ptr<const keys::OwnIdentity>& identity) {
  const Stopwatch watch;
  std::vector<Joining> joining;
  for (int rank = 0; rank < kRanks; ++rank) {
    LocalConfiguration local = configuration(rank, kRanks, port);
    local.identity = identity;
    joining.push_back(join(local));
  }
  bool all = true;
  for (Joining& one : joining) {
    const auto group = one.get();
    if (!group.ok()) std::fprintf(stderr, "failed: %s\n", group.status().c_str());
    all = all && group.ok();
  }
  return all ? std::chrono::duration<double, std::milli>(watch.elapsed()).count() : 0;
}

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  status >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int last_core() {
  return static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)) - 1;
}

// Restricts this process to the cores from `first` to `last`. Attackers get the last core, as if
// they were another machine, and so pay for the kernel's work on what they send.
void run_on(int first, int last) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int core = first; core <= last; ++core) CPU_SET(core, &cores);
  (void)::sched_setaffinity(0, sizeof cores, &cores);
}

// Starts attackers in a process of their own, so that their cost is not counted.
template <typename Attack>
pid_t launch(Attack attack) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  run_on(last_core(), last_core());
  attack();
  while (true) ::pause();
}

template <typename Attack>
void measure(const char* name, int starts, std::uint16_t port,
             const std::shared_ptr<const keys::OwnIdentity>& identity, Attack attack) {
  std::vector<double> quiet;
  std::vector<double> attacked;
  double most_mib = 0;
  const double before_mib = resident_mib();
  for (int i = 0; i < starts; ++i) {
    ::usleep(300'000);  // by then the queue of the previous flood is empty
    quiet.push_back(start_job(port, identity));
    const pid_t child = launch(attack);
    ::usleep(300'000);
    attacked.push_back(start_job(port, identity));
    most_mib = std::max(most_mib, resident_mib());
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  const double ratio = median(attacked) / median(quiet);
  std::printf(
      "%-28s quiet %7.2f ms, attacked %7.2f ms (worst %.2f), ratio %.2f, memory +%.1f MiB\n", name,
      median(quiet), median(attacked), *std::max_element(attacked.begin(), attacked.end()), ratio,
      most_mib - before_mib);
}

std::string hello_of_secret(std::string_view secrets) {
  const auto context = *keys::TlsContext::make(identity_with(secrets)->secrets);
  keys::TlsSession session(context, keys::TlsSession::Side::client);
  const auto bytes = session.take_output();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Measures how much longer a start takes with a secret than without one, without strangers.
void compare_with_plain(int starts, const std::shared_ptr<const keys::OwnIdentity>& identity) {
  std::vector<double> plain;
  std::vector<double> secret;
  for (int i = 0; i < 10 * starts; ++i) {
    plain.push_back(start_job(free_port(), nullptr));
    secret.push_back(start_job(free_port(), identity));
  }
  std::printf("%-28s plain %7.2f ms, with a secret %7.2f ms\n", "start, nobody else", median(plain),
              median(secret));
}

int run(int starts, int held) {
  if (last_core() > 0) run_on(0, last_core() - 1);
  const rlimit files = {65'536, 65'536};
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  std::signal(SIGPIPE, SIG_IGN);
  const std::uint16_t port = free_port();
  const auto identity = identity_with("1");
  compare_with_plain(starts, identity);
  // This server runs during all measurements, as if another group of the process used it.
  const auto security = make_tcp_security(identity->secrets, false);
  const auto server = shared_server({"127.0.0.1", port}, {}, *security, nullptr);
  if (!server.ok()) return 1;
  (void)start_job(port, identity);
  const std::string replay = hello_of_secret("1");
  const std::string wrong = hello_of_secret("7");
  const auto flood = [port](const std::string& bytes) {
    return [port, bytes] { new Flood(port, saying(bytes)); };
  };
  measure("flood: plain store requests", starts, port, identity,
          flood(greeting() + request_of(StoreOperation::put, "leeway/0/world/root", "x")));
  measure("flood: junk", starts, port, identity, flood(std::string(600, '\x5a')));
  measure("flood: another secret", starts, port, identity, flood(wrong));
  measure("flood: replayed first message", starts, port, identity, flood(replay));
  measure("held connections, silent", starts, port, identity,
          [port, held] { new Held(port, held, ""); });
  measure("held connections, dripping", starts, port, identity,
          [port, held, replay] { new Held(port, held, replay.substr(0, 100)); });
  return 0;
}

}  // namespace
}  // namespace leeway::attack

int main(int argc, char** argv) {
  const int starts = argc > 1 ? std::atoi(argv[1]) : 5;
  const int held = argc > 2 ? std::atoi(argv[2]) : 10'000;
  return leeway::attack::run(starts, held);
}
