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
  std::shared_ptr<const keys::TlsContext> tls;  // without a secret null, and connections are plain
  bool insecure = false;                        // also plain connections with public addresses

  // Returns true if a connection from or to the address is allowed.
  bool allows(const asio::ip::address& address) const;
};

// With `secrets`, only holders of one of them may connect. Without, only private addresses may, or
// all addresses if `insecure`.
Result<TcpSecurity> make_tcp_security(std::shared_ptr<const keys::Secrets> secrets, bool insecure);

// Credentials that the options name. If any() is true, nothing leaves this process unencrypted.
keys::CredentialFiles credentials_of(const Options& options);

// The error (kInvalidArgument) of a public `address` without a secret.
Status public_address_refused(const asio::ip::address& address);

}  // namespace leeway::rendezvous
