// C functions for replicas with bounded drift.
#include "leeway/c/replica.h"

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

struct leeway_replica {
  std::unique_ptr<leeway::Replica> value;
};

using namespace leeway;
using namespace leeway::c_abi;

namespace {

constexpr leeway_replica_options kReplicaDefaults = LEEWAY_REPLICA_OPTIONS_INIT;

Result<ReplicaOptions> replica_options_of(const leeway_replica_options* given) {
  const auto read = read_sized("leeway_replica_options", given, kReplicaDefaults);
  if (!read.ok()) return read.status();
  const auto delivery = delivery_of("delivery", read->delivery);
  if (!delivery.ok()) return delivery.status();
  const auto codec = codec_of(read->codec);
  if (!codec.ok()) return codec.status();
  ReplicaOptions options;
  options.age_max = read->age_max;
  options.delivery = *delivery;
  options.deadline = duration_of(read->deadline_ns);
  options.codec = *codec;
  options.drift_every = read->drift_every;
  options.drift_samples = read->drift_samples;
  return options;
}

leeway_drift_report struct_of(const DriftReport& drift) {
  leeway_drift_report out = LEEWAY_DRIFT_REPORT_INIT;
  out.measurements = drift.measurements;
  out.pair_measured = drift.pair_measured;
  out.owner_measured = drift.owner_measured;
  out.pair_predicted = drift.pair_predicted;
  out.owner_predicted = drift.owner_predicted;
  out.pair_predicted_gap = drift.pair_predicted_gap;
  out.loss = drift.loss;
  out.step_variance = drift.step_variance;
  out.step_mean_square = drift.step_mean_square;
  out.gap_mean_square = drift.gap_mean_square;
  out.age_mean = drift.age_mean;
  out.blocks_refreshed = drift.blocks_refreshed;
  out.age_max_seen = drift.age_max_seen;
  out.age_bins = static_cast<std::uint32_t>(drift.age_histogram.size());
  return out;
}

}  // namespace

leeway_status leeway_replica_create(leeway_communicator* communicator, float* parameters,
                                    std::size_t count, const leeway_replica_options* options,
                                    leeway_replica** replica) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "replica", replica));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "parameters", parameters, count));
    const auto read = replica_options_of(options);
    if (!read.ok()) return read.status();
    auto made = Replica::create(*communicator->value, {parameters, count}, *read);
    if (!made.ok()) return made.status();
    *replica = new leeway_replica{std::move(*made)};
    return Status();
  });
}

void leeway_replica_free(leeway_replica* replica) {
  delete replica;
}

leeway_status leeway_replica_owned(leeway_replica* replica, std::size_t* offset, std::size_t* count,
                                   float** values) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    if (offset != nullptr) *offset = replica->value->owned_offset();
    if (count != nullptr) *count = replica->value->owned_count();
    if (values != nullptr) *values = replica->value->owned().data();
    return Status();
  });
}

leeway_status leeway_replica_reduce_gradients(leeway_replica* replica, float* gradient,
                                              std::size_t count,
                                              const leeway_collective_options* options,
                                              leeway_report* report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    const auto read = call_of(options);
    Status status = must_be_there(name, "gradient", gradient, count);
    if (status.ok() && !read.ok()) status = read.status();
    // A gradient of the wrong size is refused, too, and takes the place of the refused call.
    if (!status.ok()) {
      (void)replica->value->reduce_gradients({}, {});
      return status;
    }
    return keep(replica->value->reduce_gradients({gradient, count}, read->options), report);
  });
}

leeway_status leeway_replica_broadcast_parameters(leeway_replica* replica, leeway_report* report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    return keep(replica->value->broadcast_parameters(), report);
  });
}

leeway_status leeway_replica_synchronize(leeway_replica* replica, leeway_report* report) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    return keep(replica->value->synchronize(), report);
  });
}

leeway_status leeway_replica_drift(const leeway_replica* replica, leeway_drift_report* drift) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    LEEWAY_C_TRY(must_be_there(name, "drift", drift));
    return write_sized("leeway_drift_report", struct_of(replica->value->drift()), drift);
  });
}

leeway_status leeway_replica_ages(const leeway_replica* replica, std::uint64_t* bins,
                                  std::size_t capacity, std::size_t* count) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "replica", replica));
    LEEWAY_C_TRY(must_be_there(name, "bins", bins, capacity));
    LEEWAY_C_TRY(must_be_there(name, "count", count));
    const std::vector<std::uint64_t> from = replica->value->drift().age_histogram;
    *count = from.size();
    std::copy_n(from.begin(), std::min(capacity, from.size()), bins);
    return Status();
  });
}
