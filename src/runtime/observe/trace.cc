#include "observe/trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "base/per_process.h"
#include "driving/driver.h"
#include "leeway/version.h"

namespace leeway::observe {
namespace {

using rendezvous::LogLevel;

constexpr auto kWriteEvery = std::chrono::milliseconds(20);
constexpr std::size_t kRecordBytesMax = 512;

// All traces of this process, by file.
struct Traces {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Trace>> by_path;
  std::set<std::string> refused;  // files that could not be opened; each was logged once
};
Traces& traces() {
  static auto* const of_process = new PerProcess<Traces>;  // never destroyed
  return of_process->get();
}

// Opens the file at `path`. Refuses devices and pipes, because opening one may block. `asked`, the
// path in the options, must not be a device or pipe either, because the ranks' files get names
// beside it. Returns null on failure. Then errno says why; 0 means that the file is no plain file.
std::FILE* open_file(const std::string& path, const std::string& asked) {
  struct stat facts {};
  errno = 0;
  if (::stat(asked.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode)) return nullptr;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
  const int file = ::open(path.c_str(), kFlags, 0666);
  if (file < 0) return nullptr;
  if (::fstat(file, &facts) == 0 && S_ISREG(facts.st_mode)) return ::fdopen(file, "w");
  ::close(file);
  errno = 0;
  return nullptr;
}

double milliseconds(Duration duration) {
  return static_cast<double>(duration.count()) / 1e6;
}

const char* name_of(std::uint8_t type) {
  switch (static_cast<wire::PacketType>(type)) {
    case wire::PacketType::data:
      return "data";
    case wire::PacketType::report:
      return "report";
    case wire::PacketType::end:
      return "end";
    case wire::PacketType::repair:
      return "repair";
    case wire::PacketType::probe:
      return "probe";
    case wire::PacketType::goodbye:
      return "goodbye";
    case wire::PacketType::given_up:
      return "given_up";
    case wire::PacketType::alive:
      return "alive";
    case wire::PacketType::size:
      return "size";
    case wire::PacketType::piece:
      return "piece";
  }
  return "other";
}

}  // namespace

std::string Trace::path_of(const std::string& path, int rank, int size) {
  if (size <= 1) return path;
  const std::size_t slash = path.rfind('/');
  std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) dot = path.size();
  return path.substr(0, dot) + "." + std::to_string(rank) + path.substr(dot);
}

std::shared_ptr<Trace> Trace::of(const Options& options) {
  if (options.trace.empty()) return nullptr;
  const std::string path =
      path_of(options.trace, options.rank.value_or(0), options.world_size.value_or(1));
  Traces& all = traces();
  const std::lock_guard lock(all.mutex);
  if (auto known = all.by_path[path].lock()) return known;
  const auto level = rendezvous::parse_log_level(options.log_level);
  rendezvous::Log log(level.ok() ? *level : LogLevel::warn,
                      static_cast<Rank>(options.rank.value_or(0)));
  std::FILE* const file = open_file(path, options.trace);
  if (file == nullptr) {
    const char* const why = errno == 0 || errno == ENXIO ? "no plain file" : std::strerror(errno);
    if (all.refused.insert(path).second)
      log.print(LogLevel::warn, "no trace", "no trace: %s: %s", options.trace.c_str(), why);
    return nullptr;
  }
  log.print(LogLevel::info, "trace", "a qlog goes to %s, 64 MiB at most", path.c_str());
  auto trace = std::make_shared<Trace>(file, options, log);
  all.by_path[path] = trace;
  return trace;
}

Trace::Trace(std::FILE* file, const Options& options, const rendezvous::Log& log,
             std::size_t bytes_max)
    : file_(file),
      path_(path_of(options.trace, options.rank.value_or(0), options.world_size.value_or(1))),
      kept_(::fileno(file)),
      bytes_max_(bytes_max),
      log_(log.level(), log.rank()),
      began_(driving::steady_now()) {
  notes_.reserve(kNotesMax);
  taken_.reserve(kNotesMax);
  const auto reference = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  std::array<char, kRecordBytesMax> text{};
  const int length = std::snprintf(
      text.data(), text.size(),
      R"({"qlog_version":"0.3","qlog_format":"JSON-SEQ","title":"Leeway %s","trace":{"vantage_point":)"
      R"({"name":"rank %d of %d","type":"client"},"common_fields":{"protocol_type":["LEEWAY"],)"
      R"("time_format":"relative","reference_time":%lld}}})",
      LEEWAY_VERSION_STRING, options.rank.value_or(0), options.world_size.value_or(1),
      static_cast<long long>(reference.count()));
  write_record(text.data(), length);
  auto writer =
      Thread::start("write a trace", [this](const std::stop_token& stop) { write_all(stop); });
  if (writer.ok()) writer_ = std::move(*writer);
  if (!writer_.joinable())
    log_.print(LogLevel::warn, "no trace", "no trace: %s", writer.status().c_str());
}

Trace::~Trace() {
  writer_ = {};
  kept_.release();
  std::fclose(file_);
}

void Trace::leave(const Note& note) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || notes_.size() == kNotesMax) {
    ++dropped_;
  } else {
    notes_.push_back(note);
  }
}

void Trace::moved(Instant now, Way way, Rank peer, const wire::Prefix& prefix, std::size_t bytes) {
  leave({.at = now,
         .what = way == Way::sent ? What::sent : What::received,
         .type = static_cast<std::uint8_t>(prefix.type),
         .peer = peer,
         .number = prefix.sequence,
         .bytes = bytes});
}

