#include "rendezvous/printable.h"

#include "base/plain_text.h"

namespace leeway::rendezvous {

std::string list_ranks(const std::vector<Rank>& ascending) {
  constexpr int kRangesMax = 8;
  std::string text;
  int ranges = 0;
  for (std::size_t i = 0; i < ascending.size();) {
    if (ranges++ == kRangesMax)
      return text + " and " + std::to_string(ascending.size() - i) + " more";
    std::size_t last = i;
    while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(ascending[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ascending[last]);
    i = last + 1;
  }
  return text;
}

std::string printable(const std::string& text, std::size_t length_max) {
  return plain(std::string_view(text).substr(0, length_max));
}

}  // namespace leeway::rendezvous
