// Elements of NCCL's types, written and read as numbers.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl/nccl_api.h"

namespace conformance {

inline constexpr int kTypes = 12;

std::size_t bytes_of(ncclDataType_t type);
bool is_integer(ncclDataType_t type);

// Write and read an element of this type. store() rounds to nearest, ties to even.
void store(ncclDataType_t type, void* memory, std::size_t index, double value);
double load(ncclDataType_t type, const void* memory, std::size_t index);
// Returns the number that load() gives after store().
double rounded(ncclDataType_t type, double value);

class Elements {
 public:
  Elements(ncclDataType_t type, std::size_t count, double value = 0)
      : type_(type), count_(count), memory_(count * bytes_of(type) + 1) {
    for (std::size_t i = 0; i < count; ++i) set(i, value);
  }
  void* data() { return memory_.data(); }
  void* at(std::size_t index) { return memory_.data() + index * bytes_of(type_); }
  std::size_t size() const { return count_; }
  void set(std::size_t index, double value) { store(type_, memory_.data(), index, value); }
  double operator[](std::size_t index) const { return load(type_, memory_.data(), index); }

 private:
  ncclDataType_t type_;
  std::size_t count_;
  std::vector<unsigned char> memory_;
};

}  // namespace conformance
