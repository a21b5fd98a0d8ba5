#include "collective/size_agreement.h"

#include <algorithm>

#include "base/contracts.h"
#include "base/limits.h"

namespace leeway::collective {

std::optional<std::size_t> SizeAgreement::agreed_bytes() const {
  const std::uint16_t least = *std::min_element(sizes_.begin(), sizes_.end());
  return least == 0 ? std::nullopt : std::optional<std::size_t>(least);
}

std::vector<Rank> SizeAgreement::untold() const {
  std::vector<Rank> untold;
  for (Rank rank = 0; rank < sizes_.size(); ++rank) {
    if (rank != self_ && sizes_[rank] == 0) untold.push_back(rank);
  }
  return untold;
}

void SizeAgreement::ask(std::size_t own) {
  LEEWAY_ASSERT(own <= UINT16_MAX && self_ < sizes_.size());
  told_ = sizes_[self_] != 0;
  if (!told_) sizes_[self_] = static_cast<std::uint16_t>(own);
  asked_ = 0;
}

void SizeAgreement::tell() {
  told_ = false;
  asked_ = 0;
}

Rank SizeAgreement::next(std::uint32_t number) {
  while (asked_ < sizes_.size()) {
    const Rank rank = asked_++;
    const bool news = own() != 0 && !told_ && !knows_[rank];
    if (rank == self_ || (sizes_[rank] != 0 && !news)) continue;
    if (own() != 0 && first_told_ == 0) first_told_ = number;
    return rank;
  }
  return kNoRank;
}

void SizeAgreement::on_told(Rank from, std::uint16_t bytes) {
  LEEWAY_ASSERT(from != self_);  // no peer sets what this rank's own paths carry
  if (bytes >= limits::kDatagramBytesMin) sizes_[from] = bytes;
}

void SizeAgreement::on_acknowledged(Rank from, std::uint32_t number, std::uint32_t latest) {
  if (first_told_ != 0 && number - first_told_ <= latest - first_told_) knows_[from] = true;
}

}  // namespace leeway::collective
