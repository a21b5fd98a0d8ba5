#include <string>
#include <string_view>

#include "base/environment.h"
#include "doctor/probes.h"
#include "keys/certificates.h"
#include "keys/secret.h"
#include "leeway/options.h"
#include "rendezvous/tcp_security.h"
#include "rendezvous/variable_names.h"

namespace leeway::tools::doctor {
namespace {

constexpr const char* kLaunchSection = "Launcher";
constexpr const char* kVariableSection = "Environment";

Finding place(const rendezvous::Launcher& launcher) {
  if (launcher.kind == rendezvous::LauncherKind::none) {
    return {kLaunchSection,
            "started by",
            Verdict::info,
            "no launcher; --ranks N starts N local processes",
            {}};
  }
  std::string value = std::string(rendezvous::to_string(launcher.kind)) + ": rank " +
                      std::to_string(launcher.rank) + " of " + std::to_string(launcher.size);
  if (launcher.local_rank) value += ", local rank " + std::to_string(*launcher.local_rank);
  return {kLaunchSection, "started by", Verdict::ok, value, {}};
}

Finding rendezvous(const rendezvous::Launcher& launcher) {
  if (!launcher.rendezvous.empty())
    return {kLaunchSection, "rendezvous", Verdict::ok, launcher.rendezvous, {}};
  if (launcher.size == 1)
    return {kLaunchSection, "rendezvous", Verdict::info, "not needed for one process", {}};
  return {kLaunchSection, "rendezvous", Verdict::missing,
          "the launcher tells no address across machines",
          "export LEEWAY_RENDEZVOUS=<host of rank 0>:<free port> on all ranks"};
}

Finding variable_finding(const rendezvous::EnvironmentVariable& variable,
                         const rendezvous::EnvironmentGetter& get) {
  const char* const value = get(variable.name);
  const bool set = value != nullptr && *value != '\0';
  const std::string meaning = variable.meaning;
  return {kVariableSection,
          variable.name,
          set ? Verdict::ok : Verdict::info,
          set ? std::string(value) + "  (" + meaning + ")"
              : "not set: " + meaning + "; default: " + variable.default_value,
          {}};
}

Finding secret(const Options& options) {
  const auto read = keys::Secrets::read(options.secret_file);
  if (!read.ok()) {
    return {kLaunchSection, "secret", Verdict::missing, std::string(read.status().text()),
            "leeway keygen > FILE, on all hosts the same"};
  }
  return {kLaunchSection,
          "secret",
          Verdict::ok,
          std::to_string(read->ids().size()) + " in " + options.secret_file,
          {}};
}

Finding certificates(const Options& options) {
  const auto read =
      keys::Certificates::read({options.tls_ca, options.tls_certificate, options.tls_key});
  if (!read.ok()) {
    return {kLaunchSection, "certificates", Verdict::missing, std::string(read.status().text()),
            "docs/wide-area.md makes them in five lines"};
  }
  return {kLaunchSection,
          "certificates",
          Verdict::ok,
          "of job \"" + (*read)->job() + "\", valid until " + (*read)->valid_until(),
          {}};
}

}  // namespace

void probe_environment(Findings& findings, const rendezvous::EnvironmentGetter& get) {
  const auto launcher = rendezvous::detect_launcher(get);
  if (launcher.ok()) {
    findings.push_back(place(*launcher));
    findings.push_back(rendezvous(*launcher));
  }
  const auto options = rendezvous::options_from_environment(get);
  if (!options.ok()) {
    findings.push_back({kLaunchSection, "variables", Verdict::missing,
                        std::string(options.status().text()), "correct or unset the variable"});
  }
  if (options.ok()) {
    Options several = *options;
    several.world_size = 2;
    const Status sealed = rendezvous::seal_by_default(several, get);
    if (!sealed.ok()) {
      findings.push_back({kLaunchSection, "sealing", Verdict::missing, std::string(sealed.text()),
                          "leeway keygen > FILE; export LEEWAY_SECRET_FILE=FILE on all hosts"});
    }
  }
  if (options.ok() && !options->secret_file.empty()) findings.push_back(secret(*options));
  if (options.ok() && rendezvous::credentials_of(*options).certificates.any())
    findings.push_back(certificates(*options));
  for (const rendezvous::OddVariable& odd : rendezvous::odd_variables(environment())) {
    findings.push_back({kVariableSection, odd.name, Verdict::missing, odd.text(),
                        "correct the name, or unset " + odd.name});
  }
  for (const rendezvous::EnvironmentVariable& variable : rendezvous::environment_variables()) {
    findings.push_back(variable_finding(variable, get));
  }
  for (const char* const name : rendezvous::names_read_elsewhere()) {
    if (!std::string_view(name).starts_with("LEEWAY_NCCL_")) continue;
    const char* const value = get(name);
    findings.push_back({kVariableSection,
                        name,
                        value != nullptr ? Verdict::ok : Verdict::info,
                        std::string(value != nullptr ? value : "not set") +
                            "  (programs of NCCL: src/interop/nccl/README.md)",
                        {}});
  }
}

}  // namespace leeway::tools::doctor
