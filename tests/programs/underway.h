// One rank's call: its memory, and how it is waited for.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "programs/library.h"

namespace leeway::programs {

inline constexpr std::size_t kGuard = 64;
inline constexpr std::byte kGuardByte{0xA5};
inline constexpr std::byte kEmptyByte{0x00};

// Memory with a guard on either side.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::size_t bytes, std::size_t shift)
      : bytes_(bytes), shift_(shift), memory_(bytes + 2 * kGuard + shift + kGuard, kGuardByte) {
    std::fill_n(data(), bytes_, kEmptyByte);
  }
  std::byte* data() {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
    return memory_.data() + (kGuard - begin % kGuard) + kGuard + shift_;
  }
  bool whole() {
    if (memory_.empty()) return true;
    const std::byte* const from = data();
    const std::byte* const to = from + bytes_;
    const std::byte* const end = memory_.data() + memory_.size();
    const auto is_guard = [](std::byte one) { return one == kGuardByte; };
    return std::all_of(from - kGuard, from, is_guard) && std::all_of(to, end, is_guard);
  }

 private:
  std::size_t bytes_ = 0;
  std::size_t shift_ = 0;
  std::vector<std::byte> memory_;
};

inline testing::TypedTensor copy_of(DataType type, const void* data, std::size_t count) {
  testing::TypedTensor tensor(type, count);
  if (count > 0) std::memcpy(tensor.view().data, data, count * size_of(type));
  return tensor;
}

// A rank's call in a mismatch step. Its input is zeros, and its result is not checked.
struct PlainCall {
  PlainCall(const Step& drawn, int rank, int size)
      : step(drawn),
        extent(extent_of(step, rank, size)),
        values(std::max(extent.input, step.count * static_cast<std::size_t>(size))),
        results(std::max(extent.output, values.size())) {
    const std::size_t all = step.count * static_cast<std::size_t>(size);
    const auto elements = [&](bool whole) { return whole ? all : step.count; };
    const bool shares_out = step.kind == Kind::reduce_scatter || step.kind == Kind::scatter;
    const bool collects = step.kind == Kind::all_gather || step.kind == Kind::gather;
    const bool both = step.kind == Kind::all_to_all;
    const bool blocks = both && step.uneven;
    call.step = &step;
    call.rank = rank;
    call.size = size;
    call.extent = &extent;
    call.input = {values.data(), blocks ? extent.input : elements(shares_out || both), step.type};
    call.output = {results.data(), blocks ? extent.output : elements(collects || both), step.type};
  }
  PlainCall(const PlainCall&) = delete;
  PlainCall& operator=(const PlainCall&) = delete;

  const Step step;
  const Extent extent;
  std::vector<double> values;  // 8 bytes an element: room for any type
  std::vector<double> results;
  Call call;
};

struct Underway {
  const Step* step = nullptr;
  int number = 0;  // number of the step
  int rank = 0;
  int size = 1;
  int due = 0;
  Way::How how = Way::How::blocking;
  Extent extent;
  Buffer input;
  Buffer output;
  testing::TypedTensor sent;
  testing::TypedTensor before;  // lossy calls: content of the output before
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<Buffer> parts;  // memory of messages
  std::vector<std::size_t> envelopes;
  Call call;
  std::unique_ptr<PlainCall> plain;  // mismatches only: the call in place of `call`
  std::unique_ptr<Flight> flight;
  std::chrono::steady_clock::time_point begun;
  // Set by the callback of on_done().
  std::mutex mutex;
  std::condition_variable told;
  std::unique_ptr<Outcome> outcome;
};

}  // namespace leeway::programs
