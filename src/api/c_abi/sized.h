// Reads and writes structs whose first member is their size, for programs and libraries of
// different versions.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "leeway/status.h"

namespace leeway::c_abi {

// Limit on the size of a struct in bytes. Every version of every struct consists of whole words and
// is far smaller than this. So a program that gives any other size has not set it.
inline constexpr std::size_t kStructBytesMax = 4096;

inline Status check_size(const char* name, std::size_t size) {
  if (size >= sizeof(std::size_t) && size % sizeof(std::size_t) == 0 && size <= kStructBytesMax)
    return Status();
  return Status::error(StatusCode::kInvalidArgument,
                       "%s.size is %zu, which no version had: begin with the struct's _INIT", name,
                       size);
}

// Returns the caller's struct in this library's version. Members that a shorter struct lacks stay
// as in `defaults`. Returns kInvalidArgument if a longer struct sets a member that this library
// does not know.
template <typename T>
Result<T> read_sized(const char* name, const T* given, const T& defaults) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::size_t) == 0);
  if (given == nullptr) return defaults;
  const std::size_t size = given->size;
  if (Status status = check_size(name, size); !status.ok()) return status;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return Status::error(StatusCode::kInvalidArgument,
                         "%s has %zu bytes, this library knows %zu of them, and byte %zu is not 0: "
                         "the program asks for what a newer Leeway does",
                         name, size, sizeof(T), i);
  }
  T read = defaults;
  std::memcpy(static_cast<void*>(&read), given, std::min(size, sizeof(T)));
  read.size = sizeof(T);
  return read;
}

// Writes `value` into the caller's struct `out`, up to the size that the struct states.
template <typename T>
Status write_sized(const char* name, const T& value, T* out) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::size_t) == 0);
  const std::size_t size = out->size;
  if (Status status = check_size(name, size); !status.ok()) return status;
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  if (size > sizeof(T)) std::memset(bytes + sizeof(T), 0, size - sizeof(T));
  std::memcpy(bytes, &value, std::min(size, sizeof(T)));
  std::memcpy(bytes, &size, sizeof size);
  return Status();
}

}  // namespace leeway::c_abi
