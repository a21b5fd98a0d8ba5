#include "keys/file_rights.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

namespace leeway::keys {
namespace {

// Attribute with a file's access control list: a version, then entries (linux/posix_acl_xattr.h).
constexpr const char* kListName = "system.posix_acl_access";
constexpr std::size_t kVersionBytes = 4;
constexpr std::size_t kEntriesMax = 64;

enum Tag : std::uint16_t { kUser = 0x02, kOwningGroup = 0x04, kGroup = 0x08 };

struct Entry {
  std::uint16_t tag;
  std::uint16_t rights;
  std::uint32_t id;
};

bool is_own_group(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<std::size_t>(std::max(0, count)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// Returns whether the entry lets anybody read except root, this process's user and its groups.
bool tells_others(const Entry& entry, gid_t owning_group) {
  if ((entry.rights & R_OK) == 0) return false;
  if (entry.tag == kUser) return entry.id != 0 && entry.id != ::geteuid();
  if (entry.tag == kOwningGroup) return !is_own_group(owning_group);
  return entry.tag == kGroup && !is_own_group(entry.id);
}

// Call it if the mode's group bits allow reading. Returns whether they allow it only to root, this
// process's user and its groups. If the file has an access control list, these bits stand for all
// entries of the list.
bool readers_are_own(int file, gid_t owning_group) {
  std::array<std::byte, kVersionBytes + kEntriesMax * sizeof(Entry)> list{};
  const ssize_t got = ::fgetxattr(file, kListName, list.data(), list.size());
  if (got < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return is_own_group(owning_group);
  if (got < static_cast<ssize_t>(kVersionBytes)) return false;
  for (std::size_t at = kVersionBytes; at + sizeof(Entry) <= static_cast<std::size_t>(got);
       at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, list.data() + at, sizeof entry);
    if (tells_others(entry, owning_group)) return false;
  }
  return true;
}

}  // namespace

bool kept_from_others(int file) {
  struct stat facts {};
  if (::fstat(file, &facts) != 0) return false;
  if ((facts.st_mode & (S_IRWXO | S_IWGRP)) != 0) return false;
  return (facts.st_mode & S_IRGRP) == 0 || readers_are_own(file, facts.st_gid);
}

}  // namespace leeway::keys
