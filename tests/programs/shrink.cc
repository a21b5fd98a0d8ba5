#include "programs/shrink.h"

#include <algorithm>

namespace leeway::programs {
namespace {

class Shrinker {
 public:
  Shrinker(Program program, const Fails& fails, unsigned tries)
      : best_(std::move(program)), fails_(fails), tries_(tries) {}

  Program run() {
    for (bool less = true; less && tries_ > 0;) {
      less = drop_steps();
      less = fewer_ranks() || less;
      less = plainer_steps() || less;
    }
    return best_;
  }

 private:
  bool keep(const Program& candidate) {
    if (tries_ == 0) return false;
    --tries_;
    if (!fails_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  static Program without(const Program& program, std::size_t from, std::size_t count) {
    Program less = program;
    std::vector<int> gone;
    for (std::size_t i = from; i < from + count; ++i)
      if (program.steps[i].made > 0) gone.push_back(program.steps[i].made);
    less.steps.erase(less.steps.begin() + static_cast<std::ptrdiff_t>(from),
                     less.steps.begin() + static_cast<std::ptrdiff_t>(from + count));
    for (Step& step : less.steps) {
      if (step.allocation < static_cast<int>(from)) continue;
      step.allocation = step.allocation < static_cast<int>(from + count)
                            ? -1
                            : step.allocation - static_cast<int>(count);
    }
    // Also removes steps on communicators that no step makes any more.
    for (std::size_t i = 0; i < less.steps.size();) {
      if (Groups(less).of(less.steps[i].comm).empty()) return without(less, i, 1);
      ++i;
    }
    return less;
  }

  bool drop_steps() {
    bool any = false;
    for (std::size_t length = std::max<std::size_t>(1, best_.steps.size() / 2); length > 0;
         length /= 2) {
      for (std::size_t i = best_.steps.size(); i > 0 && tries_ > 0;) {
        i = i > length ? i - length : 0;
        if (i + length > best_.steps.size()) continue;
        any = keep(without(best_, i, length)) || any;
      }
    }
    return any;
  }

  // Removes ranks, unless steps split or shrink communicators, or name the rank in a message.
  bool fewer_ranks() {
    bool any = false;
    while (best_.ranks > 2 && tries_ > 0) {
      Program less = best_;
      --less.ranks;
      for (Step& step : less.steps) {
        if (step.kind == Kind::split || step.kind == Kind::shrink) return any;
        if (step.root >= less.ranks) step.root = 0;
        for (const Envelope& one : step.messages)
          if (one.from >= less.ranks || one.to >= less.ranks) return any;
      }
      if (!keep(less)) return any;
      any = true;
    }
    return any;
  }

  template <typename Change>
  bool attempt(std::size_t at, Change change) {
    Program less = best_;
    change(less.steps[at]);
    return less.steps[at] != best_.steps[at] && keep(less);
  }

  bool plainer_steps() {
    bool any = false;
    for (std::size_t i = 0; i < best_.steps.size() && tries_ > 0; ++i) {
      any = attempt(i, [](Step& one) { one.ways.fill(Way{}); }) || any;
      any = attempt(i, [](Step& one) { one.in_place = one.uneven = one.displaced = false; }) || any;
      any = attempt(i, [](Step& one) { one.delivery = one.spread = Delivery::Kind::exact; }) || any;
      any = attempt(i, [](Step& one) { one.cuts_us.fill(0); }) || any;
      any = attempt(i, [](Step& one) { one.confirm_use = false; }) || any;
      any = attempt(i, [](Step& one) { one.type = DataType::f32; }) || any;
      any = attempt(i, [](Step& one) { one.op = ReduceOp::sum; }) || any;
      any = attempt(i,
                    [](Step& one) {
                      one.count = std::min<std::size_t>(one.count, 1);
                      for (Envelope& letter : one.messages) letter.count = 1, letter.spare = 0;
                    }) ||
            any;
      while (attempt(i, [](Step& one) { one.count /= 2; })) any = true;
      while (best_.steps[i].messages.size() > 1 &&
             attempt(i, [](Step& one) { one.messages.pop_back(); }))
        any = true;
      while (best_.steps[i].messages.size() > 1 &&
             attempt(i, [](Step& one) { one.messages.erase(one.messages.begin()); }))
        any = true;
      any = attempt(i,
                    [](Step& one) {
                      for (Envelope& letter : one.messages)
                        if (!letter.any) letter.tag = 0;
                    }) ||
            any;
    }
    return any;
  }

  Program best_;
  const Fails& fails_;
  unsigned tries_;
};

}  // namespace

Program shrink(Program program, const Fails& fails, unsigned tries_max) {
  return Shrinker(std::move(program), fails, tries_max).run();
}

}  // namespace leeway::programs
