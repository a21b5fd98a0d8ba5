#include "keys/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "unit/keys/bytes.h"

namespace leeway::keys {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A secret file, deleted at the end.
class SecretFile {
 public:
  explicit SecretFile(const std::string& text, mode_t mode = 0600)
      : path_(::testing::TempDir() + "leeway_secret_" + std::to_string(::getpid())) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }
  ~SecretFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::string refusal_of(const Result<Secrets>& read) {
  return read.ok() ? "taken" : std::string(read.status().text());
}

TEST(Secrets, ForMeetingsOnlyAreOthersThanThoseOfAFile) {
  auto secrets = *Secrets::parse(line_of('1'), "test");
  EXPECT_FALSE(secrets.for_meetings_only());
  const auto of_file = secrets.ids();
  secrets.use_for_meetings_only();
  EXPECT_TRUE(secrets.for_meetings_only());
  EXPECT_NE(secrets.ids(), of_file);
}

TEST(Secrets, AreReadFromWhatKeygenPrints) {
  const std::string line = new_secret_line();
  EXPECT_EQ(line.size(), 65u);
  EXPECT_NE(line, new_secret_line());
  const SecretFile file(line);
  const auto secrets = Secrets::read(file.path());
  ASSERT_TRUE(secrets.ok()) << secrets.status().c_str();
  EXPECT_EQ(secrets->ids().size(), 1u);
}

TEST(Secrets, HaveTheFirstLineFirstAndKeepTheOlderOnes) {
  const auto both = *Secrets::parse("# of May\n" + line_of('a') + "\n  " + line_of('B'), "test");
  const auto first = *Secrets::parse(line_of('A'), "test");
  const auto second = *Secrets::parse(line_of('b'), "test");
  EXPECT_EQ(both.ids().size(), 2u);
  EXPECT_EQ(both.at(0).id(), first.at(0).id());
  ASSERT_NE(both.find(second.at(0).id()), nullptr);
  EXPECT_EQ(both.find(second.at(0).id())->key_for("join"), second.at(0).key_for("join"));
  EXPECT_EQ(first.find(second.at(0).id()), nullptr);
}

TEST(Secrets, GiveOtherKeysForOtherPurposesAndSecrets) {
  const auto one = *Secrets::parse(line_of('1'), "test");
  const auto other = *Secrets::parse(line_of('2'), "test");
  EXPECT_NE(one.at(0).key_for("join"), one.at(0).key_for("pair"));
  EXPECT_NE(one.at(0).key_for("join"), other.at(0).key_for("join"));
}

TEST(Secrets, RefuseAFileThatOthersMayReadOrWrite) {
  for (const mode_t mode : {0604, 0620, 0602, 0644, 0660, 0440 | 0004}) {
    const SecretFile file(line_of('7'), mode);
    EXPECT_THAT(
        refusal_of(Secrets::read(file.path())),
        AllOf(HasSubstr(file.path()), HasSubstr("chmod 600"), Not(HasSubstr(secret_digits('7')))));
  }
}

// Kubernetes' fsGroup makes a file that belongs to root and that a group of the process may read.
TEST(Secrets, AreReadByAGroupOfTheProcessAndByNoOther) {
  const SecretFile file(line_of('7'), 0440);
  EXPECT_EQ(refusal_of(Secrets::read(file.path())), "taken");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(file.path().c_str(), static_cast<uid_t>(-1), 54321), 0);
  EXPECT_THAT(refusal_of(Secrets::read(file.path())), HasSubstr("chmod 600"));
}

// ---- access control lists, as systemd gives its credentials ----

struct AclEntry {
  std::uint16_t tag, rights;
  std::uint32_t id;
};

// Sets a file's access control list: its owner, `entries`, the mask, and the others.
bool set_list(const std::string& path, const std::vector<AclEntry>& entries) {
  constexpr std::uint32_t kNobody = 0xFFFFFFFF;
  std::vector<AclEntry> all = {{0x01, 4, kNobody}};
  all.insert(all.end(), entries.begin(), entries.end());
  all.push_back({0x10, 4, kNobody});
  all.push_back({0x20, 0, kNobody});
  std::vector<std::byte> list(4 + all.size() * sizeof(AclEntry));
  list[0] = std::byte{2};
  std::memcpy(list.data() + 4, all.data(), all.size() * sizeof(AclEntry));
  return ::setxattr(path.c_str(), "system.posix_acl_access", list.data(), list.size(), 0) == 0;
}

