#include "rendezvous/printable.h"

#include <algorithm>

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
  std::string clean = text.substr(0, length_max);
  std::replace_if(
      clean.begin(), clean.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return clean;
}

}  // namespace leeway::rendezvous
