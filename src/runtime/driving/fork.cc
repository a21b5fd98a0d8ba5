#include "driving/fork.h"

namespace leeway::driving {

Status forked() {
  return Status::error(StatusCode::kUnavailable,
                       "this process was forked from the one that made the communicator, and has "
                       "none of its threads: make communicators after fork()");
}

}  // namespace leeway::driving
