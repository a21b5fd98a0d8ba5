// Rules A1, A2, A5 and C1: wrong arguments are refused before anything is sent.
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string>

#include "nccl/conformance.h"

namespace conformance {
namespace {

void no_communicator(const Rank& rank) {
  EXPECT_OK(rank, ncclCommDestroy(nullptr));
  EXPECT_OK(rank, ncclCommAbort(nullptr));
  EXPECT_OK(rank, ncclCommFinalize(nullptr));
  EXPECT_OK(rank, ncclCommRevoke(nullptr, 0));
  int number = 0;
  ncclResult_t code = ncclSuccess;
  EXPECT_CODE(rank, ncclCommCount(nullptr, &number), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommUserRank(nullptr, &number), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommCuDevice(nullptr, &number), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommGetAsyncError(nullptr, &code), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclAllReduce(nullptr, nullptr, 1, ncclFloat32, ncclSum, nullptr, nullptr),
              ncclInvalidArgument);
}

void operations_look_at_root_type_and_reduction(const Rank& rank) {
  const ncclComm_t comm = rank.connect();
  float value = 1;
  const auto all_reduce = [&](int type, int op) {
    return ncclAllReduce(&value, &value, 1, static_cast<ncclDataType_t>(type),
                         static_cast<ncclRedOp_t>(op), comm, nullptr);
  };
  for (const int type : {-1, 12, 1000})
    EXPECT_CODE(rank, all_reduce(type, ncclSum), ncclInvalidArgument);
  for (const int op : {-1, 5, 99, INT_MAX})
    EXPECT_CODE(rank, all_reduce(ncclFloat32, op), ncclInvalidArgument);
  for (const int root : {-1, rank.size, INT_MAX}) {
    EXPECT_CODE(rank, ncclBcast(&value, 1, ncclFloat32, root, comm, nullptr), ncclInvalidArgument);
    EXPECT_CODE(rank, ncclReduce(&value, &value, 1, ncclFloat32, ncclSum, root, comm, nullptr),
                ncclInvalidArgument);
    EXPECT_CODE(rank, ncclSend(&value, 1, ncclFloat32, root, comm, nullptr), ncclInvalidArgument);
    EXPECT_CODE(rank, ncclRecv(&value, 1, ncclFloat32, root, comm, nullptr), ncclInvalidArgument);
    EXPECT_CODE(rank, ncclGather(&value, &value, 1, ncclFloat32, root, comm, nullptr),
                ncclInvalidArgument);
  }
  ncclResult_t code = ncclInternalError;
  EXPECT_OK(rank, ncclCommGetAsyncError(comm, &code));
  EXPECT_THAT_IT(rank, code == ncclSuccess, std::to_string(code));
  EXPECT_OK(rank, all_reduce(ncclFloat32, ncclSum));
  EXPECT_THAT_IT(rank, value == static_cast<float>(rank.size), std::to_string(value));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void pointers_are_looked_at_if_asked_for(const Rank& rank) {
  ::setenv("NCCL_CHECK_POINTERS", "1", 1);
  const ncclComm_t comm = rank.connect();
  float value = 1;
  EXPECT_CODE(rank, ncclAllReduce(nullptr, &value, 1, ncclFloat32, ncclSum, comm, nullptr),
              ncclInvalidArgument);
  EXPECT_CODE(rank, ncclAllReduce(&value, nullptr, 1, ncclFloat32, ncclSum, comm, nullptr),
              ncclInvalidArgument);
  const bool root = rank.rank == 0;
  EXPECT_OK(rank,
            ncclReduce(&value, root ? &value : nullptr, 1, ncclFloat32, ncclSum, 0, comm, nullptr));
  EXPECT_OK(rank, ncclCommDestroy(comm));
}

void initialisation_looks_at_ranks(const Rank& rank) {
  ncclUniqueId id;
  EXPECT_OK(rank, ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  const struct {
    int size;
    int rank;
  } kWrong[] = {{0, 0}, {2, 2}, {2, -1}, {-1, 0}};
  for (const auto& wrong : kWrong)
    EXPECT_CODE(rank, ncclCommInitRank(&comm, wrong.size, id, wrong.rank), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommInitRank(nullptr, 1, id, 0), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclGetUniqueId(nullptr), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclGetVersion(nullptr), ncclInvalidArgument);
  EXPECT_CODE(rank, ncclCommInitAll(&comm, -1, nullptr), ncclInvalidArgument);
}

void config_is_looked_at(const Rank& rank) {
  if (rank.rank != 0) return;
  ncclUniqueId id;
  EXPECT_OK(rank, ncclGetUniqueId(&id));
  const auto init = [&](ncclConfig_t config) {
    ncclComm_t comm = nullptr;
    const ncclResult_t code = ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    if (code == ncclSuccess) EXPECT_OK(rank, ncclCommDestroy(comm));
    return code;
  };
  const ncclConfig_t good = NCCL_CONFIG_INITIALIZER;
  ncclConfig_t config = good;
  config.magic = 1;
  EXPECT_CODE(rank, init(config), ncclInvalidArgument);
  config = good;
  config.blocking = 2;
  EXPECT_CODE(rank, init(config), ncclInvalidArgument);
  // The config of NCCL 2.13's header has no member `blocking`, so the bytes in its place are
  // ignored.
  config.version = 21300;
  EXPECT_OK(rank, init(config));
  config = good;
  config.size = 1u << 20;  // a newer header's: its beginning is the same as ours
  EXPECT_OK(rank, init(config));
  EXPECT_OK(rank, init(good));
}

void errors_have_nccls_texts(const Rank& rank) {
  const struct {
    int code;
    const char* text;
  } kTexts[] = {{0, "no error"},
                {1, "unhandled cuda error (run with NCCL_DEBUG=INFO for details)"},
                {2, "unhandled system error (run with NCCL_DEBUG=INFO for details)"},
                {3, "internal error - please report this issue to the NCCL developers"},
                {4, "invalid argument (run with NCCL_DEBUG=WARN for details)"},
                {5, "invalid usage (run with NCCL_DEBUG=WARN for details)"},
                {6, "remote process exited or there was a network error"},
                {7, "NCCL operation in progress"},
                {99, "unknown result code"},
                {-1, "unknown result code"}};
  for (const auto& one : kTexts) {
    const char* const got = ncclGetErrorString(static_cast<ncclResult_t>(one.code));
    EXPECT_THAT_IT(rank, std::strcmp(got, one.text) == 0, got);
  }
}

void last_error_names_the_call(const Rank& rank) {
  float value = 0;
  EXPECT_CODE(rank, ncclAllReduce(&value, &value, 1, ncclFloat32, ncclSum, nullptr, nullptr),
              ncclInvalidArgument);
  if (rank.processes) {
    const std::string text = ncclGetLastError(nullptr);
    EXPECT_THAT_IT(rank, text == "AllReduce : comm argument is NULL", text);
  }
}

// Every refused call must set an error text, although only the first one is logged.
void refused_calls_have_a_text(const Rank& rank) {
  const char* value = "";
  int length = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_CODE(rank, ncclCommCount(nullptr, &length), ncclInvalidArgument);
    EXPECT_CODE(rank, ncclParamGetParameter("NCCL_ALGO", &value, &length), ncclInvalidUsage);
    const std::string text = ncclGetLastError(nullptr);
    if (rank.processes)
      EXPECT_THAT_IT(rank, text.find("ncclParamGetParameter") != std::string::npos, text);
  }
  const char** names = &value;
  length = 7;
  EXPECT_OK(rank, ncclParamGetAllParameterKeys(&names, &length));
  EXPECT_THAT_IT(rank, length == 0, std::to_string(length));
}

}  // namespace

std::vector<Case> argument_cases() {
  using Needs = Case::Needs;
  return {{"arguments.no_communicator", no_communicator},
          {"arguments.operations_look_at_root_type_and_reduction",
           operations_look_at_root_type_and_reduction},
          {"arguments.pointers_are_looked_at_if_asked_for", pointers_are_looked_at_if_asked_for,
           Needs::processes},
          {"arguments.initialisation_looks_at_ranks", initialisation_looks_at_ranks},
          {"communicators.config_is_looked_at", config_is_looked_at},
          {"arguments.errors_have_nccls_texts", errors_have_nccls_texts},
          {"arguments.last_error_names_the_call", last_error_names_the_call},
          {"arguments.refused_calls_have_a_text", refused_calls_have_a_text}};
}

}  // namespace conformance
