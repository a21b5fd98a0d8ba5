// Runs a check once for every instruction set that was compiled in and that this processor has.
#pragma once

#include <gtest/gtest.h>

#include "codec/instruction_sets.h"

namespace leeway::codec {

template <typename Check>
void for_each_supported_target(Check check) {
  for (const InstructionSet& set : instruction_sets()) {
    SCOPED_TRACE(set.name);
    const RunOn chosen(set);
    check();
  }
}

}  // namespace leeway::codec
