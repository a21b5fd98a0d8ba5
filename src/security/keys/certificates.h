// Certificates as an alternative to a secret: an authority confirms that a process is a member of a
// job. The certificate names the job by an alternative name that is a URI: urn:leeway:JOB.
//
// Texts of errors name a file, but never contents of the key's file.
#pragma once

#include <memory>
#include <string>

#include "keys/secret.h"

namespace leeway::keys {

// Paths of PEM files. LEEWAY_TLS_CA: certificates of the authorities. LEEWAY_TLS_CERT: this
// process's certificate, and those between it and the authority. LEEWAY_TLS_KEY: its private key,
// which only the file's owner may be able to read.
struct CertificateFiles {
  std::string authority;
  std::string certificate;
  std::string key;
  bool any() const { return !authority.empty() || !certificate.empty() || !key.empty(); }
};

class Certificates {
 public:
  // Returns kInvalidArgument, with what to do, if
  // - a file is missing, unreadable or of another kind;
  // - others can read the key, or the key belongs to another certificate;
  // - the certificate names no job, is not valid now, or is not signed by these authorities.
  static Result<std::shared_ptr<const Certificates>> read(const CertificateFiles& files);
  ~Certificates();

  // The job, from urn:leeway:JOB. Only processes of one job talk to each other.
  const std::string& job() const { return job_; }
  // SHA-256 of the certificate, in hexadecimal digits. It tells certificates apart.
  const std::string& fingerprint() const { return fingerprint_; }
  // When the certificate's validity ends, as text.
  const std::string& valid_until() const { return valid_until_; }

  struct Parts;  // OpenSSL's
  const Parts& parts() const { return *parts_; }

 private:
  explicit Certificates(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
  std::string job_;
  std::string fingerprint_;
  std::string valid_until_;
};

// Means by which a process proves that it is a member. If there are certificates and no secret,
// read_credentials() derives a public Secret from the job's name.
struct CredentialFiles {
  std::string secret;
  std::string secret_text;  // contents of a secret file, used instead of the file
  CertificateFiles certificates;
  bool for_meetings_only = false;  // Secrets::use_for_meetings_only()
  bool any() const { return !secret.empty() || !secret_text.empty() || certificates.any(); }
};

// Returns null if neither a secret nor certificates are given.
Result<std::shared_ptr<const Secrets>> read_credentials(const CredentialFiles& files);

}  // namespace leeway::keys
