/* The types of NCCL's binary interface, as far as the drop-in reads or writes them. Written from
   the interface, not copied from NVIDIA's header: a program that was compiled with nccl.h 2.14 to
   2.30 hands over exactly these bytes. tests/unit/interop_nccl/abi_test.cc compares them with
   nccl.h where that is installed.

   C and C++: libnccl.so.2 itself is written in C. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming): names of C */

/* ncclResult_t, ncclDataType_t, ncclRedOp_t and the other enumerations. */
typedef int leeway_nccl_result;
typedef int leeway_nccl_enum;

/* Never dereferenced, on either side: a program keeps the pointer, and the library looks it up. */
typedef struct leeway_nccl_comm_object* leeway_nccl_comm;
typedef void* leeway_nccl_window;
typedef void* leeway_nccl_stream;

/* ncclUniqueId: passed by value. */
typedef struct leeway_nccl_id {
  char bytes[128];
} leeway_nccl_id;

/* ncclTeam_t: passed and returned by value. */
typedef struct leeway_nccl_team {
  int ranks;
  int rank;
  int stride;
} leeway_nccl_team;

/* ncclConfig_t of 2.30. In older versions it is shorter, and `size` is its length. A member that
   the program left alone is INT_MIN, or null. */
typedef struct leeway_nccl_config {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking; /* 2.14 */
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share; /* 2.17 */
  int traffic_class;
  const char* comm_name;
  int collnet_enable;
  int cta_policy;
  int shrink_share;
  int nvls_ctas;
  int channels_per_net_peer;
  int nvlink_centric_sched;
  int graph_usage_mode;
  int rma_contexts;
  int p2p_peers_max;
  int graph_stream_ordering;
} leeway_nccl_config;

/* ncclSimInfo_t. */
typedef struct leeway_nccl_sim_info {
  size_t size;
  unsigned int magic;
  unsigned int version;
  float estimated_time;
} leeway_nccl_sim_info;

/* ncclCommProperties_t of 2.30. */
typedef struct leeway_nccl_properties {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int rank;
  int ranks;
  int cuda_device;
  int nvml_device;
  uint8_t device_api;
  uint8_t multimem;
  int gin_type;
  int lsa_teams;
  uint8_t host_rma;
  int railed_gin_type;
} leeway_nccl_properties;

/* NOLINTEND(readability-identifier-naming) */
