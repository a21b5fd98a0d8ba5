#include "rendezvous/tls_channel.h"

#include <algorithm>
#include <utility>

namespace leeway::rendezvous {
namespace {

constexpr std::size_t kPartBytes = std::size_t{64} * 1024;

std::size_t bytes_of(const StoreServer::Answer& answer) {
  return answer.head.size() + (answer.value ? answer.value->size() : 0);
}

}  // namespace

void TlsChannel::queue(StoreServer::Answer answer) {
  bytes_left_ += bytes_of(answer);
  answers_.push_back(std::move(answer));
}

ByteSpan TlsChannel::begin_write() {
  if (!writing_.empty()) return {};
  while (!answers_.empty() && written_.bytes < kPartBytes) say_more();
  writing_ = session_.take_output();
  return writing_;
}

TlsChannel::Written TlsChannel::end_write() {
  writing_.clear();
  bytes_left_ -= written_.bytes;
  return std::exchange(written_, {});
}

void TlsChannel::say_more() {
  const StoreServer::Answer& answer = answers_.front();
  const bool in_head = said_ < answer.head.size();
  const ByteSpan whole = in_head ? ByteSpan(answer.head) : ByteSpan(*answer.value);
  const ByteSpan rest = whole.subspan(in_head ? said_ : said_ - answer.head.size());
  const ByteSpan part = rest.first(std::min(rest.size(), kPartBytes));
  session_.say(part);
  said_ += part.size();
  written_.bytes += part.size();
  if (said_ < bytes_of(answer)) return;
  ++written_.answers;
  said_ = 0;
  answers_.pop_front();
}

}  // namespace leeway::rendezvous
