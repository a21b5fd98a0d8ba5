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
  std::vector<std::uint32_t>& numbers = numbers_[rank];
  numbers.clear();
  for (const OperationSpec& spec : call.messages) {
    Stream& stream = streams_[sends(spec) ? Pair{rank, spec.peer} : Pair{spec.peer, rank}];
    if (!sends(spec)) {
      numbers.push_back(stream.receives++);
      continue;
    }
    const auto* const data = static_cast<const float*>(spec.input.data);
    stream.sent[stream.sends].assign(data, data + spec.input.count);
    numbers.push_back(stream.sends++);
  }
}

void MessageCheck::on_done(Instant now, Rank rank, const Call& call, const CallResult& result) {
  const std::vector<std::uint32_t>& numbers = numbers_[rank];
  for (std::size_t i = 0; i < result.messages.size(); ++i) {
    const collective::Request& message = result.messages[i];
    if (!sends(message.spec)) check_receive(now, rank, numbers[i], call, message);
  }
}

void MessageCheck::check_receive(Instant now, Rank rank, std::uint32_t number, const Call& call,
                                 const collective::Request& message) {
  Stream& stream = streams_[{message.spec.peer, rank}];
  const auto at = stream.sent.find(number);
  const auto where = [&] {
    return format_text("round %u, rank %u, at %.6f ms: message %u from rank %u", call.round, rank,
                       static_cast<double>(now.ns) / 1e6, number, message.spec.peer);
  };
  if (message.status.ok()) {
    check_.expect(at != stream.sent.end() || message.spec.output.count == 0,
                  [&] { return where() + " arrived before it was sent"; });
  }
  if (at == stream.sent.end()) return;
  const std::vector<float> sent = std::move(at->second);
  stream.sent.erase(at);
  if (!message.status.ok() || !is_exact(message.spec)) return;
  const bool same = sent.size() == message.spec.output.count &&
                    (sent.empty() || std::memcmp(sent.data(), message.spec.output.data,
                                                 sent.size() * sizeof(float)) == 0);
  check_.expect(same, [&] { return where() + " is not what was sent"; });
}

}  // namespace leeway::sim
