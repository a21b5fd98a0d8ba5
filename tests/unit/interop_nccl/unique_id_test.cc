#include "interop/nccl/unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leeway::nccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

UniqueId example() {
  UniqueId id;
  id.port = 0x1234;
  id.nonce[0] = 0xAB;
  id.secret[31] = 0xCD;
  id.addresses = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 7},
                  {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};
  return id;
}

TEST(NcclUniqueId, IsReadAsItWasWritten) {
  const auto id = UniqueId::decode(example().encode());
  ASSERT_TRUE(id.ok()) << id.status().c_str();
  EXPECT_EQ(id->nonce, example().nonce);
  EXPECT_EQ(id->secret, example().secret);
  EXPECT_EQ(id->addresses, example().addresses);
  EXPECT_THAT(id->places(), ElementsAre("10.0.0.7:4660", "[fd00::2]:4660"));
}

TEST(NcclUniqueId, OfAnotherLibrarySaysWhatToDo) {
  leeway_nccl_id id{};
  EXPECT_THAT(UniqueId::decode(id).status().c_str(), HasSubstr("did not load Leeway"));
  EXPECT_THAT(UniqueId::decode(id).status().c_str(), HasSubstr("leeway nccl --"));
}

TEST(NcclUniqueId, EachWrongByteIsNoticed) {
  const leeway_nccl_id good = example().encode();
  for (std::size_t at = 0; at < sizeof good.bytes; ++at) {
    leeway_nccl_id bad = good;
    bad.bytes[at] = static_cast<char>(bad.bytes[at] ^ 0x10);
    EXPECT_FALSE(UniqueId::decode(bad).ok()) << "byte " << at;
  }
}

TEST(NcclUniqueId, WithoutAddressOrPortIsRefused) {
  UniqueId id = example();
  id.port = 0;
  EXPECT_FALSE(UniqueId::decode(id.encode()).ok());
  id = example();
  id.addresses.clear();
  EXPECT_FALSE(UniqueId::decode(id.encode()).ok());
}

TEST(NcclUniqueId, SecretIsALineOfASecretFile) {
  EXPECT_EQ(example().secret_text(), std::string(62, '0') + "cd");
  EXPECT_TRUE(example().has_secret());
  EXPECT_FALSE(UniqueId{}.has_secret());
  EXPECT_EQ(example().name().substr(0, 4), "ab00");
}

}  // namespace
}  // namespace leeway::nccl
