#include "keys/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "base/hex_text.h"
#include "keys/certificates.h"
#include "keys/file_rights.h"

namespace leeway::keys {
namespace {

// A file that is longer cannot be a secret file.
constexpr std::size_t kFileBytesMax = 4096;

constexpr std::string_view kDigits = "0123456789abcdef";

// Contents of a secret file; the destructor wipes them from memory.
struct SecretText {
  std::array<char, kFileBytesMax + 1> bytes{};
  std::size_t size = 0;
  ~SecretText() { wipe(std::as_writable_bytes(std::span(bytes))); }
  std::string_view text() const { return {bytes.data(), size}; }
};

std::optional<unsigned> digit(char c) {
  const std::size_t at = kDigits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

std::optional<Key> key_of(std::string_view line) {
  Key key;
  if (line.size() != 2 * key.size()) return std::nullopt;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto high = digit(line[2 * i]);
    const auto low = digit(line[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    key[i] = static_cast<std::byte>(*high << 4 | *low);
  }
  return key;
}

// Returns false for 32 bytes that are hardly random. Such bytes have at most 16 different values,
// as one random key in 10^13 has, or count up in equal steps.
bool may_be_random(const Key& key) {
  std::array<std::byte, 256> seen{};
  bool counts = true;
  for (std::size_t i = 0; i < key.size(); ++i) {
    seen[static_cast<std::size_t>(key[i])] = std::byte{1};
    const auto step = [&](std::size_t at) {
      return (static_cast<unsigned>(key[at]) - static_cast<unsigned>(key[at - 1])) & 0xFF;
    };
    counts = counts && (i < 2 || step(i) == step(1));
  }
  const auto different = std::count(seen.begin(), seen.end(), std::byte{1});
  wipe(seen);
  return !counts && static_cast<std::size_t>(different) > key.size() / 2;
}

std::string_view trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

Status refused(const std::string& path, const char* why) {
  return Status::error(StatusCode::kInvalidArgument, "secret file %.120s: %s", path.c_str(), why);
}

Status read_text(const std::string& path, SecretText& text) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    const std::string why = std::string(std::strerror(errno)) +
                            "; LEEWAY_SECRET_FILE or Options::secret_file names it, from where the "
                            "program was started, and `leeway keygen > FILE` makes one";
    return refused(path, why.c_str());
  }
  struct stat facts {};
  Status status;
  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    status = refused(path, "not a plain file");
  } else if (!kept_from_others(file)) {
    status = refused(path,
                     "others than its owner and the groups of this process may read or write it; "
                     "say `chmod 600` to it, and make a new one with `leeway keygen` if they may "
                     "have");
  }
  while (status.ok() && text.size < text.bytes.size()) {
    const ssize_t got = ::read(file, text.bytes.data() + text.size, text.bytes.size() - text.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = refused(path, std::strerror(errno));
    if (got <= 0) break;
    text.size += static_cast<std::size_t>(got);
  }
  ::close(file);
  if (status.ok() && text.size > kFileBytesMax) status = refused(path, "too long");
  return status;
}

// Returns the sum of the id's positions in both lists; nullopt if a list lacks it.
std::optional<std::size_t> places(std::uint64_t id, const std::vector<std::uint64_t>& one,
                                  const std::vector<std::uint64_t>& other) {
  const auto here = std::find(one.begin(), one.end(), id);
  const auto there = std::find(other.begin(), other.end(), id);
  if (here == one.end() || there == other.end()) return std::nullopt;
  return static_cast<std::size_t>((here - one.begin()) + (there - other.begin()));
}

}  // namespace

Secret::Secret(const Key& bytes) : key_(extract({}, bytes)), id_(0) {
  std::array<std::byte, sizeof id_> name{};
  expand(key_, "leeway id", name);
  for (const std::byte byte : name) id_ = id_ << 8 | static_cast<std::uint64_t>(byte);
  id_ |= 1;
}

Result<Secrets> Secrets::read(const std::string& path) {
  SecretText text;
  if (Status status = read_text(path, text); !status.ok()) return status;
  return parse(text.text(), path);
}

Result<Secrets> Secrets::parse(std::string_view text, const std::string& name) {
  Secrets secrets;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (line.empty() || line.front() == '#') continue;
    auto key = key_of(line);
    if (!key) {
      return Status::error(StatusCode::kInvalidArgument,
                           "secret file %.120s: line %zu is not 64 hexadecimal digits; make the "
                           "file with `leeway keygen`",
                           name.c_str(), number);
    }
    if (!may_be_random(*key)) {
      return Status::error(StatusCode::kInvalidArgument,
                           "secret file %.120s: line %zu is not random, so strangers can guess it; "
                           "make the file with `leeway keygen`",
                           name.c_str(), number);
    }
    if (secrets.all_.size() == kSecretsMax) return refused(name, "more than 8 secrets");
    secrets.all_.emplace_back(*key);
    wipe(*key);
  }
  if (secrets.all_.empty()) return refused(name, "no secret in it; make it with `leeway keygen`");
  return secrets;
}

Secrets Secrets::of_job(std::shared_ptr<const Certificates> certificates) {
  constexpr std::string_view kLabel = "leeway certificates ";
  Secrets secrets;
  const std::string name = std::string(kLabel) + certificates->job();
  secrets.all_.emplace_back(extract({}, std::as_bytes(std::span(name))));
  secrets.certificates_ = std::move(certificates);
  secrets.are_secret_ = false;
  return secrets;
}

void Secrets::use_for_meetings_only() {
  for (Secret& secret : all_) secret = Secret(secret.key_for("meeting"));
  for_meetings_only_ = true;
}

const Secret* Secrets::find(std::uint64_t id) const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [id](const Secret& one) { return one.id() == id; });
  return found == all_.end() ? nullptr : &*found;
}

std::vector<std::uint64_t> Secrets::ids() const {
  std::vector<std::uint64_t> ids;
  for (const Secret& secret : all_) ids.push_back(secret.id());
  return ids;
}

std::string new_secret_line() {
  Key key;
  fill_randomly(key);
  std::string digits = hex_text(key);
  wipe(key);
  std::string line = digits + '\n';
  wipe(std::as_writable_bytes(std::span(digits)));
  return line;
}

std::uint64_t shared_secret(const std::vector<std::uint64_t>& one,
                            const std::vector<std::uint64_t>& other) {
  std::uint64_t best = 0;
  std::size_t best_places = 0;
  for (const std::uint64_t id : one) {
    const auto at = places(id, one, other);
    if (!at) continue;
    if (best != 0 && (*at > best_places || (*at == best_places && id > best))) continue;
    best = id;
    best_places = *at;
  }
  return best;
}

}  // namespace leeway::keys
