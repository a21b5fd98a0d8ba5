/* The binary interface of NCCL's network plugins, versions 6 to 12, in Leeway's own words. NVIDIA's
   headers are not needed to build. tests/unit/interop_nccl_net/abi_test.cc compares sizes and
   offsets with these headers if CMake is told where they are (LEEWAY_NCCL_NET_INCLUDE_DIR).

   C and C++: the plugin itself is written in C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "interop/nccl/abi.h"

/* NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): names of C */

/* Bytes of a handle, which NCCL carries from the receiver of a connection to its sender. */
#define LEEWAY_NCCL_NET_HANDLE_BYTES 128
/* Requests that NCCL has under way on one connection. */
#define LEEWAY_NCCL_NET_REQUESTS 32

/* ncclDebugLogger_t; level and flags are ncclDebugLogLevel and ncclDebugLogSubSys. */
typedef void (*leeway_nccl_logger)(leeway_nccl_enum level, unsigned long flags, const char* file,
                                   int line, const char* format, ...);
/* ncclProfilerCallback_t: never called. */
typedef leeway_nccl_result (*leeway_nccl_profiler)(void** event, int type, void* parent,
                                                   int64_t plugin, void* data);
/* ncclNetCommConfig_t since 10: the plugin does not look at it. */
struct leeway_nccl_net_config;
/* ncclNetDeviceHandle_t since 7: no device takes part, so the plugin leaves it as it is. */
struct leeway_nccl_net_offload;

/* ncclNetProperties_v6_t. */
typedef struct leeway_nccl_net_properties_v6 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_kinds;
  int speed; /* Mbit/s */
  int port;
  float latency; /* us */
  int comms_max;
  int receives_max;
} leeway_nccl_net_properties_v6;

/* ncclNetProperties_v7_t. */
typedef struct leeway_nccl_net_properties_v7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_kinds;
  int speed;
  int port;
  float latency;
  int comms_max;
  int receives_max;
  leeway_nccl_enum offload_type;
  int offload_version;
} leeway_nccl_net_properties_v7;

/* ncclNetProperties_v8_t. */
typedef struct leeway_nccl_net_properties_v8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_kinds;
  int registrations_are_global;
  int speed;
  int port;
  float latency;
  int comms_max;
  int receives_max;
  leeway_nccl_enum offload_type;
  int offload_version;
} leeway_nccl_net_properties_v8;

/* ncclNetVDeviceProps_t of versions 9 to 11, and of version 12. */
typedef struct leeway_nccl_net_parts_v9 {
  int count;
  int devices[4];
} leeway_nccl_net_parts_v9;
typedef struct leeway_nccl_net_parts_v12 {
  int count;
  int devices[8];
} leeway_nccl_net_parts_v12;

/* ncclNetProperties_v9_t and _v10_t; _v11_t has one member more. */
typedef struct leeway_nccl_net_properties_v9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_kinds;
  int registrations_are_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int comms_max;
  int receives_max;
  leeway_nccl_enum offload_type;
  int offload_version;
  leeway_nccl_net_parts_v9 parts;
  size_t message_bytes_max;
  size_t collective_bytes_max;
} leeway_nccl_net_properties_v9;
typedef struct leeway_nccl_net_properties_v11 {
  leeway_nccl_net_properties_v9 base;
  int multi_request_max;
} leeway_nccl_net_properties_v11;

/* ncclNetProperties_v12_t. */
typedef struct leeway_nccl_net_properties_v12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_kinds;
  int registrations_are_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int comms_max;
  int receives_max;
  leeway_nccl_enum offload_type;
  int offload_version;
  leeway_nccl_net_parts_v12 parts;
  size_t message_bytes_max;
  size_t collective_bytes_max;
  int multi_request_max;
  int16_t rail;
  int16_t plane;
} leeway_nccl_net_properties_v12;

/* Members that several versions have in common, in their order. */
#define LEEWAY_NCCL_NET_REGISTER_DMABUF                                                \
  leeway_nccl_result (*register_dmabuf)(void* comm, void* data, size_t size, int kind, \
                                        uint64_t offset, int file, void** registration)
