/* Every function of libnccl.so.2 of NCCL 2.28.9 and 2.30.7, once, and the table in which the
   library behind the stub hands them over.

   LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER) names them. RESULT(name, parameters, arguments) returns an
   ncclResult_t. OTHER(type, name, parameters, arguments, failed) returns something else, and
   `failed` where the library behind the stub cannot be opened. */
#pragma once

#include "interop/nccl/abi.h"

/* clang-format off */
#define LEEWAY_NCCL_FUNCTIONS(RESULT, OTHER) \
  RESULT(GetVersion, (int* version), (version)) \
  OTHER(const char*, GetErrorString, (leeway_nccl_result code), (code), "Leeway's NCCL cannot be opened") \
  OTHER(const char*, GetLastError, (leeway_nccl_comm comm), (comm), "Leeway's NCCL cannot be opened") \
  OTHER(void, ResetDebugInit, (void), (), ) \
  /* Communicators */ \
  RESULT(GetUniqueId, (leeway_nccl_id* id), (id)) \
  RESULT(CommInitRank, (leeway_nccl_comm* comm, int ranks, leeway_nccl_id id, int rank), (comm, ranks, id, rank)) \
  RESULT(CommInitRankConfig, (leeway_nccl_comm* comm, int ranks, leeway_nccl_id id, int rank, leeway_nccl_config* config), (comm, ranks, id, rank, config)) \
  RESULT(CommInitRankScalable, (leeway_nccl_comm* comm, int ranks, int rank, int ids, leeway_nccl_id* id, leeway_nccl_config* config), (comm, ranks, rank, ids, id, config)) \
  RESULT(CommInitAll, (leeway_nccl_comm* comms, int devices, const int* list), (comms, devices, list)) \
  RESULT(CommSplit, (leeway_nccl_comm comm, int color, int key, leeway_nccl_comm* made, leeway_nccl_config* config), (comm, color, key, made, config)) \
  RESULT(CommShrink, (leeway_nccl_comm comm, int* excluded, int count, leeway_nccl_comm* made, leeway_nccl_config* config, int flags), (comm, excluded, count, made, config, flags)) \
  RESULT(CommGetUniqueId, (leeway_nccl_comm comm, leeway_nccl_id* id), (comm, id)) \
  RESULT(CommGrow, (leeway_nccl_comm comm, int ranks, const leeway_nccl_id* id, int rank, leeway_nccl_comm* made, leeway_nccl_config* config), (comm, ranks, id, rank, made, config)) \
  RESULT(CommFinalize, (leeway_nccl_comm comm), (comm)) \
  RESULT(CommDestroy, (leeway_nccl_comm comm), (comm)) \
  RESULT(CommAbort, (leeway_nccl_comm comm), (comm)) \
  RESULT(CommRevoke, (leeway_nccl_comm comm, int flags), (comm, flags)) \
  RESULT(CommSuspend, (leeway_nccl_comm comm, int flags), (comm, flags)) \
  RESULT(CommResume, (leeway_nccl_comm comm), (comm)) \
  RESULT(CommGetAsyncError, (leeway_nccl_comm comm, leeway_nccl_result* code), (comm, code)) \
  RESULT(CommCount, (leeway_nccl_comm comm, int* count), (comm, count)) \
  RESULT(CommCuDevice, (leeway_nccl_comm comm, int* device), (comm, device)) \
  RESULT(CommUserRank, (leeway_nccl_comm comm, int* rank), (comm, rank)) \
  RESULT(CommMemStats, (leeway_nccl_comm comm, leeway_nccl_enum statistic, uint64_t* value), (comm, statistic, value)) \
  RESULT(CommQueryProperties, (leeway_nccl_comm comm, leeway_nccl_properties* properties), (comm, properties)) \
  /* Memory */ \
  RESULT(MemAlloc, (void** memory, size_t bytes), (memory, bytes)) \
  RESULT(MemFree, (void* memory), (memory)) \
  RESULT(CommRegister, (leeway_nccl_comm comm, void* memory, size_t bytes, void** handle), (comm, memory, bytes, handle)) \
  RESULT(CommDeregister, (leeway_nccl_comm comm, void* handle), (comm, handle)) \
  RESULT(CommWindowRegister, (leeway_nccl_comm comm, void* memory, size_t bytes, leeway_nccl_window* window, int flags), (comm, memory, bytes, window, flags)) \
  RESULT(CommWindowDeregister, (leeway_nccl_comm comm, leeway_nccl_window window), (comm, window)) \
  RESULT(WinGetUserPtr, (leeway_nccl_comm comm, leeway_nccl_window window, void** memory), (comm, window, memory)) \
  /* Operations */ \
  RESULT(RedOpCreatePreMulSum, (leeway_nccl_enum* op, void* scalar, leeway_nccl_enum type, leeway_nccl_enum residence, leeway_nccl_comm comm), (op, scalar, type, residence, comm)) \
  RESULT(RedOpDestroy, (leeway_nccl_enum op, leeway_nccl_comm comm), (op, comm)) \
  RESULT(Reduce, (const void* send, void* receive, size_t count, leeway_nccl_enum type, leeway_nccl_enum op, int root, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, op, root, comm, stream)) \
  RESULT(Bcast, (void* buffer, size_t count, leeway_nccl_enum type, int root, leeway_nccl_comm comm, leeway_nccl_stream stream), (buffer, count, type, root, comm, stream)) \
  RESULT(Broadcast, (const void* send, void* receive, size_t count, leeway_nccl_enum type, int root, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, root, comm, stream)) \
  RESULT(AllReduce, (const void* send, void* receive, size_t count, leeway_nccl_enum type, leeway_nccl_enum op, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, op, comm, stream)) \
  RESULT(ReduceScatter, (const void* send, void* receive, size_t count, leeway_nccl_enum type, leeway_nccl_enum op, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, op, comm, stream)) \
  RESULT(AllGather, (const void* send, void* receive, size_t count, leeway_nccl_enum type, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, comm, stream)) \
  RESULT(AlltoAll, (const void* send, void* receive, size_t count, leeway_nccl_enum type, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, comm, stream)) \
  RESULT(Gather, (const void* send, void* receive, size_t count, leeway_nccl_enum type, int root, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, root, comm, stream)) \
  RESULT(Scatter, (const void* send, void* receive, size_t count, leeway_nccl_enum type, int root, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, receive, count, type, root, comm, stream)) \
  RESULT(Send, (const void* send, size_t count, leeway_nccl_enum type, int peer, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, count, type, peer, comm, stream)) \
  RESULT(Recv, (void* receive, size_t count, leeway_nccl_enum type, int peer, leeway_nccl_comm comm, leeway_nccl_stream stream), (receive, count, type, peer, comm, stream)) \
  RESULT(PutSignal, (const void* send, size_t count, leeway_nccl_enum type, int peer, leeway_nccl_window window, size_t offset, int signal, int context, unsigned int flags, leeway_nccl_comm comm, leeway_nccl_stream stream), (send, count, type, peer, window, offset, signal, context, flags, comm, stream)) \
  RESULT(Signal, (int peer, int signal, int context, unsigned int flags, leeway_nccl_comm comm, leeway_nccl_stream stream), (peer, signal, context, flags, comm, stream)) \
  RESULT(WaitSignal, (int count, void* signals, leeway_nccl_comm comm, leeway_nccl_stream stream), (count, signals, comm, stream)) \
  RESULT(GroupStart, (void), ()) \
  RESULT(GroupEnd, (void), ()) \
  RESULT(GroupSimulateEnd, (leeway_nccl_sim_info* info), (info)) \
  /* The device interface, which is refused */ \
  OTHER(leeway_nccl_team, TeamWorld, (leeway_nccl_comm comm), (comm), (leeway_nccl_team){0}) \
  OTHER(leeway_nccl_team, TeamLsa, (leeway_nccl_comm comm), (comm), (leeway_nccl_team){0}) \
  OTHER(leeway_nccl_team, TeamRail, (leeway_nccl_comm comm), (comm), (leeway_nccl_team){0}) \
  OTHER(int, TeamRankToWorld, (leeway_nccl_comm comm, leeway_nccl_team team, int rank), (comm, team, rank), -1) \
  OTHER(int, TeamRankToLsa, (leeway_nccl_comm comm, leeway_nccl_team team, int rank), (comm, team, rank), -1) \
  OTHER(int, LLA2ACalcSlots, (int elements, int bytes), (elements, bytes), 0) \
  RESULT(DevCommCreate, (leeway_nccl_comm comm, const void* requirements, void* made), (comm, requirements, made)) \
  RESULT(DevCommDestroy, (leeway_nccl_comm comm, const void* made), (comm, made)) \
  RESULT(LLA2ACreateRequirement, (int blocks, int slots, void* handle, void* requirements), (blocks, slots, handle, requirements)) \
  RESULT(LsaBarrierCreateRequirement, (leeway_nccl_team team, int barriers, void* handle, void* requirements), (team, barriers, handle, requirements)) \
  RESULT(GinBarrierCreateRequirement, (leeway_nccl_comm comm, leeway_nccl_team team, int barriers, void* handle, void* requirements), (comm, team, barriers, handle, requirements)) \
  RESULT(GinOutboxCreateRequirement, (int blocks, int size_log2, void* handle, void* requirements), (blocks, size_log2, handle, requirements)) \
  RESULT(GinInboxA2ACreateRequirement, (leeway_nccl_team team, int blocks, int size_log2, void* handle, void* requirements), (team, blocks, size_log2, handle, requirements)) \
  RESULT(GetLsaMultimemDevicePointer, (leeway_nccl_window window, size_t offset, void** memory), (window, offset, memory)) \
  RESULT(GetMultimemDevicePointer, (leeway_nccl_window window, size_t offset, void* multimem, void** memory), (window, offset, multimem, memory)) \
  RESULT(GetLsaDevicePointer, (leeway_nccl_window window, size_t offset, int rank, void** memory), (window, offset, rank, memory)) \
  RESULT(GetPeerDevicePointer, (leeway_nccl_window window, size_t offset, int peer, void** memory), (window, offset, peer, memory)) \
  /* Parameters of 2.30 */ \
  RESULT(ParamBind, (void** parameter, const char* key), (parameter, key)) \
  RESULT(ParamGetI8, (void* parameter, int8_t* value), (parameter, value)) \
  RESULT(ParamGetI16, (void* parameter, int16_t* value), (parameter, value)) \
  RESULT(ParamGetI32, (void* parameter, int32_t* value), (parameter, value)) \
  RESULT(ParamGetI64, (void* parameter, int64_t* value), (parameter, value)) \
  RESULT(ParamGetU8, (void* parameter, uint8_t* value), (parameter, value)) \
  RESULT(ParamGetU16, (void* parameter, uint16_t* value), (parameter, value)) \
  RESULT(ParamGetU32, (void* parameter, uint32_t* value), (parameter, value)) \
  RESULT(ParamGetU64, (void* parameter, uint64_t* value), (parameter, value)) \
  RESULT(ParamGetStr, (void* parameter, const char** value), (parameter, value)) \
  RESULT(ParamGet, (void* parameter, void* value, int bytes_max, int* bytes), (parameter, value, bytes_max, bytes)) \
  RESULT(ParamGetParameter, (const char* key, const char** value, int* bytes), (key, value, bytes)) \
  RESULT(ParamGetAllParameterKeys, (const char*** keys, int* count), (keys, count)) \
  OTHER(void, ParamDumpAll, (void), (), )
/* clang-format on */

/* NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses): a struct of C */

/* One entry a function, in the order of the list. A stub and a library of different versions may
   differ in layout, so the symbol that hands the table over has the version in its name. */
struct leeway_nccl_functions {
#define LEEWAY_NCCL_ENTRY(name, parameters, arguments) leeway_nccl_result(*name) parameters;
#define LEEWAY_NCCL_OTHER_ENTRY(type, name, parameters, arguments, failed) type(*name) parameters;
  LEEWAY_NCCL_FUNCTIONS(LEEWAY_NCCL_ENTRY, LEEWAY_NCCL_OTHER_ENTRY)
#undef LEEWAY_NCCL_ENTRY
#undef LEEWAY_NCCL_OTHER_ENTRY
};
/* NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses) */

#ifdef __cplusplus
extern "C" {
#endif
/* The table that libnccl.so.2 looks up in libleeway_nccl.so.0. */
extern const struct leeway_nccl_functions leeway_nccl_functions_0;
#ifdef __cplusplus
}
#endif
