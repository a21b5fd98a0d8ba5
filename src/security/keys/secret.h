// The secrets of a job. Its processes prove to each other that they hold one of them; a stranger
// holds none. `leeway keygen` makes the file from which they are read.
//
// Secrets are never printed: texts of errors name the file and the line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "keys/derive.h"
#include "leeway/status.h"

namespace leeway::keys {

// 32 random bytes. They are only used to derive keys.
class Secret {
 public:
  explicit Secret(const Key& bytes);
  ~Secret() { wipe(key_); }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  // Returns the key for one purpose.
  Key key_for(std::string_view purpose) const { return expand(key_, purpose); }
  // A number that tells secrets apart and reveals nothing about the secret. Never 0.
  std::uint64_t id() const { return id_; }

 private:
  Key key_;
  std::uint64_t id_;
};

class Certificates;

// Limit on the secrets in one file.
inline constexpr std::size_t kSecretsMax = 8;

class Secrets {
 public:
  // Reads a file with lines of 64 hexadecimal digits: the present secret, then older ones that are
  // still accepted. Skips empty lines and those that begin with '#'. Returns kInvalidArgument if
  // the file cannot be read, others can read it (file_rights.h), or a line cannot be random; the
  // text says what to do.
  static Result<Secrets> read(const std::string& path);
  // As read(), from the file's text. `name` is for errors.
  static Result<Secrets> parse(std::string_view text, const std::string& name);
  // For a process that is a member by its certificate alone. Makes one public "secret" from the
  // job's name, so that comparing secrets compares jobs.
  static Secrets of_job(std::shared_ptr<const Certificates> certificates);

  // From now on certificates, and not a secret, prove at the rendezvous that a process is a member.
  void use(std::shared_ptr<const Certificates> certificates) {
    certificates_ = std::move(certificates);
  }
  // Returns null if a secret proves membership.
  const Certificates* certificates() const { return certificates_.get(); }
  // Returns false if of_job() made the secrets, so that they are public.
  bool are_secret() const { return are_secret_; }

  // From now on secrets only prove membership at a meeting. Pairs of processes seal with keys from
  // their key agreement alone, so groups with different secrets find the same keys for a pair, in
  // whichever order they meet. The ids change, too. A process that does not call this function
  // would find other keys, so it must share no secret with a process that does.
  void use_for_meetings_only();
  bool for_meetings_only() const { return for_meetings_only_; }

  // Returns the secret that a client proves at this attempt. Attempts take the secrets in turn, in
  // the order of the file. Later secrets are for peers whose files were changed earlier, or are not
  // changed yet.
  const Secret& at(std::size_t attempt) const { return all_[attempt % all_.size()]; }
  std::size_t count() const { return all_.size(); }
  const Secret* find(std::uint64_t id) const;
  // Returns the ids in the order of the file.
  std::vector<std::uint64_t> ids() const;

 private:
  std::vector<Secret> all_;  // never empty
  std::shared_ptr<const Certificates> certificates_;
  bool are_secret_ = true;
  bool for_meetings_only_ = false;
};

// Returns a new secret as a line of a secret file.
std::string new_secret_line();

// Returns the id that both lists have, with the least sum of positions; 0 if there is none. The
// order of the arguments does not matter.
std::uint64_t shared_secret(const std::vector<std::uint64_t>& one,
                            const std::vector<std::uint64_t>& other);

}  // namespace leeway::keys
