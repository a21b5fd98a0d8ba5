// The secrets of a job: what its processes prove to each other that they hold, and what strangers
// do not. They come from a file that `leeway keygen` makes.
//
// Nothing here is ever printed: texts of errors name the file and the line.
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
  // Tells secrets apart, and tells nothing about them. Never 0.
  std::uint64_t id() const { return id_; }

 private:
  Key key_;
  std::uint64_t id_;
};

class Certificates;

// Most secrets of one file.
inline constexpr std::size_t kSecretsMax = 8;

class Secrets {
 public:
  // A file of lines of 64 hexadecimal digits: the secret, and older ones that are accepted still.
  // Empty lines, and those that begin with '#', are skipped. kInvalidArgument where it cannot be
  // read, others can read it (file_rights.h), or a line cannot be random; the text says what to do.
  static Result<Secrets> read(const std::string& path);
  // The same of a file's text; `name` is for errors.
  static Result<Secrets> parse(std::string_view text, const std::string& name);
  // What a process has that is a member by its certificate alone: one secret that is none, made of
  // the job's name, so that all that compares secrets compares jobs.
  static Secrets of_job(std::shared_ptr<const Certificates> certificates);

  // From now on certificates, and not the first secret, prove at the rendezvous that a process is a
  // member.
  void use(std::shared_ptr<const Certificates> certificates) {
    certificates_ = std::move(certificates);
  }
  // Null: secrets do.
  const Certificates* certificates() const { return certificates_.get(); }
  // False: of_job() made them.
  bool are_secret() const { return are_secret_; }

  // From now on they prove who takes part in a meeting, and no more: what pairs of processes seal
  // with follows from their key agreement alone. So groups that have different secrets find the
  // same keys for a pair, in whichever order they meet.
  // They become other secrets than the same ones in a file, which would find other keys.
  void use_for_meetings_only();
  bool for_meetings_only() const { return for_meetings_only_; }

  // The secret that this process proves first. Its others are those of processes that have changed
  // theirs before or will do so later.
  const Secret& first() const { return all_.front(); }
  // In the order of the file, from its beginning again after the last.
  const Secret& at(std::size_t attempt) const { return all_[attempt % all_.size()]; }
  std::size_t count() const { return all_.size(); }
  const Secret* find(std::uint64_t id) const;
  // In the order of the file.
  std::vector<std::uint64_t> ids() const;

 private:
  std::vector<Secret> all_;  // never empty
  std::shared_ptr<const Certificates> certificates_;
  bool are_secret_ = true;
  bool for_meetings_only_ = false;
};

// A new secret as a line of such a file.
std::string new_secret_line();

// The id that both lists have and that stands first in them, taken together; 0: they share none.
// Whoever compares two lists finds the same, in either order.
std::uint64_t shared_secret(const std::vector<std::uint64_t>& one,
                            const std::vector<std::uint64_t>& other);

}  // namespace leeway::keys
