// All variables of this process's environment. For a variable whose name is known, getenv() is
// enough.
#pragma once

namespace leeway {

// Returns "NAME=value" strings, with a null at the end; never null itself. As with getenv(), nobody
// may change the variables meanwhile. A library that was opened along with this one and reads
// `environ` by itself (UCX does) sees the same until somebody changes them.
const char* const* environment();

}  // namespace leeway