void Trace::look(const driving::Snapshot& snapshot) {
  if (snapshot.channels.empty()) return;
  const driving::ChannelView& channel = snapshot.channels.front();
  for (const driving::PeerView& peer : channel.peers) {
    leave({.at = snapshot.at,
           .what = What::metrics,
           .peer = peer.rank,
           .bytes = peer.datagrams_in_flight * channel.datagram_bytes,
           .rtt = peer.rtt,
           .rtt_min = peer.rtt_min,
           .window_bytes = peer.window_datagrams * channel.datagram_bytes,
           .bits_per_second = snapshot.uplink.bits_per_second});
    if (lost_seen_.size() <= peer.rank) lost_seen_.resize(peer.rank + 1);
    const std::uint64_t lost = peer.datagrams_lost - lost_seen_[peer.rank];
    lost_seen_[peer.rank] = peer.datagrams_lost;
    if (lost > 0) leave({.at = snapshot.at, .what = What::lost, .peer = peer.rank, .bytes = lost});
  }
}

void Trace::done(Instant now, const collective::Request& request) {
  leave({.at = now,
         .what = What::done,
         .type = static_cast<std::uint8_t>(request.spec.kind),
         .flag = !request.status.ok(),
         .number = static_cast<std::uint32_t>(request.sequence),
         .bytes = request.report.bytes_sent,
         .rtt = request.report.times.total,
         .loss = request.report.loss});
}

void Trace::write_all(const std::stop_token& stop) {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      stopping_.wait_for(lock, stop, kWriteEvery, [] { return false; });
      last = stop.stop_requested();
      taken_.swap(notes_);
    }
    for (const Note& note : taken_) write(note);
    if (!taken_.empty()) flush();  // so that the file is complete if the process is killed
    taken_.clear();
    const std::uint64_t dropped = dropped_;
    if (dropped == dropped_told_) continue;
    std::array<char, kRecordBytesMax> text{};
    const int length =
        std::snprintf(text.data(), text.size(),
                      R"({"time":%.4f,"name":"leeway:events_dropped","data":{"count":%llu}})",
                      milliseconds(driving::steady_now() - began_),
                      static_cast<unsigned long long>(dropped - dropped_told_));
    dropped_told_ = dropped;
    write_record(text.data(), length);
  }
  flush();
}

void Trace::write(const Note& note) {
  std::array<char, kRecordBytesMax> text{};
  const double time = milliseconds(note.at - began_);
  const unsigned peer = note.peer;
  const auto bytes = static_cast<unsigned long long>(note.bytes);
  int length = 0;
  switch (note.what) {
    case What::sent:
    case What::received:
      length = std::snprintf(
          text.data(), text.size(),
          R"({"time":%.4f,"name":"transport:packet_%s","group_id":"peer %u","data":{"header":)"
          R"({"packet_type":"1RTT","packet_number":%u},"raw":{"length":%llu},"leeway_type":"%s"}})",
          time, note.what == What::sent ? "sent" : "received", peer, note.number, bytes,
          name_of(note.type));
      break;
    case What::lost:
      length = std::snprintf(
          text.data(), text.size(),
          R"({"time":%.4f,"name":"recovery:packet_lost","group_id":"peer %u","data":{"header":)"
          R"({"packet_type":"1RTT"},"leeway_count":%llu}})",
          time, peer, bytes);
      break;
    case What::metrics:
      length = std::snprintf(
          text.data(), text.size(),
          R"({"time":%.4f,"name":"recovery:metrics_updated","group_id":"peer %u","data":)"
          R"({"smoothed_rtt":%.4f,"min_rtt":%.4f,"bytes_in_flight":%llu,"congestion_window":%llu,)"
          R"("pacing_rate":%.0f}})",
          time, peer, milliseconds(note.rtt), milliseconds(note.rtt_min), bytes,
          static_cast<unsigned long long>(note.window_bytes), note.bits_per_second);
      break;
    case What::done:
      length = std::snprintf(
          text.data(), text.size(),
          R"({"time":%.4f,"name":"leeway:operation_done","data":{"operation":"%s","number":%u,)"
          R"("failed":%s,"duration":%.4f,"sent_bytes":%llu,"loss":%.6f}})",
          time, wire::to_string(static_cast<wire::OperationKind>(note.type)), note.number,
          note.flag ? "true" : "false", milliseconds(note.rtt), bytes, note.loss);
      break;
  }
  write_record(text.data(), length);
}

// Ends the trace if the disk takes no more. Records are lost then, and later ones would stand after
// a gap.
void Trace::flush() {
  if (std::fflush(file_) == 0 || full_) return;
  full_ = true;
  log_.print(LogLevel::warn, "trace cut", "the trace ends early: %s: %s; the job goes on",
             path_.c_str(), std::strerror(errno));
}

void Trace::write_record(const char* text, int length) {
  if (full_ || length <= 0 || static_cast<std::size_t>(length) >= kRecordBytesMax) return;
  std::fputc('\x1e', file_);
  std::fwrite(text, 1, static_cast<std::size_t>(length), file_);
  std::fputc('\n', file_);
  bytes_ += static_cast<std::size_t>(length) + 2;
  if (bytes_ + 2 * kRecordBytesMax <= bytes_max_) return;
  full_ = true;
  std::fputs("\x1e{\"time\":0,\"name\":\"leeway:trace_full\",\"data\":{}}\n", file_);
  std::fflush(file_);
  log_.print(LogLevel::warn, "trace full", "the trace is full: it ends here, and the job goes on");
}

}  // namespace leeway::observe
