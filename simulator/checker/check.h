// Counts how often one invariant was checked and how often it was broken, and keeps a text about
// the first failure.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <string>

#include "run/run_record.h"

namespace leeway::sim {

// printf-style.
[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);

class Check {
 public:
  Check(std::string id, std::string title) : id_(std::move(id)), title_(std::move(title)) {}

  void skip() { skipped_ = true; }
  // Notes why this run cannot check the invariant. The first reason stays.
  void rule_out(std::string reason);

  // Notes that this run can check the invariant after all.
  void rule_in() { reason_.clear(); }

  bool on() const { return !skipped_ && reason_.empty(); }

  // `text()` says what is wrong. It is called for the first violation only.
  template <typename Text>
  void expect(bool good, Text&& text) {
    ++checked_;
    if (!good && failures_++ == 0) first_failure_ = text();
  }

  std::uint64_t failures() const { return failures_; }
  CheckRecord record() const;

 private:
  std::string id_;
  std::string title_;
  std::string reason_;
  bool skipped_ = false;
  std::uint64_t checked_ = 0;
  std::uint64_t failures_ = 0;
  std::string first_failure_;
};

}  // namespace leeway::sim
