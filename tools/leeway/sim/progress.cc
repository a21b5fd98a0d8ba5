#include "sim/progress.h"

#include <cmath>

#include "format.h"

namespace leeway::tools::simulation {
namespace {

// Least time between two lines; faster ones cannot be read.
constexpr std::chrono::milliseconds kBetweenLines{100};

std::string time_text(double seconds) {
  const auto whole = static_cast<unsigned long>(std::lround(seconds));
  if (whole < 60) return format("%lu s", whole);
  if (whole < 3600) return format("%lu min %lu s", whole / 60, whole % 60);
  return format("%lu h %lu min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_text(const RunProgress& progress) {
  const std::size_t done = progress.runs_kept + progress.runs_finished;
  std::string text = format("%zu of %zu runs", done, progress.runs_total);
  if (progress.rounds > 0) {
    text += format(", round %u of %u", progress.round, progress.rounds);
  }
  if (progress.runs_finished > 0 && done < progress.runs_total) {
    const double of_one = progress.seconds / static_cast<double>(progress.runs_finished);
    text += ", " + time_text(of_one * static_cast<double>(progress.runs_total - done)) + " left";
  }
  return text;
}

ProgressDisplay::ProgressDisplay(std::FILE* stream, std::size_t runs_total, std::size_t runs_kept) {
  progress_.runs_total = runs_total;
  progress_.runs_kept = runs_kept;
  if (stream != nullptr) line_ = std::make_unique<codecs::ProgressLine>(stream);
}

void ProgressDisplay::on_round(std::uint32_t done, std::uint32_t rounds) {
  progress_.round = done;
  progress_.rounds = rounds;
  show();
}

void ProgressDisplay::on_finished() {
  ++progress_.runs_finished;
  show();
}

void ProgressDisplay::erase() {
  if (line_) line_->show("");
}

void ProgressDisplay::show() {
  const Clock::time_point now = Clock::now();
  if (!line_ || now < next_) return;
  next_ = now + kBetweenLines;
  progress_.seconds = std::chrono::duration<double>(now - begin_).count();
  line_->show(progress_text(progress_));
}

}  // namespace leeway::tools::simulation
