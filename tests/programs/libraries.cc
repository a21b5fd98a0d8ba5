#include "programs/library.h"

namespace leeway::programs {

std::unique_ptr<Library> library_of(Front front) {
  (void)front;
  return cpp_library();
}

}  // namespace leeway::programs
