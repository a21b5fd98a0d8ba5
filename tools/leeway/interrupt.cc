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
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // a background job of a shell must not be interrupted
  action.sa_handler = handler;
  // SA_RESETHAND: the second signal ends the process, as it does by default.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = false;
  received = 0;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
}

InterruptGuard::~InterruptGuard() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

std::atomic<bool>& InterruptGuard::flag() {
  return interrupted;
}

int InterruptGuard::exit_code() const {
  return received == 0 ? 0 : 128 + received;
}

}  // namespace leeway::tools
