#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "driving/driver.h"
#include "observe/trace.h"

namespace leeway::observe {
namespace {

// Traces datagrams. It is the outermost layer, so it sees them as the core writes and reads them:
// before they are sealed and after they are opened.
class TracedTransport final : public DatagramTransport {
 public:
  TracedTransport(std::unique_ptr<DatagramTransport> inner, std::shared_ptr<Trace> trace)
      : inner_(std::move(inner)), trace_(std::move(trace)) {}

  std::string_view name() const override { return inner_->name(); }
  const TransportLimits& limits() const override { return inner_->limits(); }
  const TransportLimits& limits_to(Rank peer) const override { return inner_->limits_to(peer); }
  Status register_memory(ByteSpan memory) override { return inner_->register_memory(memory); }
  void forget_memory(ByteSpan memory) override { inner_->forget_memory(memory); }
  std::size_t send(std::span<const Train> trains) override {
    const std::size_t taken = inner_->send(trains);
    const Instant now = driving::steady_now();
    for (const Train& train : trains.first(taken)) note(now, train);
    return taken;
  }
  std::size_t borrowed() override { return inner_->borrowed(); }
  std::size_t receive(std::span<Received> out) override {
    const std::size_t count = inner_->receive(out);
    if (count == 0) return count;
    const Instant now = driving::steady_now();
    for (const Received& received : out.first(count)) {
      wire::Prefix prefix;
      if (wire::peek_prefix(received.bytes, prefix) == wire::Refusal::none)
        trace_->moved(now, Trace::Way::received, received.from, prefix, received.bytes.size());
    }
    return count;
  }
  void wait(Duration timeout) override { inner_->wait(timeout); }
  void wake() override { inner_->wake(); }
  TransportCounters counters() const override { return inner_->counters(); }
  const Status& status() const override { return inner_->status(); }

 private:
  void note(Instant now, const Train& train) {
    std::size_t slice = 0;
    std::size_t slice_begins = 0;
    for (std::size_t at = 0; at < train.total_bytes; at += train.segment_bytes) {
      const std::size_t bytes = std::min(train.segment_bytes, train.total_bytes - at);
      std::array<std::byte, wire::kPrefixBytes> head{};
      std::size_t filled = 0;
      while (filled < std::min(bytes, head.size())) {
        while (at + filled >= slice_begins + train.slices[slice].bytes)
          slice_begins += train.slices[slice++].bytes;
        const std::size_t offset = at + filled - slice_begins;
        const std::size_t piece =
            std::min(head.size() - filled, train.slices[slice].bytes - offset);
        std::memcpy(head.data() + filled, train.slices[slice].data + offset, piece);
        filled += piece;
      }
      wire::Prefix prefix;
      (void)wire::peek_prefix(head, prefix);  // the rest of the header is not needed
      trace_->moved(now, Trace::Way::sent, train.to, prefix, bytes);
    }
  }

  const std::unique_ptr<DatagramTransport> inner_;
  const std::shared_ptr<Trace> trace_;
};

}  // namespace

std::unique_ptr<DatagramTransport> traced(std::unique_ptr<DatagramTransport> transport,
                                          const Options& options) {
  auto trace = Trace::of(options);
  if (trace == nullptr) return transport;
  return std::make_unique<TracedTransport>(std::move(transport), std::move(trace));
}

}  // namespace leeway::observe
