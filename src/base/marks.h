// Explicit congestion notification (RFC 3168): queues mark datagrams before they must drop any.
#pragma once

#include "leeway/options.h"

namespace leeway {

// Returns whether senders under this control slow down for marks. Only such senders may declare
// their datagrams markable.
constexpr bool slows_for_marks(CongestionControl control) {
  return control == CongestionControl::scavenger || control == CongestionControl::wan ||
         control == CongestionControl::fabric;
}

}  // namespace leeway
