#include "keys/certificates.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <string_view>

#include "base/hex_text.h"
#include "keys/certificate_parts.h"
#include "keys/file_rights.h"

namespace leeway::keys {
namespace {

constexpr std::string_view kNamePrefix = "urn:leeway:";

Status unusable(const char* variable, const std::string& path, const char* why) {
  return Status::error(StatusCode::kInvalidArgument, "%s %.120s: %s", variable, path.c_str(), why);
}

// Gives OpenSSL no passphrase, so that it does not ask for one at a terminal.
int no_passphrase(char*, int, int, void*) {
  return 0;
}

Result<TlsPtr<BIO>> open_file(const char* variable, const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return unusable(variable, path, std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) return unusable(variable, path, "not a plain file");
  TlsPtr<BIO> file(::BIO_new_file(path.c_str(), "r"));
  if (file == nullptr) return unusable(variable, path, std::strerror(errno));
  return file;
}

Result<std::vector<TlsPtr<X509>>> read_all(const char* variable, const std::string& path) {
  auto file = open_file(variable, path);
  if (!file.ok()) return file.status();
  std::vector<TlsPtr<X509>> all;
  while (X509* one = ::PEM_read_bio_X509(file->get(), nullptr, no_passphrase, nullptr))
    all.emplace_back(one);
  ::ERR_clear_error();
  if (all.empty()) return unusable(variable, path, "no certificate in it (PEM)");
  return all;
}

Result<TlsPtr<EVP_PKEY>> read_key(const std::string& path) {
  constexpr const char* kVariable = "LEEWAY_TLS_KEY";
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const bool kept = opened < 0 || kept_from_others(opened);
  if (opened >= 0) ::close(opened);
  if (!kept) {
    return unusable(kVariable, path,
                    "others than its owner and the groups of this process may read or write it; "
                    "say `chmod 600` to it, and make a new key if they may have");
  }
  auto file = open_file(kVariable, path);
  if (!file.ok()) return file.status();
  TlsPtr<EVP_PKEY> key(::PEM_read_bio_PrivateKey(file->get(), nullptr, no_passphrase, nullptr));
  ::ERR_clear_error();
  if (key == nullptr)
    return unusable(kVariable, path, "no private key in it (PEM, without a passphrase)");
  return key;
}

std::string time_text(const ASN1_TIME* time) {
  const TlsPtr<BIO> memory(::BIO_new(::BIO_s_mem()));
  std::array<char, 64> text{};
  if (memory == nullptr || ::ASN1_TIME_print(memory.get(), time) != 1) return "an unknown time";
  const int got = ::BIO_read(memory.get(), text.data(), static_cast<int>(text.size()) - 1);
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

std::string clock_text() {
  const TlsPtr<ASN1_TIME> now(::ASN1_TIME_set(nullptr, ::time(nullptr)));
  return now == nullptr ? "an unknown time" : time_text(now.get());
}

// Returns the certificate's validity period and this machine's time, because it may be this
// machine's clock that is wrong.
std::string validity_text(const X509* certificate) {
  return "valid from " + time_text(::X509_get0_notBefore(certificate)) + " until " +
         time_text(::X509_get0_notAfter(certificate)) + ", and this machine's clock says " +
         clock_text();
}

// Returns why other processes would refuse the certificate; an empty string if they would take it.
std::string check_chain(const Certificates::Parts& parts) {
  const TlsPtr<X509_STORE_CTX> context(::X509_STORE_CTX_new());
  STACK_OF(X509)* const between = sk_X509_new_null();
  for (std::size_t i = 1; i < parts.chain.size(); ++i) sk_X509_push(between, parts.chain[i].get());
  const bool made =
      context != nullptr && ::X509_STORE_CTX_init(context.get(), parts.authority.get(),
                                                  parts.chain.front().get(), between) == 1;
  std::string why = "out of memory";
  if (made) {
    why.clear();
    if (::X509_verify_cert(context.get()) != 1) why = reason_of(context.get());
  }
  sk_X509_free(between);
  ::ERR_clear_error();
  return why;
}

std::string fingerprint_of(X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned bytes = 0;
  if (::X509_digest(certificate, ::EVP_sha256(), digest.data(), &bytes) != 1) return {};
  return hex_text(std::as_bytes(std::span(digest).first(bytes)));
}

}  // namespace

std::string reason_of(X509_STORE_CTX* context) {
  const int error = ::X509_STORE_CTX_get_error(context);
  std::string text = ::X509_verify_cert_error_string(error);
  const X509* const certificate = ::X509_STORE_CTX_get_current_cert(context);
  const bool is_of_time =
      error == X509_V_ERR_CERT_NOT_YET_VALID || error == X509_V_ERR_CERT_HAS_EXPIRED;
  if (is_of_time && certificate != nullptr) text += ": " + validity_text(certificate);
  return text;
}

std::optional<std::string> job_of(X509* certificate) {
  auto* const names = static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::optional<std::string> job;
  bool several = false;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(uri)),
                                static_cast<std::size_t>(::ASN1_STRING_length(uri)));
    if (text.substr(0, kNamePrefix.size()) != kNamePrefix) continue;
    several = several || job.has_value();
    job = std::string(text.substr(kNamePrefix.size()));
  }
  ::GENERAL_NAMES_free(names);
  if (several || (job && (job->empty() || job->find('\0') != std::string::npos)))
    return std::nullopt;
  return job;
}

