#include "collective/scaled_sum.h"

#include <algorithm>
#include <cstdint>

#include "base/contracts.h"
#include "codec/finite.h"
#include "codec/reduce.h"

namespace leeway::collective {
namespace {

void add_term(const codec::Format& format, bool first, const Term& term, std::size_t elements,
              std::span<float> sum) {
  const ByteSpan bytes(term.data, format.encoded_bytes(elements));
  first ? codec::accumulate_first(format, bytes, term.scale, sum)
        : codec::accumulate(format, bytes, term.scale, sum);
}

// Returns true if the sum may be formed in the result's memory. That memory must be aligned
// float32. No term may lie there but the one that is added first, whose elements are each read
// before they are replaced. `native_last`: encoded terms are added first, so no native term may lie
// there.
bool may_sum_in(MutableByteSpan result, DataType dtype, std::span<const Term> terms,
                bool native_last) {
  if (dtype != DataType::f32) return false;
  if (reinterpret_cast<std::uintptr_t>(result.data()) % alignof(float) != 0) return false;
  for (std::size_t i = native_last ? 0 : 1; i < terms.size(); ++i) {
    if (terms[i].data == result.data()) return false;
  }
  return true;
}

// Adds encoded and native terms in float32. `memory`: the result's memory if may_sum_in() allows
// that, else scratch.
class DecodedSum {
 public:
  DecodedSum(const codec::Format& format, std::span<float> memory)
      : format_(format), native_(codec::format_of(Codec::native, format.element)), sum_(memory) {}

  void add(const Term& term) {
    add_term(term.encoded ? format_ : native_, empty_, term, sum_.size(), sum_);
    empty_ = false;
  }
  void restore(const codec::Place& place) {
    if (!empty_) codec::restore(format_, place, sum_);
  }
  bool finite() const {
    return empty_ || codec::all_finite(DataType::f32, std::as_bytes(std::span(sum_)));
  }
  // Writes the sum in the tensor's type. A narrower type is rounded only here.
  void finish(MutableByteSpan result) {
    if (empty_) std::fill(sum_.begin(), sum_.end(), 0.0f);
    const bool in_place = reinterpret_cast<std::byte*>(sum_.data()) == result.data();
    if (!in_place) codec::encode(native_, sum_, {}, result);
  }

 private:
  const codec::Format& format_;
  codec::Format native_;
  std::span<float> sum_;
  bool empty_ = true;
};

bool sum_decoded(const codec::Format& format, const codec::Place& place,
                 std::span<const Term> terms, std::size_t elements, MutableByteSpan result,
                 GrowingBuffer& scratch, bool check) {
  const bool rotated = format.options.rotate;
  const bool in_result = may_sum_in(result, format.element, terms, rotated);
  if (!in_result) scratch.reserve(elements * sizeof(float));
  const std::span memory(reinterpret_cast<float*>(in_result ? result.data() : scratch.data()),
                         elements);
  DecodedSum sum(format, memory);
  for (const Term& term : terms) {
    if (term.encoded || !rotated) sum.add(term);
  }
  if (rotated) {
    sum.restore(place);
    for (const Term& term : terms) {
      if (!term.encoded) sum.add(term);
    }
  }
  const bool finite = !check || sum.finite();
  sum.finish(result);
  return finite;
}

}  // namespace

bool scaled_sum(const codec::Format& format, const codec::Place& place, DataType dtype,
                std::span<const Term> terms, std::size_t elements, MutableByteSpan result,
                GrowingBuffer& scratch, bool check) {
  LEEWAY_ASSERT(is_floating(dtype) && result.size() == elements * size_of(dtype));
  if (!format.identity())
    return sum_decoded(format, place, terms, elements, result, scratch, check);
  scratch.reserve(terms.size() * (sizeof(const std::byte*) + sizeof(double)));
  const std::span inputs(reinterpret_cast<const std::byte**>(scratch.data()), terms.size());
  const std::span scales(reinterpret_cast<double*>(inputs.data() + inputs.size()), terms.size());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    inputs[i] = terms[i].data;
    scales[i] = terms[i].scale;
  }
  if (check) return codec::weighted_sum_checked(dtype, inputs, scales, result);
  codec::weighted_sum(dtype, inputs, scales, result);
  return true;
}

bool is_finite(const codec::Format& format, DataType dtype, const Term& term, std::size_t elements,
               GrowingBuffer& scratch) {
  if (!term.encoded || format.identity())
    return codec::all_finite(dtype, {term.data, elements * size_of(dtype)});
  scratch.reserve(elements * sizeof(float));
  const std::span values(reinterpret_cast<float*>(scratch.data()), elements);
  add_term(format, true, {term.data, 1.0f, true}, elements, values);
  return codec::all_finite(DataType::f32, std::as_bytes(values));
}

}  // namespace leeway::collective
