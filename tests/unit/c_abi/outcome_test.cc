#include "c_abi/outcome.h"

#include <gmock/gmock.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "leeway/c.h"
#include "unit/c_abi/group.h"

namespace leeway::c_abi {
namespace {

using ::testing::HasSubstr;

TEST(Outcome, ShortMemoryIsAnErrorAndNoException) {
  EXPECT_FAILS(guarded("f", [](const char*) -> Status { throw std::bad_alloc(); }),
               LEEWAY_RESOURCE_EXHAUSTED, "f: no memory");
}

TEST(Outcome, OtherExceptionsAreErrorsToo) {
  EXPECT_FAILS(guarded("f", [](const char*) -> Status { throw std::runtime_error("broken"); }),
               LEEWAY_INTERNAL, "broken");
  EXPECT_FAILS(guarded("f", [](const char*) -> Status { throw 5; }), LEEWAY_INTERNAL, "f:");
}

TEST(Outcome, TheTextIsThatOfTheThread) {
  leeway_fail(LEEWAY_UNAVAILABLE, "of this thread");
  std::thread([] {
    EXPECT_STREQ(leeway_last_error(), "");
    leeway_fail(LEEWAY_UNAVAILABLE, "of another");
  }).join();
  EXPECT_STREQ(leeway_last_error(), "of this thread");
}

TEST(Outcome, LongTextsAreCut) {
  EXPECT_EQ(leeway_fail(LEEWAY_MISMATCH, std::string(5000, 'x').c_str()), LEEWAY_MISMATCH);
  EXPECT_EQ(std::strlen(leeway_last_error()), Status::kTextMax);
  leeway_fail(LEEWAY_MISMATCH, nullptr);
  EXPECT_STREQ(leeway_last_error(), "");
}

TEST(Outcome, EveryCodeHasItsName) {
  for (leeway_status code = LEEWAY_OK; code <= LEEWAY_INTERNAL; ++code)
    EXPECT_EQ(leeway_status_name(code), to_string(static_cast<StatusCode>(code)));
  EXPECT_STREQ(leeway_status_name(-1), "unknown");
  EXPECT_STREQ(leeway_status_name(LEEWAY_INTERNAL + 1), "unknown");
}

TEST(Outcome, TheVersionIsThatOfTheHeaders) {
  EXPECT_THAT(leeway_version(), HasSubstr("."));
}

}  // namespace
}  // namespace leeway::c_abi
