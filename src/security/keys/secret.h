// The secrets of a job. Its processes prove to each other that they hold one of them; strangers
// hold none. They come from a file that `leeway keygen` makes.
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

// 32 random bytes that are used for nothing but to derive keys.
class Secret {
 public:
  explicit Secret(const Key& bytes);
  ~Secret() { wipe(key_); }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  // The key for one purpose.
  Key key_for(std::string_view purpose) const { return expand(key_, purpose); }
  // A number that tells secrets apart, and reveals nothing about them. Never 0.
  std::uint64_t id() const { return id_; }

 private:
  Key key_;
  std::uint64_t id_;
};

class Certificates;

// Most secrets in one file.
inline constexpr std::size_t kSecretsMax = 8;

class Secrets {
 public:
  // Reads a file with lines of 64 hexadecimal digits: the secret, and older ones that are still
  // accepted. Empty lines, and those that begin with '#', are skipped. Returns kInvalidArgument if
  // the file cannot be read, others can read it (file_rights.h), or a line cannot be random; the
  // text says what to do.
  static Result<Secrets> read(const std::string& path);
  // The same for a file's text; `name` is for errors.
  static Result<Secrets> parse(std::string_view text, const std::string& name);
  // For a process whose certificate alone makes it a member. Makes one public "secret" from the
  // job's name, so that code which compares secrets compares jobs.
  static Secrets of_job(std::shared_ptr<const Certificates> certificates);

  // Lets certificates, and not the first secret, prove at the rendezvous that a process is a
  // member.
  void use(std::shared_ptr<const Certificates> certificates) {
    certificates_ = std::move(certificates);
  }
  // Returns null if secrets prove membership.
  const Certificates* certificates() const { return certificates_.get(); }
  // Returns false if of_job() made them: then they are public.
  bool are_secret() const { return are_secret_; }

  // Uses the secrets only to prove membership of a meeting. Pairs of processes then seal with keys
  // that follow only from their key agreement. So groups with different secrets find the same keys
  // for a pair, in whichever order they meet. The ids of the secrets change, too, so that a process
  // that does not call this shares no secret with one that does: they would find different keys.
  void use_for_meetings_only();
  bool for_meetings_only() const { return for_meetings_only_; }

  // Returns the secret for an attempt: one after the other in the order of the file, then again
  // from the first. All but the first are for processes that changed their file earlier, or will
  // change it later.
  const Secret& at(std::size_t attempt) const { return all_[attempt % all_.size()]; }
  std::size_t count() const { return all_.size(); }
  const Secret* find(std::uint64_t id) const;
  // Ids in the order of the file.
  std::vector<std::uint64_t> ids() const;

 private:
  std::vector<Secret> all_;  // never empty
  std::shared_ptr<const Certificates> certificates_;
  bool are_secret_ = true;
  bool for_meetings_only_ = false;
};

// Returns a new secret as a line of such a file.
std::string new_secret_line();

// Returns the id that is in both lists and has the least sum of positions; 0 if they share none.
// The result does not depend on the order of the arguments.
std::uint64_t shared_secret(const std::vector<std::uint64_t>& one,
                            const std::vector<std::uint64_t>& other);

}  // namespace leeway::keys
