// List of packets that are to be lost: "source>destination/round/phase/index", comma separated,
// with * for any.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "impairment/packet_address.h"
#include "leeway/status.h"

namespace leeway::impairment {

class LossList {
 public:
  // Parses a list in the form above. An empty text gives an empty list. An error quotes the entry
  // that is wrong.
  static Result<LossList> parse(std::string_view text);

  // Returns true if an entry matches the packet. Only first attempts of data packets match, so a
  // repeated packet gets through.
  bool contains(const PacketAddress& packet) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {  // an unset field matches any
    std::optional<std::uint32_t> source;
    std::optional<std::uint32_t> destination;
    std::optional<std::uint32_t> round;
    std::optional<std::uint32_t> phase;
    std::optional<std::uint32_t> index;
  };
  static bool parse_entry(std::string_view text, Entry& entry);

  std::vector<Entry> entries_;
};

}  // namespace leeway::impairment
