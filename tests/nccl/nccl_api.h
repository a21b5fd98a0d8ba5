// NCCL's interface as a program sees it: NVIDIA's nccl.h if CMake finds it, otherwise the drop-in's
// own declarations under the same names. unit/nccl/abi_test.cc compares the two.
#pragma once

#include <cstdint>

#ifdef LEEWAY_HAVE_NCCL_H

#include <nccl.h>

inline void set_name(ncclConfig_t& config, const char* name) {
  config.commName = name;
}

#else

#include <climits>

#include "interop/nccl/functions.h"

using ncclResult_t = leeway_nccl_result;
using ncclComm_t = leeway_nccl_comm;
using ncclUniqueId = leeway_nccl_id;
using ncclConfig_t = leeway_nccl_config;
using ncclDataType_t = leeway_nccl_enum;
using ncclRedOp_t = leeway_nccl_enum;
using ncclScalarResidence_t = leeway_nccl_enum;
using ncclWindow_t = leeway_nccl_window;
using ncclSimInfo_t = leeway_nccl_sim_info;
using cudaStream_t = leeway_nccl_stream;

enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
  ncclFloat8e4m3 = 10,
  ncclFloat8e5m2 = 11,
  ncclNumTypes = 12
};
enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4, ncclNumOps = 5 };
enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 };
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_SHRINK_DEFAULT 0
#define NCCL_SHRINK_ABORT 1
#define NCCL_WIN_DEFAULT 0
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_INITIALIZER                                                                    \
  {                                                                                                \
    sizeof(ncclConfig_t), 0xcafebeef, 23000, INT_MIN, INT_MIN, INT_MIN, INT_MIN, nullptr, INT_MIN, \
        INT_MIN, nullptr, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN, INT_MIN,  \
        INT_MIN, INT_MIN                                                                           \
  }

extern "C" {
#define LEEWAY_NCCL_NAME(name, parameters, arguments) leeway_nccl_result nccl##name parameters;
#define LEEWAY_NCCL_OTHER_NAME(type, name, parameters, arguments, failed) \
  type nccl##name parameters;
LEEWAY_NCCL_FUNCTIONS(LEEWAY_NCCL_NAME, LEEWAY_NCCL_OTHER_NAME)
#undef LEEWAY_NCCL_NAME
#undef LEEWAY_NCCL_OTHER_NAME
}

inline void set_name(ncclConfig_t& config, const char* name) {
  config.comm_name = name;
}

#endif

extern "C" {
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclParamGetAllParameterKeys(const char*** table, int* count);
ncclResult_t ncclParamGetParameter(const char* key, const char** value, int* length);
#if defined(NCCL_VERSION_CODE) && NCCL_VERSION_CODE < 22907
ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, std::uint64_t* value);
#endif
}
