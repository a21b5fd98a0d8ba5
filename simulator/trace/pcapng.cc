#include "trace/pcapng.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "trace/packet_text.h"
#include "trace/trace_format.h"
#include "trace/trace_reader.h"

namespace leeway::sim::trace {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr std::uint32_t kInterface = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint16_t kRawIp = 101;  // LINKTYPE_RAW
constexpr std::uint16_t kComment = 1;  // options
constexpr std::uint16_t kInterfaceName = 2;
constexpr std::uint16_t kTimeResolution = 9;
constexpr std::uint8_t kNanoseconds = 9;  // 10^-9
constexpr std::uint16_t kLeewayPort = 18520;
constexpr std::uint16_t kCrossPort = 9;
constexpr std::uint32_t kDatagramMax = 65535;  // the largest length in IPv4's length field

enum Interface : std::uint32_t { kSentInterface, kDeliveredInterface, kLostInterface };
constexpr std::array<const char*, 3> kInterfaceNames = {"sent", "delivered", "lost"};

// Builds a block of the file. pcapng uses its writer's byte order; network headers are big-endian.
class Block {
 public:
  explicit Block(std::uint32_t type) {
    put(type);
    put(std::uint32_t{0});  // length, filled in at the end
  }
  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_big(std::uint32_t value, int bytes) {
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
      put(static_cast<std::uint8_t>(value >> shift));
    }
  }
  void put_bytes(std::string_view bytes) { bytes_.append(bytes); }
  void pad() { bytes_.resize((bytes_.size() + 3) / 4 * 4, '\0'); }
  void put_option(std::uint16_t code, std::string_view value) {
    put(code);
    put(static_cast<std::uint16_t>(value.size()));
    put_bytes(value);
    pad();
  }
  const std::string& finish() {
    const auto length = static_cast<std::uint32_t>(bytes_.size() + sizeof(std::uint32_t));
    std::memcpy(bytes_.data() + sizeof(std::uint32_t), &length, sizeof length);
    put(length);
    return bytes_;
  }
  std::size_t size() const { return bytes_.size(); }
  std::uint8_t at(std::size_t index) const { return static_cast<std::uint8_t>(bytes_[index]); }
  void set_big16(std::size_t index, std::uint32_t value) {
    bytes_[index] = static_cast<char>(value >> 8);
    bytes_[index + 1] = static_cast<char>(value);
  }

 private:
  std::string bytes_;
};

std::string section_block() {
  Block block(kSectionHeader);
  block.put(std::uint32_t{0x1A2B3C4D});  // tells the reader our byte order
  block.put(std::uint16_t{1});           // version 1.0
  block.put(std::uint16_t{0});
  block.put(std::int64_t{-1});  // length of the section: not told
  return block.finish();
}

std::string interface_block(const char* name) {
  Block block(kInterface);
  block.put(kRawIp);
  block.put(std::uint16_t{0});
  block.put(std::uint32_t{0});  // no limit to captured bytes
  block.put_option(kInterfaceName, name);
  block.put_option(kTimeResolution,
                   std::string_view(reinterpret_cast<const char*>(&kNanoseconds), 1));
  block.put(std::uint32_t{0});  // end of options
  return block.finish();
}

Interface interface_of(Step step) {
  if (is_loss(static_cast<PacketStep>(step))) return kLostInterface;
  return step == delivered ? kDeliveredInterface : kSentInterface;
}

// Returns the checksum (RFC 1071) of the 20-byte IPv4 header at `begin`. Its checksum field must be
// zero.
std::uint32_t header_checksum(const Block& block, std::size_t begin) {
  std::uint32_t sum = 0;
  for (std::size_t i = begin; i < begin + 20; i += 2) {
    sum += static_cast<std::uint32_t>(block.at(i) << 8 | block.at(i + 1));
  }
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  return ~sum & 0xFFFF;
}

std::uint32_t ecn_bits(std::uint32_t flags) {
  if ((flags & kMarked) != 0) return 3;
  return (flags & kEcnCapable) != 0 ? 2 : 0;
}

void put_network_headers(Block& block, const Packet& packet, std::uint32_t bytes) {
  const std::size_t begin = block.size();
  block.put_big(0x45, 1);
  block.put_big(ecn_bits(packet.flags()), 1);
  block.put_big(bytes, 2);
  block.put_big(0, 2);       // identification
  block.put_big(0x4000, 2);  // do not fragment
  block.put_big(64, 1);      // time to live
  block.put_big(17, 1);      // UDP
  block.put_big(0, 2);       // checksum, below
  block.put_big(10U << 24 | packet.from(), 4);
  block.put_big(10U << 24 | packet.to(), 4);
  block.set_big16(begin + 10, header_checksum(block, begin));
  const std::uint32_t port = packet.traffic() == cross ? kCrossPort : kLeewayPort;
  block.put_big(port, 2);
  block.put_big(port, 2);
  block.put_big(bytes - 20, 2);
  block.put_big(0, 2);  // no checksum
}

std::string comment_of(const Packet& packet, const std::string& link) {
  std::string comment;
  if (packet.step() != sent && packet.step() != delivered) {
    comment = step_text(packet.step());
    if (!link.empty()) comment += " on " + link;
  }
  const auto add = [&](std::uint32_t flag, const char* name) {
    if ((packet.flags() & flag) != 0) comment += std::string(comment.empty() ? "" : ", ") + name;
  };
  add(kTrimmed, "trimmed");
  add(kCorrupt, "corrupt");
  add(kDuplicate, "a link's copy");
  return comment;
}

std::string packet_block(const Packet& packet, const std::string& link) {
  const std::uint32_t bytes = std::clamp(packet.bytes(), kHeaderBytes, kDatagramMax);
  const std::string_view datagram =
      std::string_view(packet.datagram()).substr(0, bytes - kHeaderBytes);
  Block block(kEnhancedPacket);
  block.put(static_cast<std::uint32_t>(interface_of(packet.step())));
  block.put(static_cast<std::uint32_t>(packet.time_ns() >> 32));
  block.put(static_cast<std::uint32_t>(packet.time_ns()));
  block.put(static_cast<std::uint32_t>(kHeaderBytes + datagram.size()));
  block.put(bytes);
  put_network_headers(block, packet, bytes);
  block.put_bytes(datagram);
  block.pad();
  if (const std::string comment = comment_of(packet, link); !comment.empty()) {
    block.put_option(kComment, comment);
    block.put(std::uint32_t{0});  // end of options
  }
  return block.finish();
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

bool write(const File& file, const std::string& bytes) {
  return std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
}

Status cannot_write(const std::string& path) {
  return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", path.c_str(),
                       std::strerror(errno));
}

}  // namespace

Result<std::uint64_t> write_pcapng(const std::string& trace_path, const std::string& out_path,
                                   const PacketFilter& filter) {
  Result<TraceReader> reader = TraceReader::open(trace_path);
  if (!reader.ok()) return reader.status();
  File file(std::fopen(out_path.c_str(), "wb"), std::fclose);
  if (!file) return cannot_write(out_path);
  bool written = write(file, section_block());
  for (const char* name : kInterfaceNames) written = written && write(file, interface_block(name));
  std::uint64_t packets = 0;
  while (written) {
    const Result<const Packet*> next = reader->next();
    if (!next.ok()) return next.status();
    if (*next == nullptr) break;
    const std::string& link = reader->link_name(**next);
    if (!filter.admits(**next, link)) continue;
    written = write(file, packet_block(**next, link));
    ++packets;
  }
  if (!written || std::fclose(file.release()) != 0) return cannot_write(out_path);
  return packets;
}

}  // namespace leeway::sim::trace
