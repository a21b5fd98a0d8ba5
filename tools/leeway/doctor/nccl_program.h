// Finds out how a program uses NCCL. That decides whether preloading Leeway's libnccl.so.2 has an
// effect on it.
#pragma once

#include <cstdint>
#include <string>

#include "doctor/report.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway::tools::doctor {

enum class NcclUse : std::uint8_t {
  none = 0,   // not in this file
  needed,     // the loader looks for libnccl.so.2, or for a library that needs it
  opened,     // the program itself opens it, by a name that it contains
  linked_in,  // NCCL is a part of the program
};

// Returns how one ELF file uses NCCL, without looking at the libraries that the file needs. Returns
// kInvalidArgument for anything but an ELF file of 64 bits.
Result<NcclUse> nccl_use_of(ByteSpan file);

// Adds findings on how a program uses NCCL. Looks at the program's own file, and at all libraries
// that the loader would load for it.
void probe_nccl_program(const std::string& path, Findings& findings);

}  // namespace leeway::tools::doctor
