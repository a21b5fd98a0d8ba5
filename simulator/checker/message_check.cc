#include "checker/message_check.h"

#include <algorithm>
#include <cstring>

#include "codec/codec.h"

namespace leeway::sim {
namespace {

using collective::OperationKind;
using collective::OperationSpec;

bool sends(const OperationSpec& spec) {
  return spec.kind == OperationKind::send;
}

// What arrives is what was sent, and no rounding of it.
bool is_exact(const OperationSpec& spec) {
  return codec::format_of(spec.options.codec, DataType::f32, codec::Purpose::copy).identity();
}

}  // namespace

void MessageCheck::on_submit(Rank rank, const Call& call) {
  for (const OperationSpec& spec : call.messages) {
    if (!sends(spec)) continue;
    Stream& stream = streams_[{rank, spec.peer, spec.options.tag}];
    const auto* const data = static_cast<const float*>(spec.input.data);
    stream.sent[stream.sends++].assign(data, data + spec.input.count);
  }
}

void MessageCheck::on_done(Instant now, Rank rank, const Call& call, const CallResult& result) {
  for (const collective::Request& message : result.messages) {
    if (!sends(message.spec) && message.message_number) check_receive(now, rank, call, message);
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
  if (!is_exact(spec)) return;
  const bool same = told.count == sent.size() &&
                    (sent.empty() ||
                     std::memcmp(sent.data(), spec.output.data, sent.size() * sizeof(float)) == 0);
  check_.expect(same, [&] { return where() + " is not what was sent"; });
}

}  // namespace leeway::sim
