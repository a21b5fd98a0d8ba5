// One line on a terminal that is overwritten while work goes on, and erased when it is done.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace leeway::tools::codecs {

class ProgressLine {
 public:
  // Nothing is shown unless `stream` is a terminal.
  explicit ProgressLine(std::FILE* stream)
      : stream_(::isatty(::fileno(stream)) == 1 ? stream : nullptr) {}
  ~ProgressLine() { show(""); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const std::string& text) {
    if (stream_ == nullptr) return;
    std::fprintf(stream_, "\r%s\x1b[K", text.c_str());  // erases what is left of a longer line
    std::fflush(stream_);
  }

 private:
  std::FILE* stream_;
};

}  // namespace leeway::tools::codecs
