#include "interrupt.h"

#include <csignal>

namespace leeway::tools {
namespace {

// These are global, because a signal handler can reach no object.
std::atomic<bool> interrupted{false};
std::atomic<int> received{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  received = signal;
  interrupted = true;
}

void handle(int signal, void (*handler)(int)) {
  if (is_ignored(signal)) return;
  struct sigaction action {};
  action.sa_handler = handler;
  // SA_RESETHAND: the second signal ends the process, as it does by default.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

// What SIGHUP did when the process started: SIG_DFL or SIG_IGN; SIG_ERR if that was not noted.
void (*hangup_at_start)(int) = SIG_ERR;

void note_hangup(int, char**, char**) {
  struct sigaction action {};
  ::sigaction(SIGHUP, nullptr, &action);
  hangup_at_start = action.sa_handler;
}

// The dynamic linker calls what is in this section before any library's constructor.
[[gnu::used, gnu::section(".preinit_array")]] void (*const note_at_start)(int, char**,
                                                                          char**) = note_hangup;

}  // namespace

void restore_hangup() {
  if (hangup_at_start != SIG_ERR) ::signal(SIGHUP, hangup_at_start);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

InterruptGuard::InterruptGuard() {
  interrupted = false;
  received = 0;
  for (const int signal : kInterrupts) handle(signal, on_signal);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : kInterrupts) handle(signal, SIG_DFL);
}

std::atomic<bool>& InterruptGuard::flag() {
  return interrupted;
}

int InterruptGuard::exit_code() const {
  return received == 0 ? 0 : 128 + received;
}

}  // namespace leeway::tools
