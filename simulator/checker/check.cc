#include "checker/check.h"

#include <array>
#include <cstdio>

namespace leeway::sim {

std::string format_text(const char* format, ...) {
  std::array<char, 400> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return text.data();
}

void Check::rule_out(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
}

CheckRecord Check::record() const {
  CheckRecord record{.id = id_,
                     .title = title_,
                     .verdict = Verdict::passed,
                     .checked = checked_,
                     .failures = failures_,
                     .first_failure = first_failure_};
  if (skipped_) {
    record.verdict = Verdict::skipped;
    record.first_failure = "the scenario skips it";
  } else if (failures_ > 0) {
    record.verdict = Verdict::failed;
  } else if (!reason_.empty() || checked_ == 0) {
    record.verdict = Verdict::not_applicable;
    record.first_failure = reason_.empty() ? "nothing of the kind happened" : reason_;
  }
  return record;
}

}  // namespace leeway::sim
