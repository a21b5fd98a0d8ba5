#include "rendezvous/environment.h"

#include <array>
#include <cstdlib>
#include <limits>
#include <system_error>

#include "base/fnv.h"
#include "base/limits.h"
#include "base/read_number.h"
#include "rendezvous/address.h"
#include "rendezvous/log.h"
#include "rendezvous/metrics_address.h"
#include "rendezvous/tcp_security.h"
#include "rendezvous/variable_names.h"

namespace leeway::rendezvous {
namespace {

// Names of a launcher's variables; nullptr for those that the launcher does not set.
struct Convention {
  LauncherKind kind;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
};
constexpr std::array<Convention, 5> kConventions = {{
    {LauncherKind::leeway, "LEEWAY_RANK", "LEEWAY_WORLD_SIZE", "LEEWAY_LOCAL_RANK", nullptr},
    {LauncherKind::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {LauncherKind::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {LauncherKind::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {LauncherKind::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
}};

constexpr std::size_t kPlaceVariables = 3;  // the first ones, which say where this rank is
constexpr std::array<EnvironmentVariable, 29> kVariables = {{
    {"LEEWAY_RANK", "this process's rank", "the launcher's"},
    {"LEEWAY_WORLD_SIZE", "number of ranks", "the launcher's"},
    {"LEEWAY_LOCAL_RANK", "place among this machine's ranks", "the launcher's"},
    {"LEEWAY_RENDEZVOUS", "host:port where rank 0 listens; [v6]:port for IPv6",
     "from the launcher where possible"},
    {"LEEWAY_RUN_ID", "name of this start: ranks of others stay out; equal on all ranks",
     "from leeway's own launcher, torchrun's --rdzv-id or Open MPI; else none"},
    {"LEEWAY_TRANSPORT", "auto, udp, verbs, ucx, inproc, shm or mixed; equal on all ranks", "auto"},
    {"LEEWAY_MULTICAST", "1: send once what goes to all ranks alike", "0"},
    {"LEEWAY_BIND", "local address for data", "the route to rank 0"},
    {"LEEWAY_PORT", "UDP port, for firewalls; local rank r takes port + r * LEEWAY_LANES",
     "the system's choice"},
    {"LEEWAY_SECRET_FILE", "file of leeway keygen; equal on all ranks", "none: private networks"},
    {"LEEWAY_REQUIRE_SEALED", "1: a group without a secret or certificates is refused", "0"},
    {"LEEWAY_TLS_CA", "PEM file of who signs certificates, in place of a secret", "none"},
    {"LEEWAY_TLS_CERT", "PEM file: this process's certificate, for URI:urn:leeway:JOB", "none"},
    {"LEEWAY_TLS_KEY", "PEM file: its private key", "none"},
    {"LEEWAY_INSECURE", "1: public addresses without a secret, for laboratories", "0"},
    {"LEEWAY_JOIN_TIMEOUT_MS", "patience at the rendezvous", "60000"},
    {"LEEWAY_PEER_TIMEOUT_MS", "a silent peer is dead after this; 0: never", "3000"},
    {"LEEWAY_DATAGRAM_BYTES", "largest UDP payload, 512 to 9216", "from the path MTU"},
    {"LEEWAY_SOCKET_BUFFER_BYTES", "socket buffer per direction",
     "8 MiB, or what the kernel allows"},
    {"LEEWAY_WINDOW_BYTES", "data in flight to one peer; equal on all ranks",
     "1 MiB, or a share of the peer's receive buffer; paced: 64 MiB of all"},
    {"LEEWAY_CONGESTION",
     "automatic, none, fixed, scavenger, wan or fabric: what paces all that is sent",
     "automatic: wan where a rank is more than 2 ms from rank 0 or has a public address, else "
     "none; fixed where LEEWAY_RATE is set"},
    {"LEEWAY_SITE", "name of this rank's site, or host: large calls go inside sites, then between",
     "none"},
    {"LEEWAY_LANES", "sockets with a thread each, beyond 25 Gb/s, 1 to 8; equal on all ranks", "1"},
    {"LEEWAY_RATE", "bits per second for all peers together, of LEEWAY_CONGESTION=fixed", "none"},
    {"LEEWAY_SEED", "permutations and stochastic rounding; rank 0's counts", "0"},
    {"LEEWAY_FAULT", "injected faults, e.g. loss=0.1,burst=8,delay=5ms", "none"},
    {"LEEWAY_LOG", "trace, debug, info, warn, error or off", "warn"},
    {"LEEWAY_METRICS",
     "host:port for Prometheus and leeway top; local rank r takes port + r; port 0: a free one",
     "none"},
    {"LEEWAY_TRACE", "file for a qlog of every datagram, 64 MiB at most; run.sqlog: run.RANK.sqlog",
     "none"},
}};

// Reads variables as text, numbers or flags.
class Reader {
 public:
  explicit Reader(const EnvironmentGetter& get) : get_(get) {}

  // Returns null if the variable is unset or empty.
  const char* text(const char* name) const {
    const char* const value = name == nullptr ? nullptr : get_(name);
    return value == nullptr || *value == '\0' ? nullptr : value;
  }

  // Refuses a variable that is set and empty, as after `LEEWAY_PORT=$PORT` where PORT is misspelt.
  // A user who sets a variable expects an effect.
  Status refuse_empty(const char* name) const {
    const char* const value = get_(name);
    if (value == nullptr || *value != '\0') return Status();
    return Status::error(StatusCode::kInvalidArgument,
                         "%s is set and empty; give it a value, or unset it", name);
  }

  template <typename Number>
  Result<std::optional<Number>> number(const char* name, Number min, Number max) const {
    const char* const value = text(name);
    if (value == nullptr) return std::optional<Number>();
    Number parsed{};
    if (read_number(value, parsed) && parsed >= min && parsed <= max)
      return std::optional<Number>(parsed);
    return Status::error(StatusCode::kInvalidArgument,
                         "%s=\"%.60s\" is not a whole number from %s to %s", name, value,
                         std::to_string(min).c_str(), std::to_string(max).c_str());
  }

  // Sets `value` to the number, if the variable is set.
  template <typename Number>
  Status set(const char* name, Number min, Number max, Number& value) const {
    const auto given = number(name, min, max);
    if (given.ok()) value = given->value_or(value);
    return given.status();
  }
  // Sets `value` from a variable of 0 or 1, if it is set.
  Status set(const char* name, bool& value) const {
    const auto given = number<int>(name, 0, 1);
    if (given.ok() && *given) value = **given == 1;
    return given.status();
  }

 private:
  const EnvironmentGetter& get_;
};

// Returns an error that another function found in a variable's value, with the variable's name.
Status refused(const char* name, const Status& why) {
  return Status::error(why.code(), "%s: %s", name, why.c_str());
}

// Returns true in a Slurm batch script outside srun. Such a script has rank 0 and no number of
// ranks, while every job step has both. The caller has seen that only one of the two is set.
bool is_batch_script(const Reader& read, const Convention& convention) {
  const char* const rank = read.text(convention.rank);
  return convention.kind == LauncherKind::slurm && rank != nullptr && std::string_view(rank) == "0";
}

// Returns the detected launcher's variable names, or null. A rank without a number of ranks, or the
// reverse, is an error, because each process would then be a group of its own.
Result<const Convention*> find_convention(const Reader& read) {
  const Convention* half = nullptr;
  for (const Convention& convention : kConventions) {
    const bool has_rank = read.text(convention.rank) != nullptr;
    const bool has_size = read.text(convention.size) != nullptr;
    if (has_rank && has_size) return &convention;
    if (has_rank == has_size || is_batch_script(read, convention)) continue;
    if (half == nullptr) half = &convention;
    if (convention.kind == LauncherKind::leeway) break;
  }
  if (half == nullptr) return nullptr;
  const bool has_rank = read.text(half->rank) != nullptr;
  return Status::error(StatusCode::kInvalidArgument,
                       "%s is set but %s is not; set both or neither%s",
                       has_rank ? half->rank : half->size, has_rank ? half->size : half->rank,
                       half->kind == LauncherKind::leeway
                           ? ""
                           : ", or give the place in LEEWAY_RANK and LEEWAY_WORLD_SIZE");
}

Status read_place(const Reader& read, const Convention& names, Launcher& launcher) {
  int rank = 0;
  int size = 0;
  Status status = read.set(names.rank, 0, limits::kPeersMax - 1, rank);
  if (status.ok()) status = read.set(names.size, 1, limits::kPeersMax, size);
  if (!status.ok()) return status;
  const auto local_rank = read.number<int>(names.local_rank, 0, limits::kPeersMax - 1);
  if (!local_rank.ok()) return local_rank.status();
  const auto local_size = read.number<int>(names.local_size, 1, limits::kPeersMax);
  if (!local_size.ok()) return local_size.status();
  if (rank >= size) {
    return Status::error(StatusCode::kInvalidArgument, "%s=%d is impossible with %s=%d", names.rank,
                         rank, names.size, size);
  }
  launcher = {names.kind, rank, size, *local_rank, *local_size, {}};
  return {};
}

// Returns MASTER_ADDR with the port after MASTER_PORT, which torch uses itself. If MASTER_PORT is
// 65535, the port is 65534.
Result<std::string> torchrun_rendezvous(const Reader& read) {
  const char* const host = read.text("MASTER_ADDR");
  const auto port = read.number<std::uint16_t>("MASTER_PORT", 1, 65535);
  if (!port.ok()) return port.status();
  if (host == nullptr || !*port) return std::string();
  const int ours = **port == 65535 ? 65534 : **port + 1;
  return to_text(HostPort{host, static_cast<std::uint16_t>(ours)});
}

// Returns a text that is equal on all ranks of a job and different between jobs of one machine.
// Returns an empty text if the launcher sets none.
std::string job_identifier(const Reader& read) {
  for (const char* const name : {"OMPI_MCA_orte_ess_jobid", "PMIX_NAMESPACE"}) {
    if (const char* const value = read.text(name)) return value;
  }
  const char* const job = read.text("SLURM_JOB_ID");
  const char* const step = read.text("SLURM_STEP_ID");
  return job != nullptr && step != nullptr ? std::string(job) + "." + step : std::string();
}

bool on_one_machine(const Reader& read, const Launcher& launcher) {
  const char* const nodes = read.text("SLURM_STEP_NUM_NODES");
  return launcher.local_size == launcher.size ||
         (nodes != nullptr && std::string_view(nodes) == "1");
}

std::uint16_t port_of_job(std::string_view identifier) {
  return static_cast<std::uint16_t>(kDerivedPortFirst + fnv1a(identifier) % kDerivedPortCount);
}

// Returns a number for this launch of the job, equal on all ranks, or 0 if the launcher tells none.
// Slurm's job identifier does not serve, because a heterogeneous job has several.
std::uint64_t start_of(const Reader& read, LauncherKind kind) {
  const char* id = read.text("LEEWAY_RUN_ID");
  if (id == nullptr && kind == LauncherKind::torchrun) id = read.text("TORCHELASTIC_RUN_ID");
  if (id == nullptr && kind == LauncherKind::open_mpi) id = read.text("OMPI_MCA_orte_ess_jobid");
  return id == nullptr ? 0 : fnv1a(id);
}

Result<std::string> find_rendezvous(const Reader& read, const Launcher& launcher) {
  if (const char* const given = read.text("LEEWAY_RENDEZVOUS")) {
    const auto parsed = parse_host_port(given);
    if (parsed.ok()) return std::string(given);
    return refused("LEEWAY_RENDEZVOUS", parsed.status());
  }
  if (launcher.kind == LauncherKind::torchrun) return torchrun_rendezvous(read);
  const std::string job = job_identifier(read);
  const bool derivable =
      launcher.kind != LauncherKind::none && launcher.kind != LauncherKind::leeway;
  if (!derivable || job.empty() || !on_one_machine(read, launcher)) return std::string();
  return "127.0.0.1:" + std::to_string(port_of_job(job));
}

// Returns the rendezvous for a program that sets its rank itself. Only local_rank is taken from the
// launcher, because ranks of one host need different ports.
Result<Launcher> rendezvous_alone(const Reader& read) {
  Launcher launcher;
  const auto convention = find_convention(read);
  if (convention.ok() && *convention != nullptr) {
    const auto local_rank = read.number<int>((*convention)->local_rank, 0, limits::kPeersMax - 1);
    if (!local_rank.ok()) return local_rank.status();
    launcher.local_rank = *local_rank;
  }
  auto rendezvous = find_rendezvous(read, launcher);
  if (!rendezvous.ok()) return rendezvous.status();
  launcher.rendezvous = *rendezvous;
  return launcher;
}

Status read_sizes(const Reader& read, Options& options) {
  constexpr std::size_t kBufferMax = std::numeric_limits<int>::max();  // what setsockopt takes
  constexpr std::size_t kWindowMax = std::numeric_limits<std::uint32_t>::max();
  Status status = read.set("LEEWAY_DATAGRAM_BYTES", limits::kDatagramBytesMin,
                           limits::kFrameBytesMax, options.datagram_bytes);
  if (status.ok())
    status = read.set("LEEWAY_SOCKET_BUFFER_BYTES", std::size_t{1}, kBufferMax,
                      options.socket_buffer_bytes);
  if (status.ok())
    status = read.set("LEEWAY_WINDOW_BYTES", std::size_t{1}, kWindowMax, options.window_bytes);
  return status;
}

Status read_join_timeout_and_seed(const Reader& read, Options& options) {
  constexpr std::int64_t kDayMs = 86'400'000;
  const auto timeout = read.number<std::int64_t>("LEEWAY_JOIN_TIMEOUT_MS", 1, kDayMs);
  if (!timeout.ok()) return timeout.status();
  if (*timeout) options.join_timeout = std::chrono::milliseconds(**timeout);
  return read.set("LEEWAY_SEED", std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
                  options.seed);
}

Status read_peer_timeout(const Reader& read, Options& options) {
  constexpr std::int64_t kDayMs = 86'400'000;
  const auto timeout = read.number<std::int64_t>("LEEWAY_PEER_TIMEOUT_MS", 0, kDayMs);
  if (!timeout.ok()) return timeout.status();
  if (!*timeout) return {};
  options.peer_timeout =
      **timeout == 0 ? no_deadline : Duration(std::chrono::milliseconds(**timeout));
  return {};
}

Status read_congestion(const Reader& read, Options& options) {
  const auto rate = read.number<std::uint64_t>("LEEWAY_RATE", limits::kRateMin, limits::kRateMax);
  if (!rate.ok()) return rate.status();
  if (*rate) {
    options.rate_bits_per_second = **rate;
    options.congestion = CongestionControl::fixed;
  }
  if (const char* const value = read.text("LEEWAY_CONGESTION")) {
    const auto control = parse_congestion_control(value);
    if (!control.ok()) return refused("LEEWAY_CONGESTION", control.status());
    options.congestion = *control;
  }
  if (options.congestion == CongestionControl::fixed && options.rate_bits_per_second == 0)
    return Status::error(StatusCode::kInvalidArgument,
                         "LEEWAY_CONGESTION=fixed needs LEEWAY_RATE, in bits per second");
  return {};
}

Status read_bind(const Reader& read, Options& options) {
  const char* const value = read.text("LEEWAY_BIND");
  if (value == nullptr) return {};
  std::error_code error;
  asio::ip::make_address(value, error);
  if (error) {
    return Status::error(StatusCode::kInvalidArgument,
                         "LEEWAY_BIND=\"%.60s\" is not an IPv4 or IPv6 address of this machine",
                         value);
  }
  options.bind_address = value;
  return {};
}

void read_credentials(const Reader& read, Options& options) {
  if (const char* const path = read.text("LEEWAY_SECRET_FILE")) options.secret_file = path;
  if (const char* const path = read.text("LEEWAY_TLS_CA")) options.tls_ca = path;
  if (const char* const path = read.text("LEEWAY_TLS_CERT")) options.tls_certificate = path;
  if (const char* const path = read.text("LEEWAY_TLS_KEY")) options.tls_key = path;
}

Status read_requirement(const Reader& read, Options& options) {
  const auto sealed = read.number<int>("LEEWAY_REQUIRE_SEALED", 0, 1);
  if (!sealed.ok()) return sealed.status();
  options.require_sealed |= sealed->value_or(0) == 1;
  return {};
}

Status read_security(const Reader& read, Options& options) {
  constexpr std::uint16_t kPortMax = std::numeric_limits<std::uint16_t>::max();
  Status status = read.set("LEEWAY_PORT", std::uint16_t{1}, kPortMax, options.port);
  if (status.ok()) status = read.set("LEEWAY_INSECURE", options.insecure);
  if (!status.ok()) return status;
  read_credentials(read, options);
  return read_requirement(read, options);
}

Status read_transport(const Reader& read, Options& options) {
  if (const char* const value = read.text("LEEWAY_TRANSPORT")) {
    const auto kind = parse_transport(value);
    if (!kind.ok()) return refused("LEEWAY_TRANSPORT", kind.status());
    options.transport = *kind;
  }
  return read.set("LEEWAY_MULTICAST", options.multicast);
}

Status read_site_and_lanes(const Reader& read, Options& options) {
  if (const char* const name = read.text("LEEWAY_SITE")) options.site = name;
  return read.set("LEEWAY_LANES", 1, limits::kLanesMax, options.lanes);
}

Status read_fault_and_log(const Reader& read, Options& options) {
  if (const char* const value = read.text("LEEWAY_FAULT")) {
    auto faults = parse_faults(value);
    if (!faults.ok()) {
      return Status::error(faults.status().code(), "LEEWAY_FAULT=\"%.60s\": %s", value,
                           faults.status().c_str());
    }
    options.faults = *faults;
  }
  if (const char* const value = read.text("LEEWAY_LOG")) {
    const auto level = parse_log_level(value);
    if (!level.ok()) return refused("LEEWAY_LOG", level.status());
    options.log_level = value;
  }
  return {};
}

// Raises the port by the rank's place on its host times the lanes, so that each rank has a port for
// each of its lanes.
Status take_own_port(const Launcher& launcher, Options& options) {
  if (options.port == 0) return {};
  const int local_rank = launcher.local_rank.value_or(0);
  const int port = options.port + local_rank * options.lanes;
  if (port > std::numeric_limits<std::uint16_t>::max()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "LEEWAY_PORT=%u leaves no port for local rank %d with %d lanes: a rank of "
                         "a host takes the ports behind those of the rank before",
                         unsigned{options.port}, local_rank, options.lanes);
  }
  options.port = static_cast<std::uint16_t>(port);
  return {};
}

// Gives each rank of a host a metrics port of its own.
Status read_watching(const Reader& read, const Launcher& launcher, Options& options) {
  if (const char* const value = read.text("LEEWAY_METRICS")) {
    auto address = parse_metrics_address(value);
    if (address.ok()) address = shifted(*address, launcher.local_rank.value_or(0));
    if (!address.ok()) return refused("LEEWAY_METRICS", address.status());
    options.metrics = to_text(*address);
  }
  if (const char* const path = read.text("LEEWAY_TRACE")) options.trace = path;
  return {};
}

}  // namespace

EnvironmentGetter process_environment() {
  return [](const char* name) { return std::getenv(name); };
}

std::string_view to_string(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::none:
      return "none";
    case LauncherKind::leeway:
      return "leeway";
    case LauncherKind::torchrun:
      return "torchrun";
    case LauncherKind::open_mpi:
      return "Open MPI";
    case LauncherKind::pmi:
      return "PMI";
    case LauncherKind::slurm:
      return "Slurm";
  }
  return "unknown";
}

Result<Launcher> detect_launcher(const EnvironmentGetter& get) {
  const Reader read(get);
  for (const char* const name : {"LEEWAY_RANK", "LEEWAY_WORLD_SIZE", "LEEWAY_RENDEZVOUS"}) {
    if (Status status = read.refuse_empty(name); !status.ok()) return status;
  }
  const auto convention = find_convention(read);
  if (!convention.ok()) return convention.status();
  Launcher launcher;
  if (*convention != nullptr) {
    if (Status status = read_place(read, **convention, launcher); !status.ok()) return status;
  }
  auto rendezvous = find_rendezvous(read, launcher);
  if (!rendezvous.ok()) return rendezvous.status();
  launcher.rendezvous = *rendezvous;
  return launcher;
}

std::string reason_to_be_alone(const EnvironmentGetter& get) {
  const Reader read(get);
  const auto tasks = read.number<int>("SLURM_NTASKS", 2, limits::kPeersMax);
  const bool is_batch = tasks.ok() && *tasks && read.text("SLURM_STEP_NUM_TASKS") == nullptr;
  if (!is_batch) return {};
  return "this process is a group of one: a batch script of Slurm has " + std::to_string(**tasks) +
         " tasks, and srun starts them as ranks (srun PROGRAM)";
}

Result<Options> options_from_environment(const EnvironmentGetter& get,
                                         Options::Membership membership) {
  const Reader read(get);
  const bool from_caller = membership == Options::Membership::from_caller;
  for (const EnvironmentVariable& variable :
       std::span(kVariables).subspan(from_caller ? kPlaceVariables : 0)) {
    if (Status status = read.refuse_empty(variable.name); !status.ok()) return status;
  }
  const auto launcher = from_caller ? rendezvous_alone(read) : detect_launcher(get);
  if (!launcher.ok()) return launcher.status();
  Options options;
  if (launcher->kind != LauncherKind::none) {
    options.rank = launcher->rank;
    options.world_size = launcher->size;
    options.restart_count = start_of(read, launcher->kind);
  }
  options.rendezvous = launcher->rendezvous;
  for (auto* const step :
       {read_sizes, read_join_timeout_and_seed, read_peer_timeout, read_congestion, read_transport,
        read_bind, read_site_and_lanes, read_security, read_fault_and_log}) {
    if (Status status = step(read, options); !status.ok()) return status;
  }
  if (Status status = take_own_port(*launcher, options); !status.ok()) return status;
  if (Status status = read_watching(read, *launcher, options); !status.ok()) return status;
  return options;
}

Status seal_by_default(Options& options, const EnvironmentGetter& get) {
  if (credentials_of(options).any()) return Status();
  const Reader read(get);
  for (const char* const name : kProtectingVariables) {
    if (Status status = read.refuse_empty(name); !status.ok()) return status;
  }
  read_credentials(read, options);
  if (Status status = read_requirement(read, options); !status.ok()) return status;
  const bool alone = options.world_size.value_or(1) == 1;
  if (!options.require_sealed || alone || credentials_of(options).any()) return Status();
  return Status::error(
      StatusCode::kInvalidArgument,
      "the group would be plain, and LEEWAY_REQUIRE_SEALED=1 (or require_sealed) "
      "forbids that: give all ranks a secret (leeway keygen > FILE; LEEWAY_SECRET_FILE=FILE) or "
      "certificates (LEEWAY_TLS_CA, LEEWAY_TLS_CERT, LEEWAY_TLS_KEY)");
}

LogLevel log_level(const EnvironmentGetter& get) {
  const char* const name = Reader(get).text("LEEWAY_LOG");
  const auto level = parse_log_level(name == nullptr ? "" : name);
  return level.ok() ? *level : LogLevel::warn;
}

std::span<const EnvironmentVariable> environment_variables() {
  return kVariables;
}

}  // namespace leeway::rendezvous

namespace leeway {

Result<Options> Options::from_environment(Membership membership) {
  if (Status status = rendezvous::check_process_names(); !status.ok()) return status;
  return rendezvous::options_from_environment(rendezvous::process_environment(), membership);
}

}  // namespace leeway
