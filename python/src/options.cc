#include "options.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "errors.h"
#include "numbers.h"
#include "rendezvous.h"

namespace nb = nanobind;

namespace leeway::python {
namespace {

template <typename Value>
Value text_as(nb::handle value, Result<Value> (*parse)(std::string_view)) {
  return value_of(parse(nb::cast<std::string>(nb::str(value))));
}

std::uint64_t bits_per_second(nb::handle value) {
  const auto rate = nb::cast<double>(value);
  if (!(rate > 0 && rate < 1e15))
    throw Failure(Status::error(StatusCode::kInvalidArgument,
                                "rate: %s; give bits a second, as 95e6", nb::repr(value).c_str()));
  return static_cast<std::uint64_t>(rate);
}

struct Field {
  const char* name;
  void (*set)(Options& options, nb::handle value);
  nb::object (*get)(const Options& options);
};

template <auto Member>
void put(Options& options, nb::handle value) {
  options.*Member = nb::cast<std::remove_reference_t<decltype(options.*Member)>>(value);
}
template <auto Member>
nb::object take(const Options& options) {
  return nb::cast(options.*Member);
}
template <auto Member>
void put_time(Options& options, nb::handle value) {
  options.*Member = to_duration(value, "timeout");
}
template <auto Member>
nb::object take_time(const Options& options) {
  return nb::float_(to_seconds(options.*Member));
}
template <auto Member>
nb::object take_name(const Options& options) {
  const std::string_view name = to_string(options.*Member);
  return nb::str(name.data(), name.size());
}

const std::vector<Field>& fields() {
  static const std::vector<Field> all{
      {"rank", [](Options& to, nb::handle value) { to.rank = nb::cast<int>(value); },
       [](const Options& from) { return from.rank ? nb::cast(*from.rank) : nb::none(); }},
      {"world_size", [](Options& to, nb::handle value) { to.world_size = nb::cast<int>(value); },
       [](const Options& from) {
         return from.world_size ? nb::cast(*from.world_size) : nb::none();
       }},
      {"rendezvous", put<&Options::rendezvous>, take<&Options::rendezvous>},
      {"store", [](Options& to, nb::handle value) { to.store = to_rendezvous(value); },
       [](const Options& from) -> nb::object { return nb::bool_(from.store != nullptr); }},
      {"communicator_name", put<&Options::communicator_name>, take<&Options::communicator_name>},
      {"restart_count", put<&Options::restart_count>, take<&Options::restart_count>},
      {"site", put<&Options::site>, take<&Options::site>},
      {"transport",
       [](Options& to, nb::handle value) { to.transport = text_as(value, &parse_transport); },
       take_name<&Options::transport>},
      {"multicast", put<&Options::multicast>, take<&Options::multicast>},
      {"bind_address", put<&Options::bind_address>, take<&Options::bind_address>},
      {"port", put<&Options::port>, take<&Options::port>},
      {"secret_file", put<&Options::secret_file>, take<&Options::secret_file>},
      {"insecure", put<&Options::insecure>, take<&Options::insecure>},
      {"require_sealed", put<&Options::require_sealed>, take<&Options::require_sealed>},
      {"join_timeout", put_time<&Options::join_timeout>, take_time<&Options::join_timeout>},
      {"peer_timeout", put_time<&Options::peer_timeout>, take_time<&Options::peer_timeout>},
      {"datagram_bytes", put<&Options::datagram_bytes>, take<&Options::datagram_bytes>},
      {"socket_buffer_bytes", put<&Options::socket_buffer_bytes>,
       take<&Options::socket_buffer_bytes>},
      {"window_bytes", put<&Options::window_bytes>, take<&Options::window_bytes>},
      {"lanes", put<&Options::lanes>, take<&Options::lanes>},
      {"congestion",
       [](Options& to, nb::handle value) {
         to.congestion = text_as(value, &parse_congestion_control);
       },
       take_name<&Options::congestion>},
      {"rate",
       [](Options& to, nb::handle value) {
         to.rate_bits_per_second = bits_per_second(value);
         if (to.congestion == CongestionControl::automatic)
           to.congestion = CongestionControl::fixed;
       },
       take<&Options::rate_bits_per_second>},
      {"seed", put<&Options::seed>, take<&Options::seed>},
      {"faults", [](Options& to, nb::handle value) { to.faults = text_as(value, &parse_faults); },
       [](const Options& from) -> nb::object { return nb::bool_(from.faults.any()); }},
      {"log_level", put<&Options::log_level>, take<&Options::log_level>},
  };
  return all;
}

const Field& field_of(const std::string& name) {
  std::string names;
  for (const Field& field : fields()) {
    if (name == field.name) return field;
    names += (names.empty() ? "" : ", ") + std::string(field.name);
  }
  throw Failure(Status::error(StatusCode::kInvalidArgument,
                              "a communicator has no option %s; it has %s", name.c_str(),
                              names.c_str()));
}

}  // namespace

Options options_from(const nb::kwargs& changes) {
  Options options = value_of(Options::from_environment());
  for (const auto [key, value] : changes) {
    const auto name = nb::cast<std::string>(key);
    try {
      field_of(name).set(options, value);
    } catch (const nb::cast_error&) {
      throw Failure(Status::error(StatusCode::kInvalidArgument, "%s: %s does not fit", name.c_str(),
                                  nb::repr(value).c_str()));
    }
  }
  return options;
}

nb::dict shown(const Options& options) {
  nb::dict made;
  for (const Field& field : fields()) made[field.name] = field.get(options);
  return made;
}

}  // namespace leeway::python
