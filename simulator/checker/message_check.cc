#include "checker/message_check.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "codec/codec.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

bool sends(const OperationSpec& spec) {
  return spec.kind == OperationKind::send;
}

// Returns true if the message's codec does not round it.
bool arrives_as_sent(const OperationSpec& spec) {
  return codec::format_of(spec.options.codec, DataType::f32, codec::Purpose::copy).identity();
}

bool is_exchange(const Call& call) {
  return call.spec != nullptr;
}

std::string where(Instant now, Rank rank, const Call& call) {
  return format_text("round %u, rank %u, at %.6f ms: exchange", call.round, rank,
                     static_cast<double>(now.ns) / 1e6);
}

// Sums of the packet counts of several messages.
struct Packets {
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t sent = 0;
  bool operator==(const Packets&) const = default;
};

void add(const CollectiveReport& report, Packets& sum) {
  for (const PeerReport& row : report.peers) {
    sum.expected += row.expected;
    sum.arrived += row.arrived;
    sum.sent += row.sent;
  }
}

}  // namespace

void MessageCheck::on_submit(Rank rank, const Call& call) {
  for (const OperationSpec& spec : call.messages) {
    if (!sends(spec) || spec.peer == rank) continue;
    Stream& stream = streams_[{rank, spec.peer, spec.options.tag}];
    const auto* const data = static_cast<const float*>(spec.input.data);
    stream.sent[stream.sends++].assign(data, data + spec.input.count);
  }
}

void MessageCheck::on_done(Instant now, Rank rank, const Call& call, const CallResult& result) {
  for (const collective::Request& message : result.messages) {
    if (!sends(message.spec) && message.message_number) check_receive(now, rank, call, message);
  }
  if (is_exchange(call)) check_exchange(now, rank, call, result);
}

// Checks the exchange as a whole. An exchange that was refused has begun none of its messages.
void MessageCheck::check_exchange(Instant now, Rank rank, const Call& call,
                                  const CallResult& result) {
  std::size_t done = 0;
  std::size_t good = 0;
  bool alike = result.messages.size() == call.messages.size();
  const std::vector<MessageReport>& told = result.report->messages;
  Packets sum;
  Packets whole;
  add(*result.report, whole);
  for (std::size_t i = 0; i < result.messages.size(); ++i) {
    const collective::Request& message = result.messages[i];
    const OperationSpec& asked = call.messages[std::min(i, call.messages.size() - 1)];
    done += message.done;
    good += message.done && message.status.ok();
    add(message.report, sum);
    alike =
        alike && message.spec.kind == asked.kind && message.spec.options.tag == asked.options.tag;
    if (!result.status.ok()) continue;
    alike =
        alike && i < told.size() && told[i].tag == asked.options.tag &&
        told[i].source == (sends(asked) ? rank : message.spec.peer) &&
        (sends(asked) ? told[i].count == asked.input.count : told[i].count <= asked.output.count);
  }
  const std::size_t all = call.messages.size();
  const bool ended = done == all || (done == 0 && !result.status.ok());
  check_.expect(ended && (good == all) == result.status.ok() && alike, [&] {
    return where(now, rank, call) +
           format_text(
               " of %zu messages: %zu are done and %zu succeeded, and %zu are told of in "
               "this order; status ",
               all, done, good, told.size()) +
           (result.status.ok() ? "ok" : result.status.c_str());
  });
  check_.expect(whole == sum, [&] {
    return where(now, rank, call) +
           format_text(": %" PRIu64 " of %" PRIu64 " packets arrived, and of its messages %" PRIu64
                       " of %" PRIu64,
                       whole.arrived, whole.expected, sum.arrived, sum.expected);
  });
  if (done == all) check_own(now, rank, call);
}

// Checks a rank's messages to itself. Such messages are copied when the exchange begins, so they
// must be right even if the exchange fails.
void MessageCheck::check_own(Instant now, Rank rank, const Call& call) {
  std::map<std::uint32_t, std::vector<const OperationSpec*>> sent;  // by tag
  std::map<std::uint32_t, std::size_t> received;
  for (const OperationSpec& spec : call.messages) {
    if (sends(spec) && spec.peer == rank) sent[spec.options.tag].push_back(&spec);
  }
  for (const OperationSpec& spec : call.messages) {
    if (sends(spec) || spec.peer != rank) continue;
    const std::size_t number = received[spec.options.tag]++;
    const auto& of_tag = sent[spec.options.tag];
    const ConstTensorView from = number < of_tag.size() ? of_tag[number]->input : spec.input;
    const bool same =
        number < of_tag.size() &&
        (from.bytes() == 0 || std::memcmp(from.data, spec.output.data, from.bytes()) == 0);
    check_.expect(same, [&] {
      return where(now, rank, call) +
             format_text(": what the rank sent itself under tag %u as no. %zu is not there",
                         spec.options.tag, number);
    });
  }
}

void MessageCheck::check_receive(Instant now, Rank rank, const Call& call,
                                 const collective::Request& message) {
  const OperationSpec& spec = message.spec;
  const std::uint32_t number = *message.message_number;
  Stream& stream = streams_[{spec.peer, rank, spec.options.tag}];
  const auto at = stream.sent.find(number);
  const auto where = [&] {
    return format_text("round %u, rank %u, at %.6f ms: message %u of tag %u from rank %u",
                       call.round, rank, static_cast<double>(now.ns) / 1e6, number,
                       spec.options.tag, spec.peer);
  };
  if (message.status.ok()) {
    check_.expect(at != stream.sent.end(),
                  [&] { return where() + " arrived before it was sent, or twice"; });
    check_.expect(stream.latest < number, [&] { return where() + " came behind a later one"; });
    stream.latest = number;
  }
  if (at == stream.sent.end()) return;
  const std::vector<float> sent = std::move(at->second);
  stream.sent.erase(at);
  if (!message.status.ok()) return;
  const MessageReport& told = message.report.messages.at(0);
  check_.expect(told.source == spec.peer && told.tag == spec.options.tag &&
                    told.count == sent.size() && told.count <= spec.output.count,
                [&] { return where() + " is not as long as it was sent, or of another rank"; });
  if (!arrives_as_sent(spec)) return;
  const bool same = told.count == sent.size() &&
                    (sent.empty() ||
                     std::memcmp(sent.data(), spec.output.data, sent.size() * sizeof(float)) == 0);
  check_.expect(same, [&] { return where() + " is not what was sent"; });
}

}  // namespace leeway::sim
