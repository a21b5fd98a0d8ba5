#include "collective/request.h"

#include "collective/message_group.h"

namespace leeway::collective {

void Request::finish(const Status& outcome, Instant now) {
  status = outcome;
  done = true;
  if (member_of != nullptr) member_of->on_done(*this, now);
}

}  // namespace leeway::collective
