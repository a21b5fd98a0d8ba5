// C functions for Adam's moments in one byte an element.
#include "leeway/c/adam_state.h"

#include "c_abi/outcome.h"
#include "c_abi/sized.h"
#include "leeway/adam_state.h"

using namespace leeway;
using namespace leeway::c_abi;

namespace {

constexpr leeway_adam_state_options kAdamStateDefaults = LEEWAY_ADAM_STATE_OPTIONS_INIT;

Result<AdamState8Options> adam_options_of(const leeway_adam_state_options* given) {
  const auto read = read_sized("leeway_adam_state_options", given, kAdamStateDefaults);
  if (!read.ok()) return read.status();
  AdamState8Options options;
  options.first_max = static_cast<float>(read->first_max);
  options.power_of_two_scale = read->power_of_two_scale != 0;
  options.stochastic_flush = read->stochastic_flush != 0;
  options.seed = read->seed;
  options.step = read->step;
  options.first_element = read->first_element;
  return options;
}

template <typename Encode>
leeway_status encode(const char* function, Encode* with, const float* moment, std::size_t count,
                     const leeway_adam_state_options* options, std::uint8_t* codes, float* scale) {
  return guarded(function, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "moment", moment, count));
    LEEWAY_C_TRY(must_be_there(name, "codes", codes, count));
    LEEWAY_C_TRY(must_be_there(name, "scale", scale));
    const auto read = adam_options_of(options);
    if (!read.ok()) return read.status();
    const auto made = with({moment, count}, {codes, count}, *read);
    if (!made.ok()) return made.status();
    *scale = *made;
    return Status();
  });
}

template <typename Decode>
leeway_status decode(const char* function, Decode* with, const std::uint8_t* codes,
                     std::size_t count, float scale, float* moment) {
  return guarded(function, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "codes", codes, count));
    LEEWAY_C_TRY(must_be_there(name, "moment", moment, count));
    return with({codes, count}, scale, {moment, count});
  });
}

}  // namespace

leeway_status leeway_encode_adam_first(const float* moment, std::size_t count,
                                       const leeway_adam_state_options* options,
                                       std::uint8_t* codes, float* scale) {
  return encode(__func__, encode_adam_first, moment, count, options, codes, scale);
}

leeway_status leeway_encode_adam_second(const float* moment, std::size_t count,
                                        const leeway_adam_state_options* options,
                                        std::uint8_t* codes, float* scale) {
  return encode(__func__, encode_adam_second, moment, count, options, codes, scale);
}

leeway_status leeway_decode_adam_first(const std::uint8_t* codes, std::size_t count, float scale,
                                       float* moment) {
  return decode(__func__, decode_adam_first, codes, count, scale, moment);
}

leeway_status leeway_decode_adam_second(const std::uint8_t* codes, std::size_t count, float scale,
                                        float* moment) {
  return decode(__func__, decode_adam_second, codes, count, scale, moment);
}
