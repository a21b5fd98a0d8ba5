// Writes the steps of all packets to a file during a run. Format: proto/trace.proto.
//
// Writing does not change the run: a run with a trace has the same trace hash as one without.
// Writes are buffered; close() returns their errors.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "leeway/status.h"
#include "network/network.h"

namespace leeway::sim::trace {

inline constexpr std::uint32_t kHeaderBytesKept = 64;  // Leeway's largest header is 56
inline constexpr std::uint32_t kWholeDatagrams = 65535;

struct TraceOptions {
  std::string scenario;  // its name
  std::uint64_t seed = 0;
  std::uint32_t ranks = 0;
  std::uint32_t kept_bytes = kHeaderBytesKept;  // bytes kept of each datagram
  std::function<std::string(LinkId)> link_name;
};

class TraceWriter : public PacketObserver {
 public:
  // Opens the file; an existing one is replaced.
  static Result<std::unique_ptr<TraceWriter>> open(const std::string& path, TraceOptions options);
  ~TraceWriter() override;  // a trace that was not closed has no end

  void on_packet(Instant now, PacketStep step, LinkId link, const sim::Packet& packet,
                 ByteSpan payload) override;

  // Writes the end of the trace. Call nothing after it.
  Status close();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace leeway::sim::trace
