// One invariant's tally: how often it was looked at, how often it was broken, and the first time in
// words.
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
  // Why nothing can be looked at in this run. The first reason stays.
  void rule_out(std::string reason);

  // It can be looked at after all.
  void rule_in() { reason_.clear(); }

  bool on() const { return !skipped_ && reason_.empty(); }

  // `text()` tells what is wrong and is asked for the first time only.
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
