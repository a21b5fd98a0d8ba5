/* libnccl-net-leeway.so: NCCL's network plugin in its versions 6 to 12, and behind all of them one
   table of functions in libleeway_nccl.so.0.

   NCCL opens a plugin without RTLD_DEEPBIND, and closes it while the threads behind it still run.
   So this file is C, needs the C library alone, and opens Leeway by itself (open_beside.h).
   Leeway's symbols stay local. Leeway is bound to its own symbols first, and is never closed.

   With LEEWAY_NCCL_DIRECT this file is linked with the library, because sanitizers refuse
   RTLD_DEEPBIND. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "interop/nccl_net/functions.h"

#define EXPORTED __attribute__((visibility("default")))

static const char kName[] = "Leeway";

enum { kSuccess = 0, kSystemError = 2, kInternalError = 3 };

#ifdef LEEWAY_NCCL_DIRECT

static const leeway_nccl_net_functions* library(leeway_nccl_logger logger) {
  (void)logger;
  return &leeway_nccl_net_functions_0;
}

#else

#include <stdatomic.h>

#include "interop/nccl/open_beside.h"

enum { kLevelWarn = 2 };
static const unsigned long kNetwork = 0x10; /* NCCL_NET, of messages */

/* Opens the library in leeway/nccl beside this file, where installation puts it, or beside this
   file. */
static const leeway_nccl_net_functions* open_library(leeway_nccl_logger logger) {
  static const char symbol[] = "leeway_nccl_net_functions_0";
  const void* found = open_beside(kName, "leeway/nccl/libleeway_nccl.so.0", symbol);
  if (found == NULL) found = open_beside(kName, "libleeway_nccl.so.0", symbol);
  if (found != NULL) return found;
  if (logger != NULL) {
    logger(kLevelWarn, kNetwork, __FILE__, __LINE__,
           "NET/Leeway : %s. libleeway_nccl.so.0 must lie beside the plugin or in leeway/nccl "
           "there, and what `ldd` names missing must be installed.",
           dlerror());
  }
  return NULL;
}

/* Returns null if opening failed. Threads that come at the same time may open the library twice,
   and find the same table. */
static const leeway_nccl_net_functions* library(leeway_nccl_logger logger) {
  static const leeway_nccl_net_functions* _Atomic opened;
  const leeway_nccl_net_functions* functions = atomic_load_explicit(&opened, memory_order_acquire);
  if (functions == NULL) {
    functions = open_library(logger);
    atomic_store_explicit(&opened, functions, memory_order_release);
  }
  return functions;
}

#endif

#define FORWARD(call)                                               \
  const leeway_nccl_net_functions* const functions = library(NULL); \
  return functions == NULL ? kSystemError : functions->call

/* Functions that all versions share. */

static leeway_nccl_result init_v6(leeway_nccl_logger logger) {
  const leeway_nccl_net_functions* const functions = library(logger);
  return functions == NULL ? kSystemError : functions->init(logger);
}

static leeway_nccl_result devices(int* count) {
  FORWARD(devices(count));
}

static leeway_nccl_result listen_v6(int device, void* handle, void** comm) {
  FORWARD(listen(device, handle, comm));
}

static leeway_nccl_result connect_v6(int device, void* handle, void** comm) {
  FORWARD(connect(device, handle, comm));
}

static leeway_nccl_result accept_v6(void* listener, void** comm) {
  FORWARD(accept(listener, comm));
}

static leeway_nccl_result register_v8(void* comm, void* data, size_t size, int kind,
                                      void** registration) {
  FORWARD(register_memory(comm, data, size, kind, registration));
}

static leeway_nccl_result deregister(void* comm, void* registration) {
  FORWARD(deregister(comm, registration));
}

static leeway_nccl_result send_v9(void* comm, void* data, size_t size, int tag, void* registration,
                                  void** request) {
  (void)tag; /* messages of a connection are matched by their order */
  (void)registration;
  FORWARD(send(comm, data, size, request));
}

static leeway_nccl_result receive_v9(void* comm, int count, void** data, size_t* sizes, int* tags,
                                     void** registrations, void** request) {
  (void)tags;
  (void)registrations;
  FORWARD(receive(comm, count, data, sizes, request));
}

