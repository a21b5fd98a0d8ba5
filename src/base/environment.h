// The variables of this process, all of them. getenv() is enough for one whose name is known.
#pragma once

namespace leeway {

// "NAME=value" each, ends with null. Never null itself. As getenv(), beside nobody who changes
// them. What was opened along with this library, and reads `environ` by itself (UCX does), sees the
// same until somebody changes them.
const char* const* environment();

}  // namespace leeway
