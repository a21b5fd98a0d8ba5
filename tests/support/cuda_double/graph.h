// Work in streams, and graphs of such work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace cuda_double {

struct GraphRun;

struct Work {
  std::function<bool()> can_begin = [] { return true; };
  std::function<void()> run = [] {};
  bool by_host = false;             // runs on the thread of host functions
  std::shared_ptr<GraphRun> graph;  // replaces the members above
};

struct Entry {
  Work work;
  std::uint64_t sequence = 0;  // among all calls
};

struct Node {
  Work work;
  std::vector<std::size_t> after;
};

// The nodes of a graph. The executable graphs made of it share them.
struct GraphBody {
  std::vector<Node> nodes;
  std::vector<std::function<void()>> at_end;  // destructors of user objects
  bool running = false;                       // a launch is running; only one runs at a time

  GraphBody() = default;
  GraphBody(const GraphBody&) = delete;
  GraphBody& operator=(const GraphBody&) = delete;
  ~GraphBody() {
    for (const auto& one : at_end) one();
  }
};

struct GraphRun {
  std::shared_ptr<GraphBody> body;
  enum class State : unsigned char { waits, begun, done };
  std::vector<State> states;
  std::size_t left = 0;

  bool ready(std::size_t node) const {
    if (states[node] != State::waits) return false;
    for (const std::size_t before : body->nodes[node].after)
      if (states[before] != State::done) return false;
    return body->nodes[node].work.can_begin();
  }
};

struct Stream;

// A capture of streams into a graph, from cuStreamBeginCapture() to cuStreamEndCapture().
struct Capture {
  std::uint64_t id = 0;
  const Stream* origin = nullptr;
  bool guards = false;  // the mode of the capture forbids calls that may wait
  // The graph so far. It becomes null at the end of the capture.
  std::shared_ptr<GraphBody> body = std::make_shared<GraphBody>();
  std::shared_ptr<void> handle;  // handle of the graph, while the capture goes on

  // Returns true if `node` is one of `tips`, or if one of `tips` depends on it.
  bool reaches(const std::vector<std::size_t>& tips, std::size_t node) const {
    std::vector<std::size_t> left = tips;
    while (!left.empty()) {
      const std::size_t one = left.back();
      left.pop_back();
      if (one == node) return true;
      const auto& after = body->nodes[one].after;
      left.insert(left.end(), after.begin(), after.end());
    }
    return false;
  }
};

}  // namespace cuda_double
