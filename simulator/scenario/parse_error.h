// Rewords errors of Protobuf's text parser for authors of scenarios.
#pragma once

#include <compare>
#include <string>

#include <google/protobuf/io/tokenizer.h>

namespace leeway::sim::scenario {

// Returns the text for authors. For an unknown field or value it suggests the nearest valid name.
// Other messages stay. Characters that a terminal could take for commands become "?".
std::string explain(const std::string& protobuf_message);

// A place in a text, counted from 0. As in Protobuf, a tab ends at a multiple of 8.
struct TextPlace {
  int line = 0;
  int column = 0;

  friend auto operator<=>(const TextPlace&, const TextPlace&) = default;
};

// Keeps the parser's first error, because later ones mostly follow from it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override;

  bool any() const { return any_; }
  // Returns the place of the error in `text`, which was parsed. For an unknown name, Protobuf
  // reports the token after it; this returns the place of the name itself.
  TextPlace place(const std::string& text) const;
  std::string explanation() const { return explain(message_); }

 private:
  bool any_ = false;
  TextPlace reported_;
  std::string message_;
};

}  // namespace leeway::sim::scenario
