// The files that every page contains. They become part of the program when it is built.
#pragma once

#include <string_view>

namespace leeway::sim::asset {

std::string_view chart_js();  // Chart.js 3, minified, with its licence in its first lines
std::string_view page_css();
std::string_view page_js();

}  // namespace leeway::sim::asset
