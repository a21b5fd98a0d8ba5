// Explicit congestion notification (RFC 3168): queues mark datagrams that they would drop later.
#pragma once

#include "leeway/options.h"

namespace leeway {

// Whether senders under this control slow down for marks. Only they may say in what they send that
// it can be marked.
constexpr bool slows_for_marks(CongestionControl control) {
  return control == CongestionControl::scavenger || control == CongestionControl::wan ||
         control == CongestionControl::fabric;
}

}  // namespace leeway