Certificates::Certificates(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Certificates::~Certificates() = default;

Result<std::shared_ptr<const Certificates>> Certificates::read(const CertificateFiles& files) {
  if (files.authority.empty() || files.certificate.empty() || files.key.empty()) {
    const char* const missing = files.authority.empty()     ? "LEEWAY_TLS_CA"
                                : files.certificate.empty() ? "LEEWAY_TLS_CERT"
                                                            : "LEEWAY_TLS_KEY";
    return Status::error(
        StatusCode::kInvalidArgument,
        "%s is not set: LEEWAY_TLS_CA, LEEWAY_TLS_CERT and LEEWAY_TLS_KEY go together", missing);
  }
  auto parts = std::make_unique<Parts>();
  auto authorities = read_all("LEEWAY_TLS_CA", files.authority);
  if (!authorities.ok()) return authorities.status();
  auto chain = read_all("LEEWAY_TLS_CERT", files.certificate);
  if (!chain.ok()) return chain.status();
  auto key = read_key(files.key);
  if (!key.ok()) return key.status();
  parts->chain = std::move(*chain);
  parts->key = std::move(*key);
  parts->authority.reset(::X509_STORE_new());
  for (const auto& one : *authorities) ::X509_STORE_add_cert(parts->authority.get(), one.get());
  X509* const own = parts->chain.front().get();
  const auto bad = [&](const char* why) {
    return unusable("LEEWAY_TLS_CERT", files.certificate, why);
  };
  if (::X509_check_private_key(own, parts->key.get()) != 1) {
    ::ERR_clear_error();
    return unusable("LEEWAY_TLS_KEY", files.key,
                    "not the key of the certificate in LEEWAY_TLS_CERT");
  }
  auto job = job_of(own);
  if (!job)
    return bad("it does not name one job: it needs the alternative name URI:urn:leeway:JOB");
  if (::X509_cmp_current_time(::X509_get0_notBefore(own)) > 0)
    return bad(("it is not valid yet: " + validity_text(own)).c_str());
  if (::X509_cmp_current_time(::X509_get0_notAfter(own)) < 0)
    return bad(("it has expired: " + validity_text(own)).c_str());
  if (const std::string why = check_chain(*parts); !why.empty())
    return bad(("LEEWAY_TLS_CA does not vouch for it: " + why).c_str());
  std::string fingerprint = fingerprint_of(own);
  std::shared_ptr<Certificates> made(new Certificates(std::move(parts)));
  made->job_ = std::move(*job);
  made->fingerprint_ = std::move(fingerprint);
  made->valid_until_ = time_text(::X509_get0_notAfter(made->parts().chain.front().get()));
  return std::shared_ptr<const Certificates>(std::move(made));
}

Result<std::shared_ptr<const Secrets>> read_credentials(const CredentialFiles& files) {
  if (!files.any()) return std::shared_ptr<const Secrets>();
  std::shared_ptr<const Certificates> certificates;
  if (files.certificates.any()) {
    auto read = Certificates::read(files.certificates);
    if (!read.ok()) return read.status();
    certificates = std::move(*read);
  }
  if (!files.secret.empty() && !files.secret_text.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         "a secret and the secret file %.120s: give one of them",
                         files.secret.c_str());
  }
  if (files.secret.empty() && files.secret_text.empty())
    return std::make_shared<const Secrets>(Secrets::of_job(std::move(certificates)));
  auto secrets = files.secret_text.empty() ? Secrets::read(files.secret)
                                           : Secrets::parse(files.secret_text, "(given)");
  if (!secrets.ok()) return secrets.status();
  if (files.for_meetings_only) secrets->use_for_meetings_only();
  if (certificates != nullptr) secrets->use(std::move(certificates));
  return std::make_shared<const Secrets>(std::move(*secrets));
}

}  // namespace leeway::keys
