// Scenarios that a worker process can run: one function each, found by name in worker.cc.
//
// A scenario runs on every rank. It joins through the environment, as a user's program would, and
// returns facts, which the worker prints as one JSON line. The test judges them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "leeway/leeway.h"

namespace leeway::integration {

using Facts = nlohmann::json;

// The "key=value" words of the command line.
class Arguments {
 public:
  Arguments(int argc, char** argv);
  std::int64_t number(const std::string& key, std::int64_t otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;

 private:
  std::map<std::string, std::string> values_;
};

using Scenario = Facts (*)(const Arguments&);

Facts join_only(const Arguments& arguments);  // the group forms, or the error and how long it took
Facts collectives(const Arguments& arguments);  // every operation, exact
// Starts many operations, and waits for them in reverse order.
Facts in_flight(const Arguments& arguments);
Facts two_groups(const Arguments& arguments);  // two communicators, a thread each
Facts threads(const Arguments& arguments);
Facts scribbled_memory(const Arguments& arguments);  // a rank overwrites its rings meanwhile
Facts lossy_average(const Arguments& arguments);     // error statistics of lossy averages
Facts lossy_operations(const Arguments& arguments);  // every operation that may lose, checked
Facts endless_rounds(
    const Arguments& arguments);             // rounds during which the test stops or kills a rank
Facts repeat(const Arguments& arguments);    // many equal calls, how much was lost in each
Facts outcomes(const Arguments& arguments);  // results and reports, except for times
Facts size_mismatch(const Arguments& arguments);  // one rank with another element count
Facts junk(const Arguments& arguments);  // rank 1 and a stranger throw bad datagrams at rank 0

// Prints the error as this process's facts, and ends the process.
[[noreturn]] void end_with(const Status& status);

// environment_options() returns options from the environment; join() joins the group. Errors end
// the process by end_with().
Options environment_options();
std::unique_ptr<Communicator> join(const Options& options);
std::unique_ptr<Communicator> join();

// Prints {"mark": name}, which tells the test how far this rank is.
void mark(const std::string& name);

Facts facts_of(const Status& status);
double milliseconds(Duration duration);

}  // namespace leeway::integration
