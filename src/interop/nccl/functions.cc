#include "interop/nccl/functions.h"

#include "interop/nccl/calls.h"

extern "C" __attribute__((visibility("default")))
const leeway_nccl_functions leeway_nccl_functions_0 = {
#define LEEWAY_NCCL_ENTRY(name, parameters, arguments) .name = leeway::nccl::calls::name,
#define LEEWAY_NCCL_OTHER_ENTRY(type, name, parameters, arguments, failed) \
  .name = leeway::nccl::calls::name,
    LEEWAY_NCCL_FUNCTIONS(LEEWAY_NCCL_ENTRY, LEEWAY_NCCL_OTHER_ENTRY)};
