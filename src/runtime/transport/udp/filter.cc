#include "transport/udp/filter.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace leeway::transport {
namespace {

// Offsets as in WIRE 8.1, after the UDP header of 8 bytes. BPF reads big-endian, but the tag is
// little-endian.
constexpr std::uint32_t kFormAt = 8;
constexpr std::uint32_t kTagHighAt = 8 + 6;
constexpr std::uint32_t kVersionBits = 0xF0;
constexpr std::uint32_t kVersion = 0x50;

// Room for a table: /proc/net/snmp has 2 KiB, and snmp6 of one namespace 4 KiB.
constexpr std::size_t kTableBytesMax = std::size_t{16} * 1024;

using MemoryInfo = std::array<std::uint32_t, SK_MEMINFO_VARS>;

MemoryInfo memory_info_of(int socket) {
  MemoryInfo info{};
  socklen_t bytes = sizeof(info);
  if (getsockopt(socket, SOL_SOCKET, SO_MEMINFO, info.data(), &bytes) != 0) return {};
  return info;
}

// Removes the next word from `line` and returns it. Returns an empty word at the line's end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t\n"));
  line.remove_prefix(word.size());
  return word;
}

std::uint64_t number_of(std::string_view word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

}  // namespace

bool keep_sealed_only(int socket, std::uint32_t tag_base) {
  const std::uint32_t half = (tag_base >> 16 & 0xFF) << 8 | tag_base >> 24;
  std::array<sock_filter, 7> program = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFormAt),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kVersionBits),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kVersion, 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kTagHighAt),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, half, 0, 1), BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
      BPF_STMT(BPF_RET | BPF_K, 0),  // as for datagrams that are too short to have these fields
  }};
  const sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) == 0;
}

std::uint64_t snmp_value(std::string_view table, std::string_view row, std::string_view column) {
  while (!table.empty()) {
    std::string_view names = take_line(table);
    if (take_word(names) != row) continue;
    std::string_view values = take_line(table);
    (void)take_word(values);
    for (auto name = take_word(names); !name.empty(); name = take_word(names)) {
      const std::string_view value = take_word(values);
      if (name == column) return number_of(value);
    }
  }
  return 0;
}

std::uint64_t snmp6_value(std::string_view table, std::string_view name) {
  while (!table.empty()) {
    std::string_view line = take_line(table);
    if (take_word(line) == name) return number_of(take_word(line));
  }
  return 0;
}

ReceiveDrops::ReceiveDrops(int socket, bool v6, bool filtered) : socket_(socket), v6_(v6) {
  if (!filtered) return;
  const char* const path = v6 ? "/proc/thread-self/net/snmp6" : "/proc/thread-self/net/snmp";
  table_ = ::open(path, O_RDONLY | O_CLOEXEC);
  overflows_seen_ = overflows_of_all();
}

ReceiveDrops::~ReceiveDrops() {
  if (table_ >= 0) ::close(table_);
}

// Reads the table of all sockets only after this socket dropped something. The kernel frees the
// memory of read datagrams late, and so may charge up to a quarter of the buffer too much. So if
// the datagrams read and waiting take less than half of the buffer, it was never full.
ReceiveDrops::Counted ReceiveDrops::count(std::uint64_t backlog) {
  const MemoryInfo info = memory_info_of(socket_);
  // The kernel's counter has 32 bits and wraps.
  const auto more =
      static_cast<std::uint32_t>(info[SK_MEMINFO_DROPS] - static_cast<std::uint32_t>(drops_seen_));
  if (more == 0) return counted_;
  drops_seen_ += more;
  if (table_ < 0) {
    counted_.overflows += more;
    return counted_;
  }
  const std::uint64_t overflows = overflows_of_all();
  const bool was_full = backlog + info[SK_MEMINFO_RMEM_ALLOC] >= info[SK_MEMINFO_RCVBUF] / 2;
  const Counted part = split(more, was_full ? overflows - overflows_seen_ : 0);
  overflows_seen_ = overflows;
  counted_.overflows += part.overflows;
  counted_.filtered += part.filtered;
  return counted_;
}

ReceiveDrops::Counted ReceiveDrops::split(std::uint64_t drops, std::uint64_t overflows) {
  const std::uint64_t own = std::min(drops, overflows);
  return {own, drops - own};
}

std::uint64_t ReceiveDrops::overflows_of_all() const {
  if (table_ < 0) return 0;
  std::array<char, kTableBytesMax> text;  // NOLINT: written by pread
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t got =
        ::pread(table_, text.data() + bytes, text.size() - bytes, static_cast<off_t>(bytes));
    if (got <= 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  const std::string_view table(text.data(), bytes);
  return v6_ ? snmp6_value(table, "Udp6RcvbufErrors") : snmp_value(table, "Udp:", "RcvbufErrors");
}

}  // namespace leeway::transport
