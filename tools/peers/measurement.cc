#include "measurement.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace peers {
namespace {

[[noreturn]] void refuse(const char* what, const char* value) {
  std::fprintf(stderr, "error: %s '%s'\n", what, value);
  std::exit(2);
}

long parse_number(const char* text, long least) {
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least) refuse("not a number that can be:", text);
  return value;
}

long parse_positive(const char* text) {
  return parse_number(text, 1);
}

std::vector<std::size_t> parse_sizes(const char* text) {
  std::vector<std::size_t> sizes;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');)
    sizes.push_back(parse_positive(item.c_str()));
  if (sizes.empty()) refuse("no sizes in", text);
  return sizes;
}

// Returns a small integer, so that a float32 sum over up to 1000 ranks is exact in any order.
float element(int rank, std::size_t index) {
  return static_cast<float>((index * 7 + static_cast<std::size_t>(rank) * 13) % 61);
}

double percentile(const std::vector<double>& sorted, double fraction) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(fraction * last + 0.5)];
}

std::size_t count_wrong(const AllReducer& reducer, const std::vector<float>& output) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < output.size(); ++i) {
    float expected = 0;
    for (int rank = 0; rank < reducer.size(); ++rank) expected += element(rank, i);
    wrong += output[i] != expected;
  }
  return wrong;
}

double time_call_us(AllReducer& reducer, int calls, const std::vector<float>& input,
                    std::vector<float>& output) {
  reducer.barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) reducer.sum(input.data(), output.data(), input.size());
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
  return time.count() / calls;
}

void print(const AllReducer& reducer, const std::string& name, std::size_t bytes,
           std::vector<double> times_us) {
  std::sort(times_us.begin(), times_us.end());
  const double p50 = percentile(times_us, 0.50);
  const double ranks = reducer.size();
  const double busbw = static_cast<double>(bytes) / p50 / 1e3 * 2 * (ranks - 1) / ranks;
  std::printf(
      "{\"peer\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"iterations\":%zu,\"time_us_p50\":%.2f,"
      "\"time_us_p99\":%.2f,\"busbw_GBps\":%.4f}\n",
      name.c_str(), reducer.size(), bytes, times_us.size(), p50, percentile(times_us, 0.99), busbw);
  std::fflush(stdout);
}

bool measure_size(AllReducer& reducer, const std::string& name, const Arguments& arguments,
                  std::size_t bytes) {
  std::vector<float> input(std::max<std::size_t>(1, bytes / sizeof(float)));
  std::vector<float> output(input.size());
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = element(reducer.rank(), i);
  const int calls = arguments.back_to_back;
  for (int i = 0; i < arguments.warmup; ++i) time_call_us(reducer, calls, input, output);
  std::vector<double> times_us(arguments.iterations);
  for (double& time_us : times_us) time_us = time_call_us(reducer, calls, input, output);
  times_us.push_back(static_cast<double>(count_wrong(reducer, output)));
  reducer.maximum(times_us);
  const double wrong = times_us.back();
  times_us.pop_back();
  if (reducer.rank() == 0) {
    if (wrong > 0)
      std::fprintf(stderr, "%s: %g wrong elements at %zu bytes\n", name.c_str(), wrong, bytes);
    print(reducer, name, bytes, std::move(times_us));
  }
  return wrong == 0;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) refuse("no value for", argv[i]);
    const std::string name = argv[i];
    if (name == "--ranks")
      arguments.ranks = static_cast<int>(parse_positive(argv[i + 1]));
    else if (name == "--iters")
      arguments.iterations = static_cast<int>(parse_positive(argv[i + 1]));
    else if (name == "--warmup")
      arguments.warmup = static_cast<int>(parse_positive(argv[i + 1]));
    else if (name == "--back-to-back")
      arguments.back_to_back = static_cast<int>(parse_positive(argv[i + 1]));
    else if (name == "--sizes")
      arguments.sizes = parse_sizes(argv[i + 1]);
    else if (name == "--rank")
      arguments.rank = static_cast<int>(parse_number(argv[i + 1], 0));
    else if (name == "--address")
      arguments.address = argv[i + 1];
    else if (name == "--store")
      arguments.store = argv[i + 1];
    else
      refuse("unknown option", argv[i]);
  }
  if (arguments.rank >= arguments.ranks) refuse("no such", "--rank");
  if (arguments.rank >= 0 && arguments.store.empty()) refuse("--rank needs", "--store");
  return arguments;
}

bool measure(AllReducer& reducer, const std::string& name, const Arguments& arguments) {
  bool right = true;
  for (const std::size_t bytes : arguments.sizes)
    right &= measure_size(reducer, name, arguments, bytes);
  return right;
}

}  // namespace peers
