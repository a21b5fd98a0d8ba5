// Errors of Protobuf's text parser, in words of the scenario.
#pragma once

#include <compare>
#include <string>

#include <google/protobuf/io/tokenizer.h>

namespace leeway::sim::scenario {

// Unknown fields and names of enumerations get the nearest valid one; every other message is passed
// on, without what a terminal could take for commands.
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
  // Where in `text`, which was parsed, the error lies. Protobuf reports an unknown name at the
  // token behind it; this is the place of the name.
  TextPlace place(const std::string& text) const;
  std::string explanation() const { return explain(message_); }

 private:
  bool any_ = false;
  TextPlace reported_;
  std::string message_;
};

}  // namespace leeway::sim::scenario
