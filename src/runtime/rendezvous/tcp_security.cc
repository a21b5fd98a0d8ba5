#include "rendezvous/tcp_security.h"

#include "rendezvous/address.h"

namespace leeway::rendezvous {

bool TcpSecurity::allows(const asio::ip::address& address) const {
  return tls != nullptr || insecure || is_private(address);
}

Result<TcpSecurity> make_tcp_security(std::shared_ptr<const keys::Secrets> secrets, bool insecure) {
  if (secrets == nullptr) return TcpSecurity{nullptr, insecure};
  auto tls = keys::TlsContext::make(std::move(secrets));
  if (!tls.ok()) return tls.status();
  return TcpSecurity{std::move(*tls), insecure};
}

keys::CredentialFiles credentials_of(const Options& options) {
  return {options.secret_file,
          options.secret,
          {options.tls_ca, options.tls_certificate, options.tls_key},
          options.secret_for_meeting_only};
}

Status public_address_refused(const asio::ip::address& address) {
  return Status::error(StatusCode::kInvalidArgument,
                       "%s is a public address, and this job has no secret: anyone could take part "
                       "or end it. Make one with `leeway keygen > cluster.key`, and give it to all "
                       "ranks with LEEWAY_SECRET_FILE (in a laboratory: LEEWAY_INSECURE=1)",
                       unmapped(address).to_string().c_str());
}

}  // namespace leeway::rendezvous
