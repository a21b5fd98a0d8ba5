#include "transport/ucx/report.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "transport/ucx/worker.h"

namespace leeway::transport {
namespace {

template <typename Print>
std::string text_of(Print print) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string copy(text, bytes);
  std::free(text);
  return copy;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(' '); at < line.size();
       at = line.find_first_not_of(' ', at)) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(words_of(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

namespace internal {

// Parses lines such as "#      resource 4  :  md 3  dev 3  flags -- posix/memory"
std::vector<std::string> resources_in(std::string_view text) {
  std::vector<std::string> names;
  for_each_line(text, [&](const std::vector<std::string_view>& words) {
    if (words.size() < 3 || words[1] != "resource" ||
        words.back().find('/') == std::string_view::npos)
      return;
    names.emplace_back(words.back());
  });
  return names;
}

// Parses lines such as
//   "#                 lane[0]:  2:posix/memory.0 md[1]     -> md[1]/posix/sysdev[255] am am_bw#0"
std::vector<std::string> lanes_in(std::string_view text) {
  std::vector<std::string> names;
  for_each_line(text, [&](const std::vector<std::string_view>& words) {
    if (words.size() < 3 || !words[1].starts_with("lane[")) return;
    if (std::find(words.begin(), words.end(), "am") == words.end()) return;
    std::string_view name = words[2];
    name.remove_prefix(std::min(name.find(':') + 1, name.size()));
    if (name.find('/') == std::string_view::npos) return;
    names.emplace_back(name.substr(0, name.rfind('.')));
  });
  return names;
}

}  // namespace internal

Result<std::vector<UcxResource>> list_ucx_transports() {
  UcxWorker worker;
  if (Status status = worker.open(); !status.ok()) return status;
  std::vector<UcxResource> resources;
  for (const std::string& name : ucx_resources(worker.context())) {
    const std::size_t slash = name.find('/');
    resources.push_back({name.substr(0, slash), name.substr(slash + 1)});
  }
  return resources;
}

std::vector<std::string> ucx_resources(ucp_context_h context) {
  return internal::resources_in(
      text_of([&](std::FILE* stream) { ucp_context_print_info(context, stream); }));
}

std::vector<std::string> ucx_lanes(ucp_ep_h endpoint) {
  return internal::lanes_in(
      text_of([&](std::FILE* stream) { ucp_ep_print_info(endpoint, stream); }));
}

}  // namespace leeway::transport
