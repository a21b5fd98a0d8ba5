// How the two sides of a TCP rendezvous protect their connections.
#pragma once

#include <asio/ip/address.hpp>
#include <memory>

#include "keys/certificates.h"
#include "keys/tls_session.h"
#include "leeway/options.h"
#include "leeway/rendezvous.h"

namespace leeway::rendezvous {

struct TcpSecurity {
  std::shared_ptr<const keys::TlsContext> tls;  // null: no secret, plain connections
  bool insecure = false;                        // plain ones with public addresses, too

  // Whether a connection from or to the address may be.
  bool allows(const asio::ip::address& address) const;
};

// A connection may be made for everyone who holds one of the secrets; null: for everyone whose
// address is private.
Result<TcpSecurity> make_tcp_security(std::shared_ptr<const keys::Secrets> secrets, bool insecure);

// What the options name. any(): nothing leaves this process plain.
keys::CredentialFiles credentials_of(const Options& options);

// kInvalidArgument: `address` is public and there is no secret.
Status public_address_refused(const asio::ip::address& address);

}  // namespace leeway::rendezvous
