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
    case CallKind::gather:
      return "gather";
    case CallKind::scatter:
      return "scatter";
    case CallKind::reduce:
      return "reduce";
    case CallKind::barrier:
      return "barrier";
    case CallKind::messages:
      return "messages";
    case CallKind::split:
      return "split";
  }
  return "";
}

}  // namespace leeway::sim
