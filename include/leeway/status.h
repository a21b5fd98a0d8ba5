// Errors as values: Status and Result<T>.
//
// Every call that can fail returns a Status or a Result<T>, in the public API and in the library's
// own rooms. A Status carries a code for programs and one line of text for people (what went wrong,
// where, what to do). Neither type allocates, so they may be produced on the datapath. Packet loss,
// lateness and duplicates never become a Status: a CollectiveReport counts them.
#pragma once

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "leeway/export.h"

namespace leeway {
inline namespace v0 {

// Kinds of failure, for programs to tell apart.
enum class StatusCode : std::uint8_t {
  kOk = 0,           // success
  kInvalidArgument,  // the caller's argument is wrong; no element was sent
  // Two ranks disagree (size, dtype, codec, version, ...), and the text names both sides. Or a live
  // peer refused the call or failed in it, and the text names the peer
  kMismatch,
  // An exact operation was not complete in time; the text names rank, operation, peer, deadline
  kDeadlineExceeded,
  kPeerLost,           // a peer said good-bye or its process is gone
  kUnavailable,        // rendezvous or network resource not reachable; trying again may help
  kResourceExhausted,  // a limit of limits.h or of the machine was reached
  kUnsupported,        // the combination asked for has no meaning or is not built in
  kCancelled,          // the communicator was shut down while the operation was in flight
  kInternal,           // a defect of Leeway
};

// The code's name without the leading k, in snake case: "deadline_exceeded".
LEEWAY_EXPORT std::string_view to_string(StatusCode code);

// One outcome. Default-constructed means success. Copies are cheap and allocate nothing.
class [[nodiscard]] Status {
 public:
  // Longest text, in bytes.
  static constexpr std::size_t kTextMax = 316;

  // Success.
  Status() { text_[0] = '\0'; }
  Status(const Status& other) : code_(other.code_) { copy_text(other); }
  Status& operator=(const Status& other) {
    if (this == &other) return *this;
    code_ = other.code_;
    copy_text(other);
    return *this;
  }
  ~Status() = default;

  // Makes an error with printf-style text. Text beyond kTextMax bytes is cut.
  [[gnu::format(printf, 2, 3)]] static Status error(StatusCode code, const char* format, ...) {
    Status status;
    status.code_ = code;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(status.text_.data(), status.text_.size(), format, arguments);
    va_end(arguments);
    return status;
  }

  // Returns true for success.
  bool ok() const { return code_ == StatusCode::kOk; }
  // Kind of failure, for programs.
  StatusCode code() const { return code_; }
  // One line for people, empty for success. Valid for the life of this object.
  std::string_view text() const { return text_.data(); }
  const char* c_str() const { return text_.data(); }

 private:
  // Does not copy the text of a success. The datapath makes and copies successes, so each costs
  // only two stores.
  void copy_text(const Status& other) {
    text_[0] = '\0';
    if (!other.ok())
      std::char_traits<char>::copy(text_.data(), other.c_str(), other.text().size() + 1);
  }

  StatusCode code_ = StatusCode::kOk;
  std::array<char, kTextMax + 1> text_;  // valid up to its terminating zero; the rest is never read
};

// Either a value or the Status that explains its absence. Taking the value of a failed Result
// aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  // A success with its value.
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;`
  Result(T value) : has_value_(true) { new (&storage_) T(std::move(value)); }
  // Aborts if `status` is ok: a success without a value.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(const Status& status) : status_(status) {
    if (status_.ok()) std::abort();
  }
  // Copies and moves like its value.
  Result(Result&& other) noexcept : status_(other.status_), has_value_(other.has_value_) {
    if (has_value_) new (&storage_) T(std::move(other.get()));
  }
  Result(const Result& other) : status_(other.status_), has_value_(other.has_value_) {
    if (has_value_) new (&storage_) T(other.get());
  }
  Result& operator=(Result other) noexcept {
    destroy();
    status_ = other.status_;
    has_value_ = other.has_value_;
    if (has_value_) new (&storage_) T(std::move(other.get()));
    return *this;
  }
  ~Result() { destroy(); }

  // Returns true if there is a value.
  bool ok() const { return has_value_; }
  // The reason why there is no value, or ok if there is a value.
  const Status& status() const { return status_; }

  // The value. Without one, the process aborts and writes the status's text to standard error.
  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T&& value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

 private:
  T& get() { return *std::launder(reinterpret_cast<T*>(&storage_)); }
  const T& get() const { return *std::launder(reinterpret_cast<const T*>(&storage_)); }
  T& checked() {
    if (!has_value_) {
      std::fprintf(stderr, "leeway: value of a failed Result used: %s\n", status_.c_str());
      std::abort();
    }
    return get();
  }
  void destroy() {
    if (has_value_) get().~T();
    has_value_ = false;
  }

  Status status_;
  bool has_value_ = false;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
  alignas(T) unsigned char storage_[sizeof(T)];
};

}  // namespace v0
}  // namespace leeway
