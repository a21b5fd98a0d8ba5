#include "interop/nccl/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "interop/nccl/debug.h"

namespace leeway::nccl {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      out += '?';
    } else {
      out += c;
    }
  }
  return out + '"';
}

[[gnu::format(printf, 2, 3)]] void add(std::string& line, const char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  line += text.data();
}

void add_report(std::string& line, const CollectiveReport& report) {
  constexpr double kMicro = 1e3;
  add(line, ",\"us\":%.1f,\"bytes_sent\":%llu,\"loss\":%.9g,\"loss_first_pass\":%.9g",
      static_cast<double>(report.times.total.count()) / kMicro,
      static_cast<unsigned long long>(report.bytes_sent), report.loss, report.loss_first_pass);
  add(line, ",\"codec\":%s,\"complete\":%s,\"deadline_cut\":%s",
      in_quotes(to_string(report.codec)).c_str(), report.complete ? "true" : "false",
      report.deadline_cut ? "true" : "false");
  if (report.noise.measured)
    add(line, ",\"gradient_to_noise\":%.6g",
        report.noise.ratio > 1e300 ? 1e300 : report.noise.ratio);
}

}  // namespace

std::string trace_line(const Trace::Where& where, const Operation& operation,
                       const Result<CollectiveReport>& outcome) {
  std::string line = "{\"comm\":" + in_quotes(where.communicator);
  add(line, ",\"ordinal\":%llu,\"rank\":%d,\"size\":%d",
      static_cast<unsigned long long>(where.ordinal), where.rank, where.size);
  line += ",\"operation\":" + in_quotes(name_of(operation.kind));
  line += ",\"type\":" + in_quotes(to_string(operation.type));
  add(line, ",\"count\":%zu", operation.count);
  if (reduces(operation.kind)) line += ",\"op\":" + in_quotes(to_string(operation.options.op));
  if (has_root(operation.kind)) add(line, ",\"root\":%u", unsigned{operation.peer});
  if (is_message(operation.kind)) add(line, ",\"peer\":%u", unsigned{operation.peer});
  line += ",\"delivery\":" + in_quotes(to_string(operation.options.delivery.kind));
  if (outcome.ok()) {
    add_report(line, *outcome);
  } else {
    line += ",\"error\":" + in_quotes(outcome.status().text());
  }
  return line + "}\n";
}

Status Trace::open(const std::string& file) {
  if (file.empty()) return Status();
  file_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ >= 0) return Status();
  return Status::error(StatusCode::kInvalidArgument,
                       "LEEWAY_NCCL_TRACE=\"%.120s\" cannot be written: %s", file.c_str(),
                       std::strerror(errno));
}

void Trace::write(const Where& where, const Operation& operation,
                  const Result<CollectiveReport>& outcome) const {
  const std::string line = trace_line(where, operation, outcome);
  // A full disk must not end a training run.
  const ssize_t written = ::write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size()) || told_.exchange(true)) return;
  say(std::string("LEEWAY_NCCL_TRACE lacks lines from now on: ") +
      (written < 0 ? std::strerror(errno) : "the disk is full"));
}

}  // namespace leeway::nccl