TEST(Secrets, AreReadByAnEntryForThisProcessAlone) {
  constexpr std::uint16_t kUser = 0x02, kOwningGroup = 0x04, kGroup = 0x08;
  constexpr std::uint32_t kNobody = 0xFFFFFFFF;
  const SecretFile file(line_of('7'), 0400);
  if (!set_list(file.path(), {{kUser, 4, ::geteuid()}, {kOwningGroup, 0, kNobody}}))
    GTEST_SKIP() << "no access control lists here";
  struct stat facts {};
  ASSERT_EQ(::stat(file.path().c_str(), &facts), 0);
  ASSERT_EQ(facts.st_mode & 0777, 0440u) << "the mask stands in the group's place";
  EXPECT_EQ(refusal_of(Secrets::read(file.path())), "taken");
  ASSERT_TRUE(set_list(file.path(), {{kUser, 4, 54321}, {kOwningGroup, 0, kNobody}}));
  EXPECT_THAT(refusal_of(Secrets::read(file.path())), HasSubstr("chmod 600"));
  ASSERT_TRUE(set_list(file.path(), {{kOwningGroup, 0, kNobody}, {kGroup, 4, 54321}}));
  EXPECT_THAT(refusal_of(Secrets::read(file.path())), HasSubstr("chmod 600"));
}

TEST(Secrets, RefuseWhatIsShorterOrNoSecretAndDoNotPrintIt) {
  for (const std::string& text : {std::string(63, '7'), std::string(66, '7'),
                                  std::string(63, '7') + "g", std::string("correct horse")}) {
    const std::string refusal = refusal_of(Secrets::parse(line_of('7') + text, "cluster.key"));
    EXPECT_THAT(refusal, AllOf(HasSubstr("cluster.key: line 2"), HasSubstr("leeway keygen"),
                               Not(HasSubstr("777")), Not(HasSubstr("horse"))));
  }
}

TEST(Secrets, RefuseWhatCannotBeRandomAndDoNotPrintIt) {
  std::string count, pattern;
  for (int i = 0; i < 32; ++i) {
    count += "0123456789abcdef"[(0x77 + 3 * i) / 16 % 16];
    count += "0123456789abcdef"[(0x77 + 3 * i) % 16];
    pattern += i % 2 == 0 ? "77" : "de";
  }
  for (const std::string& text : {std::string(64, '0'), std::string(64, '7'), pattern, count,
                                  "0123456789abcdef" + std::string(48, '0')}) {
    EXPECT_THAT(refusal_of(Secrets::parse(text, "cluster.key")),
                AllOf(HasSubstr("cluster.key: line 1 is not random"), HasSubstr("leeway keygen"),
                      Not(HasSubstr("777"))))
        << text;
  }
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(refusal_of(Secrets::parse(new_secret_line(), "cluster.key")), "taken");
}

TEST(Secrets, RefuseAnEmptyFileAFolderAndNoFile) {
  EXPECT_THAT(refusal_of(Secrets::parse("\n#\n", "cluster.key")), HasSubstr("leeway keygen"));
  EXPECT_THAT(refusal_of(Secrets::read("/")), HasSubstr("not a plain file"));
  EXPECT_THAT(refusal_of(Secrets::read("/nowhere/cluster.key")),
              HasSubstr("/nowhere/cluster.key: No such file"));
}

TEST(Secrets, RefuseMoreThanAFewAndAFileWithoutEnd) {
  std::string text;
  for (int i = 0; i < 9; ++i) text += line_of(static_cast<char>('0' + i));
  EXPECT_THAT(refusal_of(Secrets::parse(text, "cluster.key")), HasSubstr("more than 8"));
  const SecretFile file(std::string(5000, '\n') + line_of('1'));
  EXPECT_THAT(refusal_of(Secrets::read(file.path())), HasSubstr("too long"));
}

TEST(SharedSecret, IsTheSameFromBothSidesAndPrefersEarlierOnes) {
  EXPECT_EQ(shared_secret({1, 3}, {3, 1}), shared_secret({3, 1}, {1, 3}));
  EXPECT_EQ(shared_secret({5, 3, 1}, {5, 1}), 5u);
  EXPECT_EQ(shared_secret({5, 3}, {3}), 3u);
  EXPECT_EQ(shared_secret({5, 3}, {7}), 0u);
  EXPECT_EQ(shared_secret({}, {7}), 0u);
}

}  // namespace
}  // namespace leeway::keys
