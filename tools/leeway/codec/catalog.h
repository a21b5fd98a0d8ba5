// A list of codecs for a person who chooses one: the text to type, and what each is for.
#pragma once

#include <span>

namespace leeway::tools::codecs {

struct CatalogEntry {
  const char* text;  // text for parse_codec
  const char* use;
};

// Every codec but `native` and `automatic`, most bits first, each followed by settings worth
// knowing.
std::span<const CatalogEntry> catalog();

struct SettingEntry {
  const char* text;    // after a colon
  const char* codecs;  // names of the codecs that have this setting
  const char* meaning;
};
std::span<const SettingEntry> setting_catalog();

}  // namespace leeway::tools::codecs
