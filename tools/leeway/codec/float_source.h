// A file of raw little-endian float32, read piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "leeway/status.h"

namespace leeway::tools::codecs {

class FloatSource {
 public:
  // Opens the file at `path`; "-" is standard input. Refuses a file whose size is not a multiple of
  // 4 bytes.
  static Result<FloatSource> open(const std::string& path);
  FloatSource(FloatSource&& other) noexcept;
  FloatSource(const FloatSource&) = delete;
  FloatSource& operator=(const FloatSource&) = delete;
  ~FloatSource();

  // Returns the next piece of the file, valid until the next call, or no floats at the end. All
  // pieces but the last one have the same length.
  Result<std::span<const float>> next();

  std::uint64_t bytes_read() const { return bytes_read_; }
  // Returns the file's size, or nullopt if it is not known beforehand, as for a pipe.
  std::optional<std::uint64_t> bytes_total() const { return bytes_total_; }

 private:
  FloatSource(std::string path, int descriptor);
  Status failure() const;  // the error in errno
  Status refuse_size() const;

  std::string path_;
  int descriptor_ = -1;
  std::optional<std::uint64_t> bytes_total_;
  std::uint64_t bytes_read_ = 0;
  std::vector<float> piece_;
};

}  // namespace leeway::tools::codecs
