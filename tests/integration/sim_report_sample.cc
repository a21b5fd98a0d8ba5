// Writes sample reports for the browser test, and for looking at the page: sim_report_sample FOLDER
// makes sweep.html, default.html, single.html, long.html and failed.html from made-up runs.
#include <cstdio>
#include <fstream>
#include <string>

#include "report/report.h"
#include "unit/sim_report/made_up_runs.h"

namespace {

using namespace leeway::sim;

bool write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) std::fprintf(stderr, "error: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

// Makes a report without plots in its scenario, so that the page chooses some.
ReportInput made_up_default_sweep() {
  ReportInput input = made_up_sweep();
  input.scenario.clear_report();
  return input;
}

ReportInput made_up_failure() {
  ReportInput input = made_up_single(20, 1);
  input.cells[0].runs[0] = made_up_run({.rounds = 20, .breaks = true}, 1);
  input.complete = false;
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sim_report_sample FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  const bool written = write(folder + "/sweep.html", report_html(made_up_sweep())) &&
                       write(folder + "/default.html", report_html(made_up_default_sweep())) &&
                       write(folder + "/single.html", report_html(made_up_single(200, 3))) &&
                       write(folder + "/long.html", report_html(made_up_single(3000, 1))) &&
                       write(folder + "/failed.html", report_html(made_up_failure()));
  return written ? 0 : 1;
}