#define LEEWAY_NCCL_NET_REST                                                  \
  leeway_nccl_result (*flush)(void* comm, int count, void** data, int* sizes, \
                              void** registrations, void** request);          \
  leeway_nccl_result (*test)(void* request, int* done, int* sizes);           \
  leeway_nccl_result (*close_send)(void* comm);                               \
  leeway_nccl_result (*close_receive)(void* comm);                            \
  leeway_nccl_result (*close_listen)(void* comm)
#define LEEWAY_NCCL_NET_OFFLOAD                                                              \
  leeway_nccl_result (*device_registration)(void* comm, void* registration, void** pointer); \
  leeway_nccl_result (*receive_consumed)(void* comm, int count, void* request)

/* ncclNet_v6_t. */
typedef struct leeway_nccl_net_v6 {
  const char* name;
  leeway_nccl_result (*init)(leeway_nccl_logger logger);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v6* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** comm);
  leeway_nccl_result (*connect)(int device, void* handle, void** comm);
  leeway_nccl_result (*accept)(void* listener, void** comm);
  leeway_nccl_result (*register_memory)(void* comm, void* data, int size, int kind,
                                        void** registration);
  LEEWAY_NCCL_NET_REGISTER_DMABUF;
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  leeway_nccl_result (*send)(void* comm, void* data, int size, int tag, void* registration,
                             void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, int* sizes, int* tags,
                                void** registrations, void** request);
  LEEWAY_NCCL_NET_REST;
} leeway_nccl_net_v6;

/* ncclNet_v7_t. */
typedef struct leeway_nccl_net_v7 {
  const char* name;
  leeway_nccl_result (*init)(leeway_nccl_logger logger);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v7* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** comm);
  leeway_nccl_result (*connect)(int device, void* handle, void** comm,
                                struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*accept)(void* listener, void** comm,
                               struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*register_memory)(void* comm, void* data, int size, int kind,
                                        void** registration);
  LEEWAY_NCCL_NET_REGISTER_DMABUF;
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  leeway_nccl_result (*send)(void* comm, void* data, int size, int tag, void* registration,
                             void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, int* sizes, int* tags,
                                void** registrations, void** request);
  LEEWAY_NCCL_NET_REST;
  LEEWAY_NCCL_NET_OFFLOAD;
} leeway_nccl_net_v7;

/* ncclNet_v8_t: sizes of registrations have 64 bits. */
typedef struct leeway_nccl_net_v8 {
  const char* name;
  leeway_nccl_result (*init)(leeway_nccl_logger logger);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v8* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** comm);
  leeway_nccl_result (*connect)(int device, void* handle, void** comm,
                                struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*accept)(void* listener, void** comm,
                               struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*register_memory)(void* comm, void* data, size_t size, int kind,
                                        void** registration);
  LEEWAY_NCCL_NET_REGISTER_DMABUF;
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  leeway_nccl_result (*send)(void* comm, void* data, int size, int tag, void* registration,
                             void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, int* sizes, int* tags,
                                void** registrations, void** request);
  LEEWAY_NCCL_NET_REST;
  LEEWAY_NCCL_NET_OFFLOAD;
} leeway_nccl_net_v8;

/* ncclNet_v9_t: sizes of messages have 64 bits, too. */
typedef struct leeway_nccl_net_v9 {
  const char* name;
  leeway_nccl_result (*init)(leeway_nccl_logger logger);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v9* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** comm);
  leeway_nccl_result (*connect)(int device, void* handle, void** comm,
                                struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*accept)(void* listener, void** comm,
                               struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*register_memory)(void* comm, void* data, size_t size, int kind,
                                        void** registration);
  LEEWAY_NCCL_NET_REGISTER_DMABUF;
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  leeway_nccl_result (*send)(void* comm, void* data, size_t size, int tag, void* registration,
                             void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, size_t* sizes, int* tags,
                                void** registrations, void** request);
  LEEWAY_NCCL_NET_REST;
  LEEWAY_NCCL_NET_OFFLOAD;
  leeway_nccl_result (*make_virtual)(int* device, leeway_nccl_net_parts_v9* parts);
} leeway_nccl_net_v9;