/* Only devices that write to a GPU's memory have something to flush. */
static leeway_nccl_result flush(void* comm, int count, void** data, int* sizes,
                                void** registrations, void** request) {
  (void)comm;
  (void)count;
  (void)data;
  (void)sizes;
  (void)registrations;
  *request = NULL;
  return kSuccess;
}

static leeway_nccl_result test(void* request, int* done, int* sizes) {
  FORWARD(test(request, done, sizes));
}

static leeway_nccl_result close_connection(void* comm) {
  FORWARD(close_connection(comm));
}

static leeway_nccl_result close_listen(void* listener) {
  FORWARD(close_listen(listener));
}

#define REST                                                                                       \
  .flush = flush, .test = test, .close_send = close_connection, .close_receive = close_connection, \
  .close_listen = close_listen

/* Version 12 has all properties. Older versions lack some, or have them in other places. */

static leeway_nccl_result properties_v12(int device, leeway_nccl_net_properties_v12* properties) {
  FORWARD(properties(device, properties));
}

#define PROPERTIES(version, more)                                     \
  static leeway_nccl_result properties_##version(                     \
      int device, leeway_nccl_net_properties_##version* properties) { \
    leeway_nccl_net_properties_v12 all;                               \
    const leeway_nccl_result result = properties_v12(device, &all);   \
    if (result != kSuccess) return result;                            \
    const leeway_nccl_net_properties_##version out = {                \
        more.name = all.name,                                         \
        .pci_path = all.pci_path,                                     \
        .guid = all.guid,                                             \
        .pointer_kinds = all.pointer_kinds,                           \
        .speed = all.speed,                                           \
        .port = all.port,                                             \
        .latency = all.latency,                                       \
        .comms_max = all.comms_max,                                   \
        .receives_max = all.receives_max,                             \
    };                                                                \
    *properties = out;                                                \
    return kSuccess;                                                  \
  }
#define OFFLOAD .offload_type = all.offload_type, .offload_version = all.offload_version,
#define REGISTRATIONS .registrations_are_global = all.registrations_are_global,
/* A device has one part: itself. */
#define PARTS                                                                    \
  .force_flush = all.force_flush, .parts = {1, {all.parts.devices[0], 0, 0, 0}}, \
  .message_bytes_max = all.message_bytes_max, .collective_bytes_max = all.collective_bytes_max,

PROPERTIES(v6, )
PROPERTIES(v7, OFFLOAD)
PROPERTIES(v8, OFFLOAD REGISTRATIONS)
PROPERTIES(v9, OFFLOAD REGISTRATIONS PARTS)

static leeway_nccl_result properties_v11(int device, leeway_nccl_net_properties_v11* properties) {
  leeway_nccl_net_properties_v12 all;
  const leeway_nccl_result result = properties_v12(device, &all);
  if (result != kSuccess) return result;
  properties->multi_request_max = all.multi_request_max;
  return properties_v9(device, &properties->base);
}

/* In versions 6, 7 and 8, sizes are ints. */

static leeway_nccl_result register_v6(void* comm, void* data, int size, int kind,
                                      void** registration) {
  return register_v8(comm, data, (size_t)size, kind, registration);
}

static leeway_nccl_result send_v6(void* comm, void* data, int size, int tag, void* registration,
                                  void** request) {
  return send_v9(comm, data, (size_t)size, tag, registration, request);
}

/* Receives one message. If `count` is not 1, the function in the table refuses the call, and does
   not look at `sizes`. */
static leeway_nccl_result receive_v6(void* comm, int count, void** data, int* sizes, int* tags,
                                     void** registrations, void** request) {
  size_t size = count == 1 ? (size_t)sizes[0] : 0;
  return receive_v9(comm, count, data, &size, tags, registrations, request);
}

EXPORTED const leeway_nccl_net_v6 ncclNetPlugin_v6 = {
    .name = kName,
    .init = init_v6,
    .devices = devices,
    .properties = properties_v6,
    .listen = listen_v6,
    .connect = connect_v6,
    .accept = accept_v6,
    .register_memory = register_v6,
    .deregister = deregister,
    .send = send_v6,
    .receive = receive_v6,
    REST,
};

/* Since version 7 there is a handle for offload to a device. The plugin leaves it as it is. */

static leeway_nccl_result connect_v7(int device, void* handle, void** comm,
                                     struct leeway_nccl_net_offload** offload) {
  (void)offload;
  return connect_v6(device, handle, comm);
}

