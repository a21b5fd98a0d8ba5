// An authority that makes certificates for tests on the spot.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/contracts.h"
#include "keys/certificates.h"

namespace leeway::keys {

class Authority {
 public:
  static constexpr long kDay = 86'400;

  explicit Authority(const std::string& name = "authority")
      : folder_(
            std::filesystem::temp_directory_path() /
            ("leeway_" + name + "_" + std::to_string(::getpid()) + "_" + std::to_string(next_++))),
        key_(::EVP_EC_gen("P-256")) {
    std::filesystem::create_directories(folder_);
    own_ = make(key_, name, "", -kDay, kDay, true);
    write("ca.pem", [this](FILE* file) { return ::PEM_write_X509(file, own_); });
  }
  ~Authority() {
    ::X509_free(own_);
    ::EVP_PKEY_free(key_);
    std::filesystem::remove_all(folder_);
  }
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // Issues a certificate with these names ("URI:urn:leeway:job"; none if empty), valid from
  // `begins` to `ends`, in seconds from now.
  CertificateFiles issue(const std::string& names, long begins = -kDay, long ends = kDay) {
    const std::string number = std::to_string(next_++);
    EVP_PKEY* const key = ::EVP_EC_gen("P-256");
    X509* const certificate = make(key, "member " + number, names, begins, ends, false);
    const std::string cert_path =
        write(number + ".pem", [&](FILE* file) { return ::PEM_write_X509(file, certificate); });
    const std::string key_path = write(number + ".key", [&](FILE* file) {
      return ::PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    });
    ::chmod(key_path.c_str(), 0600);
    ::X509_free(certificate);
    ::EVP_PKEY_free(key);
    return {path("ca.pem"), cert_path, key_path};
  }
  CertificateFiles member_of(const std::string& job) { return issue("URI:urn:leeway:" + job); }
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  X509* make(EVP_PKEY* key, const std::string& name, const std::string& names, long begins,
             long ends, bool is_authority) {
    X509* const made = ::X509_new();
    ::X509_set_version(made, 2);
    ::ASN1_INTEGER_set(::X509_get_serialNumber(made), next_++);
    ::X509_gmtime_adj(::X509_getm_notBefore(made), begins);
    ::X509_gmtime_adj(::X509_getm_notAfter(made), ends);
    ::X509_set_pubkey(made, key);
    X509_NAME* const subject = ::X509_get_subject_name(made);
    ::X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    ::X509_set_issuer_name(made, is_authority ? subject : ::X509_get_subject_name(own_));
    if (is_authority) add(made, NID_basic_constraints, "critical,CA:TRUE");
    if (!names.empty()) add(made, NID_subject_alt_name, names.c_str());
    LEEWAY_ASSERT(::X509_sign(made, key_, ::EVP_sha256()) > 0);
    return made;
  }
  static void add(X509* certificate, int kind, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    ::X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, kind, value);
    LEEWAY_ASSERT(extension != nullptr && ::X509_add_ext(certificate, extension, -1) == 1);
    ::X509_EXTENSION_free(extension);
  }
  template <typename Write>
  std::string write(const std::string& name, const Write& write_to) {
    FILE* const file = std::fopen(path(name).c_str(), "w");
    LEEWAY_ASSERT(file != nullptr && write_to(file) == 1);
    std::fclose(file);
    return path(name);
  }

  // The counter is atomic because ranks that are threads issue certificates at the same time.
  static inline std::atomic<int> next_{1};
  const std::filesystem::path folder_;
  EVP_PKEY* const key_;
  X509* own_ = nullptr;
};

}  // namespace leeway::keys
