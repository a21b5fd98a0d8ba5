#include <filesystem>
#include <string>

#include "doctor/probes.h"
#include "rendezvous/candidate.h"
#include "rendezvous/trials.h"
#include "transport/shm/host.h"
#include "transport/shm/segment.h"

namespace leeway::tools::doctor {
namespace {

constexpr const char* kTransportsSection = "Transports";

// Adds the devices of a transport, or the reason why there are none. Missing devices are no
// warning, because UDP works without them.
void add_devices(Findings& findings, const char* title, const rendezvous::Devices& devices) {
  if (!devices.ok()) {
    findings.push_back({kTransportsSection, title, Verdict::info, devices.status().c_str(), {}});
    return;
  }
  for (const rendezvous::TransportDevice& device : *devices) {
    findings.push_back({kTransportsSection, device.name,
                        device.usable ? Verdict::ok : Verdict::warn, device.facts, device.remedy});
  }
}

Finding multicast(const asio::ip::address& address) {
  const Status status = rendezvous::try_multicast(address);
  const std::string name = "multicast";
  const std::string where = "from " + address.to_string() + ": ";
  if (status.ok()) {
    return {kTransportsSection,
            name,
            Verdict::ok,
            where + "came back to this host; LEEWAY_MULTICAST=1 finds out about the others",
            {}};
  }
  return {kTransportsSection, name, Verdict::info, where + status.c_str(),
          "choose an interface that carries multicast with LEEWAY_BIND (ip link shows MULTICAST)"};
}

// Examines the memory that ranks of one host would share.
Finding shared_memory() {
  // The memory that one pair of ranks takes. With more pairs, each pair takes less
  // (src/api/communicator/memory_sharing.cc).
  constexpr std::uintmax_t kEnough = std::uintmax_t{32} << 20;
  const std::string folder = transport::kSharedMemoryFolder;
  const auto host = transport::this_host();
  const Status status = host.ok() ? transport::check_shared_memory(folder) : host.status();
  const std::string udp = ": ranks of this host reach each other by UDP";
  if (!status.ok())
    return {kTransportsSection, "shared memory", Verdict::warn, status.c_str() + udp, {}};
  std::error_code error;
  const auto free = std::filesystem::space(folder, error).available;
  const std::string value = folder + ", " + std::to_string(free >> 20) + " MiB free";
  if (error || free < kEnough) {
    return {kTransportsSection, "shared memory", Verdict::warn,
            value + ": with less than " + std::to_string(kEnough >> 20) +
                " MiB some ranks of this host reach each other by UDP",
            "docker run --shm-size=64m, or mount -o remount,size=64m " + folder};
  }
  return {kTransportsSection,
          "shared memory",
          Verdict::ok,
          value + ": for ranks of this host, of one user, that see the same files",
          {}};
}

// Reports which transport `automatic` would choose if all ranks had the same devices as this one.
Finding automatic(const rendezvous::AutomaticChoice& choice, bool faults) {
  std::string value = "datagrams over " + std::string(to_string(choice.datagrams));
  if (choice.datagrams == TransportKind::udp && !faults)
    value += " between hosts, through shared memory within this one";
  if (!choice.why.empty()) value += " (verbs: " + choice.why + ")";
  return {kTransportsSection, "auto", Verdict::ok, value, {}};
}

// Examines the transport `kind`, which LEEWAY_TRANSPORT names.
Finding wanted(TransportKind kind, const rendezvous::AutomaticChoice& choice,
               const rendezvous::Devices& ucx) {
  const std::string name = "LEEWAY_TRANSPORT";
  const std::string value(to_string(kind));
  std::string obstacle;
  if (kind == TransportKind::verbs && choice.datagrams != TransportKind::verbs)
    obstacle = choice.why;
  if (kind == TransportKind::ucx && !ucx.ok()) obstacle = ucx.status().c_str();
  if (kind == TransportKind::shm)
    obstacle = transport::check_shared_memory(transport::kSharedMemoryFolder).c_str();
  if (obstacle.empty())
    return {kTransportsSection, name, Verdict::ok, value + " can be used here", {}};
  return {kTransportsSection, name, Verdict::missing, value + " cannot be used here", obstacle};
}

}  // namespace

void probe_transports(Findings& findings, const rendezvous::EnvironmentGetter& get) {
  const auto read = rendezvous::options_from_environment(get);
  const Options options = read.ok() ? *read : Options();
  const asio::ip::address address = rendezvous::likely_address(options);
  const rendezvous::Devices ucx = rendezvous::list_devices(TransportKind::ucx);
  add_devices(findings, "RDMA", rendezvous::list_devices(TransportKind::verbs));
  add_devices(findings, "UCX", ucx);
  findings.push_back(shared_memory());
  findings.push_back(multicast(address));
  const rendezvous::AutomaticChoice choice = rendezvous::choose_automatically(options, address);
  if (options.transport != TransportKind::automatic && options.transport != TransportKind::inproc)
    findings.push_back(wanted(options.transport, choice, ucx));
  findings.push_back(automatic(choice, options.faults.any()));
}

}  // namespace leeway::tools::doctor
