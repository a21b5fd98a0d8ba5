#include "trace/trace_writer.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include <google/protobuf/io/coded_stream.h>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "trace.pb.h"
#include "trace/trace_format.h"

namespace leeway::sim::trace {
namespace {

using google::protobuf::io::CodedOutputStream;

std::uint32_t flags_of(const sim::Packet& packet) {
  return (packet.ecn_capable ? kEcnCapable : 0) | (packet.marked ? kMarked : 0) |
         (packet.trimmed ? kTrimmed : 0) | (packet.corrupt ? kCorrupt : 0) |
         (packet.duplicate ? kDuplicate : 0);
}

}  // namespace

struct TraceWriter::State {
  std::string path;
  TraceOptions options;
  std::FILE* file = nullptr;
  std::set<LinkId> named;
  std::uint64_t packets = 0;
  std::uint32_t crc = 0;
  int error = 0;  // errno of the first failure
  Entry entry;    // used again and again, so that its texts keep their memory
  std::string packed;

  ~State() {
    if (file != nullptr) std::fclose(file);
  }

  void write_bytes(const void* bytes, std::size_t count) {
    crc = crc32c({static_cast<const std::byte*>(bytes), count}, crc);
    if (error == 0 && std::fwrite(bytes, 1, count, file) != count) error = errno;
  }

  void write_entry() {
    packed.clear();
    LEEWAY_ASSERT(entry.AppendToString(&packed));
    std::array<std::uint8_t, 5> length;
    const std::uint8_t* const end = CodedOutputStream::WriteVarint32ToArray(
        static_cast<std::uint32_t>(packed.size()), length.data());
    write_bytes(length.data(), static_cast<std::size_t>(end - length.data()));
    write_bytes(packed.data(), packed.size());
  }

  void write_header() {
    Header& header = *entry.mutable_header();
    header.set_format(kFormatName);
    header.set_version(kFormatVersion);
    header.set_scenario(options.scenario);
    header.set_seed(options.seed);
    header.set_ranks(options.ranks);
    header.set_kept_bytes(options.kept_bytes);
    write_entry();
  }

  void name_link(LinkId link) {
    if (!named.insert(link).second) return;
    Link& named_link = *entry.mutable_link();
    named_link.set_number(link);
    named_link.set_name(options.link_name ? options.link_name(link) : std::string());
    write_entry();
  }
};

TraceWriter::TraceWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceWriter::~TraceWriter() = default;

Result<std::unique_ptr<TraceWriter>> TraceWriter::open(const std::string& path,
                                                       TraceOptions options) {
  auto state = std::make_unique<State>();
  state->path = path;
  state->options = std::move(options);
  state->file = std::fopen(path.c_str(), "wb");
  if (state->file == nullptr) {
    return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", path.c_str(),
                         std::strerror(errno));
  }
  state->write_header();
  return std::unique_ptr<TraceWriter>(new TraceWriter(std::move(state)));
}

void TraceWriter::on_packet(Instant now, PacketStep step, LinkId link, const sim::Packet& packet,
                            ByteSpan payload) {
  State& state = *state_;
  LEEWAY_ASSERT(state.file != nullptr && now.ns >= 0);
  if (link != kArrived) state.name_link(link);
  Packet& out = *state.entry.mutable_packet();
  out.Clear();
  out.set_time_ns(static_cast<std::uint64_t>(now.ns));
  out.set_step(static_cast<Step>(step));
  if (link != kArrived) out.set_link(link);
  out.set_from(packet.from);
  out.set_to(packet.to);
  out.set_bytes(packet.bytes);
  out.set_traffic(static_cast<Traffic>(packet.traffic));
  if (const std::uint32_t flags = flags_of(packet); flags != 0) out.set_flags(flags);
  if (packet.word != 0) out.set_word(packet.word);
  if (!payload.empty()) {
    out.set_datagram(payload.data(),
                     std::min<std::size_t>(payload.size(), state.options.kept_bytes));
  }
  state.write_entry();
  ++state.packets;
}

Status TraceWriter::close() {
  State& state = *state_;
  LEEWAY_ASSERT(state.file != nullptr);
  End& end = *state.entry.mutable_end();
  end.set_packets(state.packets);
  end.set_crc32c(state.crc);
  state.write_entry();
  const bool closed = std::fclose(std::exchange(state.file, nullptr)) == 0;
  if (state.error == 0 && !closed) state.error = errno;
  if (state.error == 0) return {};
  return Status::error(StatusCode::kUnavailable, "cannot write %s: %s", state.path.c_str(),
                       std::strerror(state.error));
}

}  // namespace leeway::sim::trace
