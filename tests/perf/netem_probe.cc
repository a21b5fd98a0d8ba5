// Sends numbered datagrams to itself over loopback, and writes which of them a loss model on
// loopback lost. Runs inside the virtual machine of tools/dev/netem_parity, so it is linked
// statically and uses nothing of Leeway.
//
//   netem_probe PACKETS FILE     PACKETS a multiple of 8; writes PACKETS / 8 bytes to FILE, first
//                                packet in the lowest bit, 1: lost
//
// One thread sends a batch, then reads what arrived. Loopback delivers before send() returns, so
// the socket's buffer holds at most a batch, and only the model loses packets.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr unsigned kBatch = 64;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int open_loop() {
  const int socket_fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (socket_fd < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket_fd, generic, length) != 0) fail("bind");
  if (getsockname(socket_fd, generic, &length) != 0) fail("getsockname");
  if (connect(socket_fd, generic, length) != 0) fail("connect");
  return socket_fd;
}

struct Batch {
  std::array<std::uint64_t, kBatch> numbers{};
  std::array<iovec, kBatch> slices{};
  std::array<mmsghdr, kBatch> messages{};

  Batch() {
    for (unsigned i = 0; i < kBatch; ++i) {
      slices[i] = {&numbers[i], sizeof(numbers[i])};
      messages[i].msg_hdr.msg_iov = &slices[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }
};

void send_all(int socket_fd, Batch& batch, unsigned count) {
  for (unsigned sent = 0; sent < count;) {
    const int done = sendmmsg(socket_fd, &batch.messages[sent], count - sent, 0);
    if (done <= 0) fail("sendmmsg");
    sent += static_cast<unsigned>(done);
  }
}

void take_arrived(int socket_fd, Batch& batch, std::vector<std::uint8_t>& lost) {
  for (;;) {
    const int count = recvmmsg(socket_fd, batch.messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) return;
    for (int i = 0; i < count; ++i) {
      const std::uint64_t number = batch.numbers[static_cast<unsigned>(i)];
      lost[number / 8] &= static_cast<std::uint8_t>(~(1u << number % 8));
    }
  }
}

void write_file(const char* path, const std::vector<std::uint8_t>& bytes) {
  const int file = open(path, O_WRONLY | O_CREAT, 0644);
  if (file < 0) fail(path);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t written = write(file, bytes.data() + at, bytes.size() - at);
    if (written <= 0) fail(path);
    at += static_cast<std::size_t>(written);
  }
  close(file);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t packets = argc == 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (packets == 0 || packets % 8 != 0) {
    std::fprintf(stderr, "usage: netem_probe PACKETS FILE (PACKETS a multiple of 8)\n");
    return 2;
  }
  const int socket_fd = open_loop();
  Batch outgoing;
  Batch incoming;
  std::vector<std::uint8_t> lost(packets / 8, 0xff);
  for (std::uint64_t first = 0; first < packets; first += kBatch) {
    unsigned count = 0;
    while (count < kBatch && first + count < packets) {
      outgoing.numbers[count] = first + count;
      ++count;
    }
    send_all(socket_fd, outgoing, count);
    take_arrived(socket_fd, incoming, lost);
  }
  usleep(100'000);  // gives the kernel time if it put a delivery off
  take_arrived(socket_fd, incoming, lost);
  write_file(argv[2], lost);
}
