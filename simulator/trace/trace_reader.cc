#include "trace/trace_reader.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/plain_text.h"
#include "trace/trace_format.h"

namespace leeway::sim::trace {
namespace {

using google::protobuf::Message;

// Returns true if the message has an unknown field. This version of the format has none, so the
// file is damaged.
bool has_unknown_fields(const Message& message) {
  return !message.GetReflection()->GetUnknownFields(message).empty();
}

}  // namespace

struct TraceReader::State {
  std::string path;
  std::FILE* file = nullptr;
  std::uint64_t at = 0;  // bytes read
  std::uint64_t entry_at = 0;
  std::uint32_t crc = 0;         // over all bytes read
  std::uint32_t crc_before = 0;  // over the bytes before the present entry
  std::uint64_t packets = 0;
  std::uint64_t last_ns = 0;
  bool ended = false;
  Header header;
  Entry entry;
  std::map<std::uint32_t, std::string> links;
  std::vector<char> packed;

  ~State() {
    if (file != nullptr) std::fclose(file);
  }

  Status refuse(const char* what) const {
    return Status::error(StatusCode::kInvalidArgument, "%s: byte %llu: %s",
                         path.size() <= 160 ? path.c_str() : path.c_str() + path.size() - 160,
                         static_cast<unsigned long long>(entry_at), what);
  }

  bool read_bytes(void* out, std::size_t count) {
    const std::size_t got = std::fread(out, 1, count, file);
    crc = crc32c({static_cast<const std::byte*>(out), got}, crc);
    at += got;
    return got == count;
  }

  Status cut_off() const {
    if (std::ferror(file) != 0) {
      return Status::error(StatusCode::kUnavailable, "%s: cannot be read: %s", path.c_str(),
                           std::strerror(errno));
    }
    return refuse("the trace ends here, before its end: it was cut off or never finished");
  }

  Result<std::uint32_t> read_length() {
    std::uint32_t length = 0;
    for (int shift = 0; shift < 21; shift += 7) {  // three digits are more than any entry needs
      std::uint8_t digit = 0;
      if (!read_bytes(&digit, 1)) return cut_off();
      length |= static_cast<std::uint32_t>(digit & 0x7F) << shift;
      if ((digit & 0x80) != 0) continue;
      if (length == 0 || length > kEntryBytesMax) break;
      return length;
    }
    return refuse("damaged: no entry has such a length");
  }

  Status read_entry() {
    entry_at = at;
    crc_before = crc;
    const Result<std::uint32_t> length = read_length();
    if (!length.ok()) return length.status();
    packed.resize(*length);
    if (!read_bytes(packed.data(), packed.size())) return cut_off();
    const bool parsed = entry.ParseFromArray(packed.data(), static_cast<int>(packed.size()));
    if (!parsed || has_unknown_fields(entry)) return refuse("damaged: not an entry of a trace");
    return {};
  }

  Status read_header() {
    const Status read = read_entry();
    const bool ours = read.ok() && entry.has_header() && entry.header().format() == kFormatName;
    if (!ours && read.code() != StatusCode::kUnavailable) {
      return Status::error(StatusCode::kInvalidArgument,
                           "%s is no packet trace; `leeway sim FILE --trace T` writes one",
                           path.c_str());
    }
    if (!read.ok()) return read;
    header = entry.header();
    header.set_scenario(plain(header.scenario()));
    if (header.version() != kFormatVersion) {
      return Status::error(StatusCode::kUnsupported,
                           "%s has version %u of the format; this leeway reads version %u",
                           path.c_str(), header.version(), kFormatVersion);
    }
    return {};
  }

  Status check_packet() {
    const Packet& packet = entry.packet();
    if (has_unknown_fields(packet)) return refuse("damaged: a packet with unknown fields");
    const bool whole = packet.has_time_ns() && packet.has_step() && packet.has_from() &&
                       packet.has_to() && packet.has_traffic() && packet.bytes() > 0;
    if (!whole) return refuse("damaged: a packet that lacks fields");
    if (packet.from() >= header.ranks() || packet.to() >= header.ranks()) {
      return refuse("damaged: a packet of a rank that does not exist");
    }
    if (packet.has_link() && !links.contains(packet.link())) {
      return refuse("damaged: a packet on a link that was not named");
    }
    if (packet.time_ns() < last_ns || packet.time_ns() > INT64_MAX) {
      return refuse("damaged: time runs backwards");
    }
    if (packet.datagram().size() > header.kept_bytes() || packet.flags() > kFlagsAll) {
      return refuse("damaged: a packet with impossible fields");
    }
    return {};
  }

  Status check_end() {
    if (entry.end().packets() != packets) return refuse("damaged: packets are missing");
    if (entry.end().crc32c() != crc_before) return refuse("damaged: the checksum is wrong");
    ended = true;
    if (std::fgetc(file) == EOF) return {};
    entry_at = at;
    return refuse("damaged: something follows the end");
  }
};

TraceReader::TraceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceReader::TraceReader(TraceReader&&) noexcept = default;
TraceReader& TraceReader::operator=(TraceReader&&) noexcept = default;
TraceReader::~TraceReader() = default;

Result<TraceReader> TraceReader::open(const std::string& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->file = std::fopen(path.c_str(), "rb");
  if (state->file == nullptr) {
    return Status::error(StatusCode::kUnavailable, "%s: cannot be read: %s", path.c_str(),
                         std::strerror(errno));
  }
  const Status header = state->read_header();
  if (!header.ok()) return header;
  return TraceReader(std::move(state));
}

Result<const Packet*> TraceReader::next() {
  State& state = *state_;
  while (!state.ended) {
    Status status = state.read_entry();
    if (!status.ok()) return status;
    switch (state.entry.kind_case()) {
      case Entry::kPacket:
        status = state.check_packet();
        if (!status.ok()) return status;
        state.last_ns = state.entry.packet().time_ns();
        ++state.packets;
        return &state.entry.packet();
      case Entry::kLink:
        state.links[state.entry.link().number()] = plain(state.entry.link().name());
        break;
      case Entry::kEnd:
        status = state.check_end();
        if (!status.ok()) return status;
        break;
      case Entry::kHeader:
      case Entry::KIND_NOT_SET:
        return state.refuse("damaged: not an entry of a trace");
    }
  }
  return static_cast<const Packet*>(nullptr);
}

const Header& TraceReader::header() const {
  return state_->header;
}

const std::string& TraceReader::link_name(const Packet& packet) const {
  static const std::string kNone;
  const auto found = state_->links.find(packet.link());
  return packet.has_link() && found != state_->links.end() ? found->second : kNone;
}

const std::string& TraceReader::path() const {
  return state_->path;
}

std::uint64_t TraceReader::packets_read() const {
  return state_->packets;
}

}  // namespace leeway::sim::trace
