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
void sum_decoded(const codec::Format& format, std::span<const Term> terms, std::size_t elements,
                 MutableByteSpan result, Arena& scratch) {
  const codec::Format& native = codec::format_of(Codec::native, DataType::f32);
  scratch.reserve(elements * sizeof(float));
  const std::span sum(reinterpret_cast<float*>(scratch.data()), elements);
  if (terms.empty()) std::fill(sum.begin(), sum.end(), 0.0f);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    add_term(terms[i].encoded ? format : native, i == 0, terms[i], elements, sum);
  }
  std::memcpy(result.data(), sum.data(), elements * sizeof(float));
}

}  // namespace

void scaled_sum(const codec::Format& format, DataType dtype, std::span<const Term> terms, std::size_t elements,
                MutableByteSpan result, Arena& scratch) {
  LEEWAY_ASSERT(is_floating(dtype) && result.size() == elements * size_of(dtype));
  if (!format.identity()) return sum_decoded(format, terms, elements, result, scratch);
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
