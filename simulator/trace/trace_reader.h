// Reads packet traces, which may be cut off or damaged anywhere. Everything is checked before it is
// returned. An error names the file and the byte at which the bad entry begins.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "leeway/status.h"
#include "trace.pb.h"

namespace leeway::sim::trace {

class TraceReader {
 public:
  // Reads the header. Returns kUnavailable if the file cannot be read, and kInvalidArgument if it
  // is no packet trace.
  static Result<TraceReader> open(const std::string& path);
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  const Header& header() const;

  // Returns the next packet, valid until the next call, and null after the last. Before returning
  // null it checks the number of packets and the checksum.
  Result<const Packet*> next();

  // Returns the name of the packet's link, such as "uplink 3", or no text if it has none.
  const std::string& link_name(const Packet& packet) const;

  const std::string& path() const;
  std::uint64_t packets_read() const;

 private:
  struct State;
  explicit TraceReader(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace leeway::sim::trace
