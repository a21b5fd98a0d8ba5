// Errors of Protobuf's text parser, in words of the scenario.
#pragma once

#include <compare>
#include <string>

#include <google/protobuf/io/tokenizer.h>

namespace leeway::sim::scenario {

// For an unknown field or enumerator, names the nearest valid one. Other messages are passed on,
// without characters that a terminal could take for commands.
std::string explain(const std::string& protobuf_message);

// Line and column from 0; a tab ends at a multiple of 8, as Protobuf counts.
struct TextPlace {
  int line = 0;
  int column = 0;

  friend auto operator<=>(const TextPlace&, const TextPlace&) = default;
};

// Keeps the first error: later reports of the parser are mostly its consequence.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override;

  bool any() const { return any_; }
  // The place of the error in `text`, which was parsed. Protobuf reports an unknown name at the
  // token behind it; this is the place of the name itself.
  TextPlace place(const std::string& text) const;
  std::string explanation() const { return explain(message_); }

 private:
  bool any_ = false;
  TextPlace reported_;
  std::string message_;
};

}  // namespace leeway::sim::scenario
