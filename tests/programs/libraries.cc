#include "programs/library.h"

namespace leeway::programs {

std::unique_ptr<Library> library_of(const Program& program, const Meeting& meeting) {
  switch (program.front) {
    case Front::cpp:
      return cpp_library();
    case Front::c:
      return c_library(meeting, program.route == Route::sealed);
    case Front::nccl:
      return nccl_library(program, meeting);
  }
  return nullptr;
}

}  // namespace leeway::programs
