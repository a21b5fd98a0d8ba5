#include "codec/float_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace leeway::tools::codecs {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

constexpr std::size_t kPieceElements = std::size_t{1} << 20;  // 4 MiB

}  // namespace

FloatSource::FloatSource(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), piece_(kPieceElements) {}

FloatSource::FloatSource(FloatSource&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_total_(other.bytes_total_),
      bytes_read_(other.bytes_read_),
      piece_(std::move(other.piece_)) {}

FloatSource::~FloatSource() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
}

Status FloatSource::failure() const {
  return Status::error(StatusCode::kUnavailable, "cannot read %s: %s", path_.c_str(),
                       std::strerror(errno));
}

Status FloatSource::refuse_size() const {
  return Status::error(
      StatusCode::kUnavailable, "%s is not raw float32: its %llu bytes are not a multiple of 4",
      path_.c_str(), static_cast<unsigned long long>(bytes_total_.value_or(bytes_read_)));
}

Result<FloatSource> FloatSource::open(const std::string& path) {
  const bool is_stdin = path == "-";
  FloatSource source(is_stdin ? "standard input" : path,
                     is_stdin ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.descriptor_ < 0) return source.failure();
  struct stat facts {};
  if (::fstat(source.descriptor_, &facts) == 0 && S_ISREG(facts.st_mode)) {
    source.bytes_total_ = static_cast<std::uint64_t>(facts.st_size);
    if (*source.bytes_total_ % sizeof(float) != 0) return source.refuse_size();
  }
  return source;
}

Result<std::span<const float>> FloatSource::next() {
  const auto bytes = std::as_writable_bytes(std::span(piece_));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(descriptor_, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure();
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    bytes_read_ += static_cast<std::uint64_t>(got);
  }
  if (filled % sizeof(float) != 0) return refuse_size();
  return std::span<const float>(piece_).first(filled / sizeof(float));
}

}  // namespace leeway::tools::codecs
