// C functions for contributions that are carried into the next round.
#include "leeway/c/late_work.h"

#include <cstddef>

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

struct leeway_late_work {
  leeway::LateWork value;
};

using namespace leeway;
using namespace leeway::c_abi;

namespace {

// Checks that the caller's options have the members that add_to() sets.
Status check_members(const leeway_collective_options& options) {
  constexpr std::size_t kEnd =
      offsetof(leeway_collective_options, confirm_use) + sizeof(options.confirm_use);
  if (options.size >= kEnd) return Status();
  return Status::error(StatusCode::kInvalidArgument,
                       "leeway_collective_options.size is %zu, too short for confirm_use (%zu)",
                       options.size, kEnd);
}

}  // namespace

leeway_status leeway_late_work_create(std::size_t count, leeway_late_work** late) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "late", late));
    *late = new leeway_late_work{LateWork(count)};
    return Status();
  });
}

void leeway_late_work_free(leeway_late_work* late) {
  delete late;
}

leeway_status leeway_late_work_add_to(leeway_late_work* late, float* gradient, std::size_t count,
                                      leeway_collective_options* options) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "late", late));
    LEEWAY_C_TRY(must_be_there(name, "gradient", gradient, count));
    LEEWAY_C_TRY(must_be_there(name, "options", options));
    auto read = call_of(options);
    if (!read.ok()) return read.status();
    LEEWAY_C_TRY(check_members(*options));
    LEEWAY_C_TRY(late->value.add_to({gradient, count}, read->options));
    options->owner_weights = read->options.owner_weights.data();
    options->owner_weight_count = read->options.owner_weights.size();
    options->confirm_use = read->options.confirm_use;
    return Status();
  });
}

leeway_status leeway_late_work_keep(leeway_late_work* late, const leeway_report* report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "late", late));
    LEEWAY_C_TRY(must_be_there(name, "report", report));
    late->value.keep(report->value);
    return Status();
  });
}

leeway_status leeway_late_work_statistics_of(const leeway_late_work* late,
                                             leeway_late_work_statistics* statistics) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "late", late));
    LEEWAY_C_TRY(must_be_there(name, "statistics", statistics));
    const LateWorkStatistics& from = late->value.statistics();
    const leeway_late_work_statistics out = {sizeof(leeway_late_work_statistics),
                                             from.missed,
                                             from.carried,
                                             from.dropped,
                                             from.elements_carried,
                                             from.weight_carried};
    return write_sized("leeway_late_work_statistics", out, statistics);
  });
}