static leeway_nccl_result accept_v7(void* listener, void** comm,
                                    struct leeway_nccl_net_offload** offload) {
  (void)offload;
  return accept_v6(listener, comm);
}

EXPORTED const leeway_nccl_net_v7 ncclNetPlugin_v7 = {
    .name = kName,
    .init = init_v6,
    .devices = devices,
    .properties = properties_v7,
    .listen = listen_v6,
    .connect = connect_v7,
    .accept = accept_v7,
    .register_memory = register_v6,
    .deregister = deregister,
    .send = send_v6,
    .receive = receive_v6,
    REST,
};

EXPORTED const leeway_nccl_net_v8 ncclNetPlugin_v8 = {
    .name = kName,
    .init = init_v6,
    .devices = devices,
    .properties = properties_v8,
    .listen = listen_v6,
    .connect = connect_v7,
    .accept = accept_v7,
    .register_memory = register_v8,
    .deregister = deregister,
    .send = send_v6,
    .receive = receive_v6,
    REST,
};

EXPORTED const leeway_nccl_net_v9 ncclNetPlugin_v9 = {
    .name = kName,
    .init = init_v6,
    .devices = devices,
    .properties = properties_v9,
    .listen = listen_v6,
    .connect = connect_v7,
    .accept = accept_v7,
    .register_memory = register_v8,
    .deregister = deregister,
    .send = send_v9,
    .receive = receive_v9,
    REST,
};

/* Since version 10 there is a profiler, which is never called. */

static leeway_nccl_result init_v10(leeway_nccl_logger logger, leeway_nccl_profiler profiler) {
  (void)profiler;
  return init_v6(logger);
}

static leeway_nccl_result connect_v10(int device, struct leeway_nccl_net_config* config,
                                      void* handle, void** comm,
                                      struct leeway_nccl_net_offload** offload) {
  (void)config;
  return connect_v7(device, handle, comm, offload);
}

static leeway_nccl_result send_v10(void* comm, void* data, size_t size, int tag, void* registration,
                                   void* profile, void** request) {
  (void)profile;
  return send_v9(comm, data, size, tag, registration, request);
}

static leeway_nccl_result receive_v10(void* comm, int count, void** data, size_t* sizes, int* tags,
                                      void** registrations, void** profiles, void** request) {
  (void)profiles;
  return receive_v9(comm, count, data, sizes, tags, registrations, request);
}

EXPORTED const leeway_nccl_net_v10 ncclNetPlugin_v10 = {
    .name = kName,
    .init = init_v10,
    .devices = devices,
    .properties = properties_v9,
    .listen = listen_v6,
    .connect = connect_v10,
    .accept = accept_v7,
    .register_memory = register_v8,
    .deregister = deregister,
    .send = send_v10,
    .receive = receive_v10,
    REST,
};

/* Since version 11 every communicator of NCCL has a context. The plugin needs none. */

static leeway_nccl_result init_v11(void** context, uint64_t comm,
                                   struct leeway_nccl_net_config* config, leeway_nccl_logger logger,
                                   leeway_nccl_profiler profiler) {
  (void)comm;
  (void)config;
  *context = NULL;
  return init_v10(logger, profiler);
}

static leeway_nccl_result listen_v11(void* context, int device, void* handle, void** comm) {
  (void)context;
  return listen_v6(device, handle, comm);
}

static leeway_nccl_result connect_v11(void* context, int device, void* handle, void** comm,
                                      struct leeway_nccl_net_offload** offload) {
  (void)context;
  return connect_v7(device, handle, comm, offload);
}

static leeway_nccl_result finalize(void* context) {
  (void)context;
  FORWARD(finalize());
}

#define WITH_CONTEXT                                                           \
  .name = kName, .init = init_v11, .devices = devices, .listen = listen_v11,   \
  .connect = connect_v11, .accept = accept_v7, .register_memory = register_v8, \
  .deregister = deregister, .send = send_v10, .receive = receive_v10, REST, .finalize = finalize

EXPORTED const leeway_nccl_net_v11 ncclNetPlugin_v11 = {
    WITH_CONTEXT,
    .properties = properties_v11,
};

EXPORTED const leeway_nccl_net_v12 ncclNetPlugin_v12 = {
    WITH_CONTEXT,
    .properties = properties_v12,
};
