#include "device/ring.h"

#include <algorithm>
#include <iterator>

namespace leeway::device {

Ring::Entries::iterator Ring::first_behind(std::size_t begin) {
  auto found = entries_.upper_bound(begin);
  if (found != entries_.begin() && std::prev(found)->second.end > begin) --found;
  return found;
}

std::optional<Ring::Lease> Ring::place(std::size_t bytes, const Signal& signal,
                                       std::vector<Signal>& over) {
  const std::size_t length =
      (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  if (length > bytes_) return std::nullopt;
  const std::size_t begin = next_ + length > bytes_ ? 0 : next_;
  const std::size_t end = begin + length;
  const auto first = first_behind(begin);
  auto last = first;
  for (; last != entries_.end() && last->first < end; ++last) {
    if (!last->second.closed) return std::nullopt;
  }
  // If the new lease covers a part of an entry, the rest stays an entry with the old signal: a
  // later lease of the rest has to wait for that signal, too.
  Entries rests;
  for (auto one = first; one != last; ++one) {
    over.push_back(one->second.signal);
    Entry rest = one->second;
    if (rest.end > end) rests.emplace(end, rest);
    rest.end = begin;
    if (one->first < begin) rests.emplace(one->first, rest);
  }
  entries_.erase(first, last);
  entries_.merge(rests);
  entries_.emplace(begin, Entry{end, signal, ++leases_, false});
  next_ = end;
  return Lease{begin, leases_};
}

void Ring::close(const Lease& lease) {
  const auto found = entries_.find(lease.offset);
  if (found != entries_.end() && found->second.number == lease.number) found->second.closed = true;
}

}  // namespace leeway::device
