/* The functions behind all versions of the plugin, in a table that libleeway_nccl.so.0 hands to
   libnccl-net-leeway.so.

   Any thread may call all functions. A connection and its requests are used by one thread at a
   time, as NCCL does. No function blocks, except finalize; closing a connection or listener that is
   not done takes some milliseconds. */
#pragma once

#include "interop/nccl_net/abi.h"

/* NOLINTBEGIN(readability-identifier-naming): names of C */

typedef struct leeway_nccl_net_functions {
  leeway_nccl_result (*init)(leeway_nccl_logger logger);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v12* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** listener);
  /* *comm is null until the connection is established. */
  leeway_nccl_result (*connect)(int device, const void* handle, void** comm);
  leeway_nccl_result (*accept)(void* listener, void** comm);
  leeway_nccl_result (*register_memory)(void* comm, void* data, size_t size, int kind,
                                        void** registration);
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  /* *request is null if there is no room for one more request. */
  leeway_nccl_result (*send)(void* comm, void* data, size_t size, void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, const size_t* sizes,
                                void** request);
  leeway_nccl_result (*test)(void* request, int* done, int* size);
  leeway_nccl_result (*close_connection)(void* comm);
  leeway_nccl_result (*close_listen)(void* listener);
  leeway_nccl_result (*finalize)(void);
} leeway_nccl_net_functions;

#ifdef __cplusplus
extern "C" {
#endif
extern const leeway_nccl_net_functions leeway_nccl_net_functions_0;
#ifdef __cplusplus
}
#endif

/* NOLINTEND(readability-identifier-naming) */
