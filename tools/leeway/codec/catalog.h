// A list of codecs for a person who chooses one: the text to type for each codec, and what the
// codec is for.
#pragma once

#include <span>

namespace leeway::tools::codecs {

struct CatalogEntry {
  const char* text;  // text for parse_codec
  const char* use;
};

// Returns every codec but `native` and `automatic`, most bits first. Each codec is followed by
// those of its settings that are worth knowing.
std::span<const CatalogEntry> catalog();

struct SettingEntry {
  const char* text;    // after a colon
  const char* codecs;  // names of the codecs that have this setting
  const char* meaning;
};
std::span<const SettingEntry> setting_catalog();

}  // namespace leeway::tools::codecs
