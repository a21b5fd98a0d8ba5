// The styles and scripts that every report page contains. They are compiled into the program.
#pragma once

#include <string_view>

namespace leeway::sim::asset {

std::string_view chart_js();  // Chart.js 3, minified, with its licence in its first lines
std::string_view page_css();
std::string_view page_js();

}  // namespace leeway::sim::asset