/* ncclNet_v10_t: a configuration, and places where a profiler may hear of messages. */
typedef struct leeway_nccl_net_v10 {
  const char* name;
  leeway_nccl_result (*init)(leeway_nccl_logger logger, leeway_nccl_profiler profiler);
  leeway_nccl_result (*devices)(int* count);
  leeway_nccl_result (*properties)(int device, leeway_nccl_net_properties_v9* properties);
  leeway_nccl_result (*listen)(int device, void* handle, void** comm);
  leeway_nccl_result (*connect)(int device, struct leeway_nccl_net_config* config, void* handle,
                                void** comm, struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*accept)(void* listener, void** comm,
                               struct leeway_nccl_net_offload** offload);
  leeway_nccl_result (*register_memory)(void* comm, void* data, size_t size, int kind,
                                        void** registration);
  LEEWAY_NCCL_NET_REGISTER_DMABUF;
  leeway_nccl_result (*deregister)(void* comm, void* registration);
  leeway_nccl_result (*send)(void* comm, void* data, size_t size, int tag, void* registration,
                             void* profile, void** request);
  leeway_nccl_result (*receive)(void* comm, int count, void** data, size_t* sizes, int* tags,
                                void** registrations, void** profiles, void** request);
  LEEWAY_NCCL_NET_REST;
  LEEWAY_NCCL_NET_OFFLOAD;
  leeway_nccl_result (*make_virtual)(int* device, leeway_nccl_net_parts_v9* parts);
} leeway_nccl_net_v10;

/* ncclNet_v11_t and ncclNet_v12_t: a context for each communicator, and finalize(). The two
   versions differ only in the structures to which arguments point. */
#define LEEWAY_NCCL_NET_WITH_CONTEXT(Properties, Parts)                                            \
  const char* name;                                                                                \
  leeway_nccl_result (*init)(void** context, uint64_t comm, struct leeway_nccl_net_config* config, \
                             leeway_nccl_logger logger, leeway_nccl_profiler profiler);            \
  leeway_nccl_result (*devices)(int* count);                                                       \
  leeway_nccl_result (*properties)(int device, Properties* properties);                            \
  leeway_nccl_result (*listen)(void* context, int device, void* handle, void** comm);              \
  leeway_nccl_result (*connect)(void* context, int device, void* handle, void** comm,              \
                                struct leeway_nccl_net_offload** offload);                         \
  leeway_nccl_result (*accept)(void* listener, void** comm,                                        \
                               struct leeway_nccl_net_offload** offload);                          \
  leeway_nccl_result (*register_memory)(void* comm, void* data, size_t size, int kind,             \
                                        void** registration);                                      \
  LEEWAY_NCCL_NET_REGISTER_DMABUF;                                                                 \
  leeway_nccl_result (*deregister)(void* comm, void* registration);                                \
  leeway_nccl_result (*send)(void* comm, void* data, size_t size, int tag, void* registration,     \
                             void* profile, void** request);                                       \
  leeway_nccl_result (*receive)(void* comm, int count, void** data, size_t* sizes, int* tags,      \
                                void** registrations, void** profiles, void** request);            \
  LEEWAY_NCCL_NET_REST;                                                                            \
  LEEWAY_NCCL_NET_OFFLOAD;                                                                         \
  leeway_nccl_result (*make_virtual)(int* device, Parts* parts);                                   \
  leeway_nccl_result (*finalize)(void* context);                                                   \
  leeway_nccl_result (*set_attributes)(void* context, void* attributes)

typedef struct leeway_nccl_net_v11 {
  LEEWAY_NCCL_NET_WITH_CONTEXT(leeway_nccl_net_properties_v11, leeway_nccl_net_parts_v9);
} leeway_nccl_net_v11;
typedef struct leeway_nccl_net_v12 {
  LEEWAY_NCCL_NET_WITH_CONTEXT(leeway_nccl_net_properties_v12, leeway_nccl_net_parts_v12);
} leeway_nccl_net_v12;

/* NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses) */
