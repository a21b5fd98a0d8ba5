// Converts C structs of options to their C++ counterparts, and back.
#pragma once

#include <memory>

#include "leeway/c/options.h"
#include "leeway/options.h"

namespace leeway::c_abi {

// Converts a number to an enum class with the values 0 to `count` - 1. For another number the
// error's text begins with `what`.
template <typename Enum>
Result<Enum> enum_of(const char* what, std::int32_t number, int count) {
  if (number >= 0 && number < count) return static_cast<Enum>(number);
  return Status::error(StatusCode::kInvalidArgument, "%s %d is none of 0 .. %d", what, number,
                       count - 1);
}

Result<Delivery::Kind> delivery_of(const char* what, leeway_delivery number);
Result<DataType> data_type_of(leeway_data_type number);

// Converts a time. LEEWAY_NO_DEADLINE and no_deadline are the same number.
inline Duration duration_of(std::int64_t ns) {
  return Duration(ns);
}

// codec_of() and options_of() read the caller's struct; a null pointer gives the defaults.
Result<CodecOptions> codec_of(const leeway_codec_options* given);
leeway_codec_options codec_struct(const CodecOptions& options);
Result<Options> options_of(const leeway_options* given);

// Options of a call, with the objects that must live until the call is done.
struct Call {
  CollectiveOptions options;
  std::shared_ptr<PayloadSource> source;  // may be null, like sink
  std::shared_ptr<PayloadSink> sink;
};
Result<Call> call_of(const leeway_collective_options* given);

}  // namespace leeway::c_abi
