// All variables of this process's environment. For a variable whose name is known, getenv() is
// enough.
#pragma once

namespace leeway {

// Returns "NAME=value" strings, with a null at the end; never null itself. As with getenv(), nobody
// may change the variables meanwhile. Also sets the `environ` that this library sees, because
// libraries opened along with this one, such as UCX, read it. They see the same variables until
// somebody changes them.
const char* const* environment();

}  // namespace leeway
