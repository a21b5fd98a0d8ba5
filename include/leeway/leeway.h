// Includes every public header of the C++ interface.
#pragma once

#include "leeway/adam_state.h"      // IWYU pragma: export
#include "leeway/codec.h"           // IWYU pragma: export
#include "leeway/communicator.h"    // IWYU pragma: export
#include "leeway/compute_budget.h"  // IWYU pragma: export
#include "leeway/late_work.h"       // IWYU pragma: export
#include "leeway/message.h"         // IWYU pragma: export
#include "leeway/options.h"         // IWYU pragma: export
#include "leeway/payload.h"         // IWYU pragma: export
#include "leeway/rendezvous.h"      // IWYU pragma: export
#include "leeway/replica.h"         // IWYU pragma: export
#include "leeway/report.h"          // IWYU pragma: export
#include "leeway/shapes.h"          // IWYU pragma: export
#include "leeway/status.h"          // IWYU pragma: export
#include "leeway/transport.h"       // IWYU pragma: export
#include "leeway/types.h"           // IWYU pragma: export
#include "leeway/version.h"         // IWYU pragma: export
