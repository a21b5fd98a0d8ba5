#include "trace/trace_diff.h"

#include <deque>
#include <utility>

#include "trace/packet_text.h"
#include "trace/trace_reader.h"

namespace leeway::sim::trace {
namespace {

// The next packet of a trace with its link's name, or the trace's end.
struct Next {
  bool present = false;
  Packet packet;
  std::string link;

  std::string text() const { return packet_text(packet, link); }
};

Status advance(TraceReader& reader, Next& next) {
  const Result<const Packet*> read = reader.next();
  if (!read.ok()) return read.status();
  next.present = *read != nullptr;
  if (!next.present) return {};
  next.packet = **read;
  next.link = reader.link_name(**read);
  return {};
}

std::string differing_fields(const Next& a, const Next& b) {
  if (!a.present || !b.present) return {};
  std::string fields;
  const auto compare = [&fields](const char* name, const auto& left, const auto& right) {
    if (!(left == right)) fields += std::string(fields.empty() ? "" : ", ") + name;
  };
  compare("time", a.packet.time_ns(), b.packet.time_ns());
  compare("step", a.packet.step(), b.packet.step());
  compare("link", a.link, b.link);
  compare("from", a.packet.from(), b.packet.from());
  compare("to", a.packet.to(), b.packet.to());
  compare("bytes", a.packet.bytes(), b.packet.bytes());
  compare("traffic", a.packet.traffic(), b.packet.traffic());
  compare("flags", a.packet.flags(), b.packet.flags());
  compare("contents", a.packet.datagram(), b.packet.datagram());
  compare("word", a.packet.word(), b.packet.word());
  return fields;
}

std::vector<std::string> differing_headers(const Header& a, const Header& b) {
  std::vector<std::string> notes;
  const auto compare = [&notes](const char* name, const std::string& left,
                                const std::string& right) {
    if (left != right) notes.push_back(std::string(name) + ": " + left + " and " + right);
  };
  compare("scenario", a.scenario(), b.scenario());
  compare("seed", std::to_string(a.seed()), std::to_string(b.seed()));
  compare("ranks", std::to_string(a.ranks()), std::to_string(b.ranks()));
  compare("bytes kept", std::to_string(a.kept_bytes()), std::to_string(b.kept_bytes()));
  return notes;
}

// Returns the lines of `next` and the following packets, as far as they can be read. Damage further
// on must not hide the difference.
std::vector<std::string> lines_from(TraceReader& reader, Next next, std::size_t context) {
  std::vector<std::string> lines;
  Status status;
  while (status.ok() && next.present && lines.size() <= context) {
    lines.push_back(next.text());
    status = advance(reader, next);
  }
  return lines;
}

}  // namespace

Result<TraceComparison> compare_traces(const std::string& first, const std::string& second,
                                       std::size_t context) {
  Result<TraceReader> a = TraceReader::open(first);
  if (!a.ok()) return a.status();
  Result<TraceReader> b = TraceReader::open(second);
  if (!b.ok()) return b.status();
  TraceComparison comparison;
  comparison.notes = differing_headers(a->header(), b->header());
  std::deque<Next> before;
  for (;; ++comparison.packets) {
    Next next_a, next_b;
    Status status = advance(*a, next_a);
    if (status.ok()) status = advance(*b, next_b);
    if (!status.ok()) return status;
    if (!next_a.present && !next_b.present) return comparison;
    std::string fields = differing_fields(next_a, next_b);
    if (next_a.present && next_b.present && fields.empty()) {
      before.push_back(std::move(next_a));
      if (before.size() > context) before.pop_front();
      continue;
    }
    TraceDifference difference;
    difference.index = comparison.packets;
    difference.fields = std::move(fields);
    for (const Next& next : before) difference.before.push_back(next.text());
    difference.first = lines_from(*a, next_a, context);
    difference.second = lines_from(*b, next_b, context);
    comparison.difference = std::move(difference);
    return comparison;
  }
}

}  // namespace leeway::sim::trace
