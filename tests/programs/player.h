// Runs one rank's part of a program, and judges the outcome of every call.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "programs/board.h"
#include "programs/library.h"

namespace leeway::programs {

struct Underway;

Options options_for(const Program& program, const Meeting& meeting, int rank);

class Player {
 public:
  Player(Board& board, Library& library, const Meeting& meeting, int rank);
  ~Player();

  // Uses `world` as communicator 0. Without this call, begin() makes one.
  void take(std::unique_ptr<Comm> world) { world_ = std::move(world); }
  // begin() and play() return false if something is wrong; the board then says what.
  bool begin(const Program& program);
  bool play(const Program& program, int number);
  void end();

 private:
  bool perform(const Step& step);
  bool make(const Step& step, int rank, int size);
  bool differ(const Step& step, int rank, int size);
  bool fork_child(const Step& step, int rank, int size);
  std::string fault_of_child(const Step& step, int rank, int size);
  bool call(const Step& step, int rank, int size);
  std::unique_ptr<Underway> underway(const Step& step, int rank, int size) const;
  // Makes a call. A call that does not block is waited for and judged before a later step.
  bool start(std::unique_ptr<Underway> one, const Call& call);
  bool settle_due(bool all);
  bool settle(Underway& one);
  bool judge(Underway& one, const Outcome& outcome);
  std::string odd_failure(const Underway& one, const Status& status) const;
  std::string odd_success(const Underway& one, const CollectiveReport& report);
  bool does_without_others(const Underway& one) const;
  std::string odd_difference(const Underway& one, const Outcome& outcome) const;
  std::string odd_unlike(const Underway& one, const Outcome& outcome) const;
  std::string odd_messages(Underway& one, const CollectiveReport& report) const;
  unsigned gone_from(int comm) const;
  void go_from(int comm);
  void end_later(const Step& step, std::function<void()> end);
  void note_error(const Underway& one, const CollectiveReport& report,
                  const testing::TypedTensor& got);
  bool fail(const std::string& why);
  Comm* comm(int number);
  void destroy(int number);
  void move() { board_.lines[static_cast<std::size_t>(rank_)].moves.fetch_add(1); }

  Board& board_;
  Library& library_;
  const Meeting& meeting_;
  const int rank_;
  const Program* program_ = nullptr;
  const Groups* groups_ = nullptr;
  int number_ = 0;
  int at_ = 0;  // the step
  std::unique_ptr<Comm> world_;
  // Communicator from which world_ was made by split(), if the route needs that.
  std::unique_ptr<Comm> made_world_;
  std::map<int, std::unique_ptr<Comm>> comms_;
  std::map<int, MutableByteSpan> allocations_;
  std::vector<std::unique_ptr<Underway>> underway_;
  std::vector<std::jthread> ends_;  // aborts and exits that come in the middle of a call
  bool dying_ = false;
};

}  // namespace leeway::programs
