#include "peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace nccl_net_test {
namespace {

void must(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(1);
}

}  // namespace

Handle Pipes::read_handle() const {
  Handle handle(LEEWAY_NCCL_NET_HANDLE_BYTES);
  must(::read(from_, handle.data(), handle.size()) == static_cast<ssize_t>(handle.size()), "read");
  return handle;
}

void Pipes::write_handle(const Handle& handle) const {
  must(::write(to_, handle.data(), handle.size()) == static_cast<ssize_t>(handle.size()), "write");
}

void Pipes::wait() const {
  char byte = 0;
  must(::read(from_, &byte, 1) == 1, "read");
}

void Pipes::signal() const {
  const char byte = 0;
  must(::write(to_, &byte, 1) == 1, "write");
}

Peer::Peer(const std::string& role, const std::vector<std::string>& arguments) : Pipes(-1, -1) {
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  must(::pipe2(down.data(), O_CLOEXEC) == 0 && ::pipe2(up.data(), O_CLOEXEC) == 0, "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, down[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, up[1], STDOUT_FILENO);
  const std::string path = own_path();
  std::vector<std::string> words{path, "--role", role};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  must(::posix_spawn(&id_, path.c_str(), &actions, nullptr, pointers.data(), environ) == 0,
       "posix_spawn");
  posix_spawn_file_actions_destroy(&actions);
  ::close(down[0]);
  ::close(up[1]);
  from_ = up[0];
  to_ = down[1];
}

Peer::~Peer() {
  if (id_ > 0) {
    kill();
    (void)wait_for_end();
  }
  ::close(from_);
  ::close(to_);
}

void Peer::kill() {
  ::kill(id_, SIGKILL);
}

int Peer::wait_for_end() {
  int status = 0;
  must(::waitpid(id_, &status, 0) == id_, "waitpid");
  id_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace nccl_net_test
