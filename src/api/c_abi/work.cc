// C functions for operations in flight.
#include "leeway/c/work.h"

#include "c_abi/handles.h"
#include "c_abi/outcome.h"

using namespace leeway;
using namespace leeway::c_abi;

int32_t leeway_work_done(const leeway_work* work) {
  return work != nullptr && work->value.done();
}

int32_t leeway_work_test(leeway_work* work) {
  return work != nullptr && work->value.test();
}

leeway_status leeway_work_wait(leeway_work* work, leeway_report* report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "work", work));
    return keep(work->value.wait(), report);
  });
}

leeway_status leeway_work_on_done(leeway_work* work, leeway_done_callback callback, void* user) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "work", work));
    LEEWAY_C_TRY(must_be_there(name, "callback", reinterpret_cast<const void*>(callback)));
    work->value.on_done([callback, user] { callback(user); });
    return Status();
  });
}

leeway_status leeway_work_wait_all(leeway_work* const* works, std::size_t count) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "works", works, count));
    Status first;
    for (std::size_t i = 0; i < count; ++i) {
      if (works[i] == nullptr) continue;
      const Status status = Work::wait_all({&works[i]->value, 1});
      if (first.ok()) first = status;
    }
    return first;
  });
}

leeway_status leeway_work_wait_any(leeway_work* const* works, std::size_t count,
                                   std::size_t* index) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "works", works, count));
    LEEWAY_C_TRY(must_be_there(name, "index", index));
    // Work::wait_any() needs the handles in one array. These copies share the operations.
    std::vector<Work> together(count);
    for (std::size_t i = 0; i < count; ++i)
      if (works[i] != nullptr) together[i] = works[i]->value;
    *index = Work::wait_any(together);
    return Status();
  });
}

void leeway_work_free(leeway_work* work) {
  delete work;
}
