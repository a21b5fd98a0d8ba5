#include "collective/scaled_sum.h"

#include <algorithm>
#include <cstring>

#include "base/contracts.h"
#include "codec/reduce.h"

namespace leeway::collective {
namespace {

void add_term(const codec::Format& format, bool first, const Term& term, std::size_t elements,
              std::span<float> sum) {
  const ByteSpan bytes(term.data, format.encoded_bytes(elements));
  first ? codec::accumulate_first(format, bytes, term.scale, sum) : codec::accumulate(format, bytes, term.scale, sum);
}

// Encoded float32: decode and accumulate in scratch, then copy. The scratch keeps a native term that shares memory with the
// result intact until it has been read.
class DecodedSum {
 public:
  DecodedSum(const codec::Format& format, std::size_t elements, Arena& scratch)
      : format_(format), native_(codec::format_of(Codec::native, DataType::f32)) {
    scratch.reserve(elements * sizeof(float));
    sum_ = {reinterpret_cast<float*>(scratch.data()), elements};
  }

  void add(const Term& term) {
    add_term(term.encoded ? format_ : native_, empty_, term, sum_.size(), sum_);
    empty_ = false;
  }
  void restore(const codec::Place& place) {
    if (!empty_) codec::restore(format_, place, sum_);
  }
  void write(MutableByteSpan result) {
    if (empty_) std::fill(sum_.begin(), sum_.end(), 0.0f);
    std::memcpy(result.data(), sum_.data(), sum_.size_bytes());
  }

 private:
  const codec::Format& format_;
  codec::Format native_;
  std::span<float> sum_;
  bool empty_ = true;
};

void sum_decoded(const codec::Format& format, const codec::Place& place, std::span<const Term> terms, std::size_t elements,
                 MutableByteSpan result, Arena& scratch) {
  DecodedSum sum(format, elements, scratch);
  const bool rotated = format.options.rotate;
  for (const Term& term : terms) {
    if (term.encoded || !rotated) sum.add(term);
  }
  if (rotated) {
    sum.restore(place);
    for (const Term& term : terms) {
      if (!term.encoded) sum.add(term);
    }
  }
  sum.write(result);
}

}  // namespace

void scaled_sum(const codec::Format& format, const codec::Place& place, DataType dtype, std::span<const Term> terms, std::size_t elements,
                MutableByteSpan result, Arena& scratch) {
  LEEWAY_ASSERT(is_floating(dtype) && result.size() == elements * size_of(dtype));
  if (!format.identity()) return sum_decoded(format, place, terms, elements, result, scratch);
  scratch.reserve(terms.size() * (sizeof(const std::byte*) + sizeof(double)));
  const std::span inputs(reinterpret_cast<const std::byte**>(scratch.data()), terms.size());
  const std::span scales(reinterpret_cast<double*>(inputs.data() + inputs.size()), terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    inputs[i] = terms[i].data;
    scales[i] = terms[i].scale;
  }
  codec::weighted_sum(dtype, inputs, scales, result);
}

}  // namespace leeway::collective
