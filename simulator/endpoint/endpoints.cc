#include "endpoint/endpoints.h"

namespace leeway::sim {

const char* to_string(CallKind kind) {
  switch (kind) {
    case CallKind::all_reduce:
      return "all_reduce";
    case CallKind::reduce_scatter:
      return "reduce_scatter";
    case CallKind::all_gather:
      return "all_gather";
    case CallKind::broadcast:
      return "broadcast";
    case CallKind::all_to_all:
      return "all_to_all";
    case CallKind::replica_reduce:
      return "replica_reduce";
    case CallKind::replica_broadcast:
      return "replica_broadcast";
  }
  return "";
}

}  // namespace leeway::sim
