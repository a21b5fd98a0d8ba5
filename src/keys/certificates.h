// Certificates in place of a secret: a process shows that an authority has named it a member of a
// job. The name is a URI among the certificate's alternative names: urn:leeway:JOB.
//
// Texts of errors name a file, and never what stands in the key's.
#pragma once

#include <memory>
#include <string>

#include "keys/secret.h"

namespace leeway::keys {

// PEM files. LEEWAY_TLS_CA: those who sign. LEEWAY_TLS_CERT: this process's certificate, and those
// between it and the authority. LEEWAY_TLS_KEY: its private key, readable by its owner alone.
struct CertificateFiles {
  std::string authority;
  std::string certificate;
  std::string key;
  bool any() const { return !authority.empty() || !certificate.empty() || !key.empty(); }
};

class Certificates {
 public:
  // kInvalidArgument, with what to do: a file is missing, unreadable or of something else; others
  // can read the key; the key is another certificate's; the certificate names no job, is not valid
  // now, or is signed by somebody else.
  static Result<std::shared_ptr<const Certificates>> read(const CertificateFiles& files);
  ~Certificates();

  // JOB of urn:leeway:JOB. Processes of one job alone speak with each other.
  const std::string& job() const { return job_; }
  // Tells certificates apart.
  const std::string& fingerprint() const { return fingerprint_; }
  // When it ends, as text.
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

// What a process proves to others that it is a member by. With certificates and no secret file it
// holds one Secret that everybody can compute: a name for the job.
struct CredentialFiles {
  std::string secret;
  std::string secret_text;  // what such a file would hold, in its place
  CertificateFiles certificates;
  bool for_meetings_only = false;  // Secrets::use_for_meetings_only()
  bool any() const { return !secret.empty() || !secret_text.empty() || certificates.any(); }
};

// Null: there are none.
Result<std::shared_ptr<const Secrets>> read_credentials(const CredentialFiles& files);

}  // namespace leeway::keys
