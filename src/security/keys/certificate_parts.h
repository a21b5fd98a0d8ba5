// The OpenSSL objects inside Certificates, from which TLS contexts are made.
#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keys/certificates.h"

namespace leeway::keys {

struct FreeTls {
  void operator()(SSL* ssl) const { ::SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { ::SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { ::SSL_SESSION_free(session); }
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
  void operator()(X509_STORE* store) const { ::X509_STORE_free(store); }
  void operator()(X509_STORE_CTX* context) const { ::X509_STORE_CTX_free(context); }
  void operator()(ASN1_TIME* time) const { ::ASN1_TIME_free(time); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
template <typename T>
using TlsPtr = std::unique_ptr<T, FreeTls>;

struct Certificates::Parts {
  TlsPtr<X509_STORE> authority;
  std::vector<TlsPtr<X509>> chain;  // this process's first
  TlsPtr<EVP_PKEY> key;
};

// Returns JOB if exactly one of the certificate's names is urn:leeway:JOB, else nullopt.
std::optional<std::string> job_of(X509* certificate);

// Returns why verification refused a certificate. If it is not valid now, the text has its validity
// period and this machine's time.
std::string reason_of(X509_STORE_CTX* context);

}  // namespace leeway::keys
