#include "collective/any_source.h"

#include <algorithm>
#include <utility>

#include "base/duration_text.h"
#include "collective/operation_plan.h"

namespace leeway::collective {
namespace {

Status unheard(Rank self, const Request& receive) {
  const auto deadline = in_milliseconds(receive.spec.options.delivery.deadline);
  if (receive.spec.peer == kAnyRank) {
    return Status::error(StatusCode::kDeadlineExceeded,
                         "rank %u: recv from any rank, tag %u: deadline of %s passed: no rank "
                         "sent a message",
                         self, receive.spec.options.tag, deadline.data());
  }
  return Status::error(StatusCode::kDeadlineExceeded,
                       "rank %u: recv from rank %u, tag %u: deadline of %s passed behind a "
                       "receive from any rank, to which no rank sent a message",
                       self, receive.spec.peer, receive.spec.options.tag, deadline.data());
}

Status alone(Rank self, const Request& receive, const Status& death) {
  return Status::error(StatusCode::kPeerLost,
                       "rank %u: recv of tag %u from any rank: all other ranks have left or are "
                       "dead%s%s",
                       self, receive.spec.options.tag, death.ok() ? "" : ": ",
                       death.ok() ? "" : death.c_str());
}

}  // namespace

bool AnySource::holds(const OperationSpec& spec) const {
  if (spec.kind != OperationKind::recv) return false;
  return spec.peer == kAnyRank || queues_.contains(spec.options.tag);
}

void AnySource::push(Instant now, Request& receive) {
  const std::uint32_t tag = receive.spec.options.tag;
  std::deque<Request*>& queue = queues_[tag];
  if (queue.empty()) endpoint_.watch_tag(now, tag);
  queue.push_back(&receive);
  deadline_at_ = std::min(deadline_at_, deadline_of(receive));
  tries_ = 0;
  ask_at_ = std::min(ask_at_, now + endpoint_.state().slowest_timeout());
}

void AnySource::match(std::uint32_t tag, const Post& post) {
  const auto found = queues_.find(tag);
  if (found == queues_.end()) return;
  std::deque<Request*>& queue = found->second;
  while (!queue.empty()) {
    Request& first = *queue.front();
    if (first.spec.peer == kAnyRank) {
      const auto sender = endpoint_.tags().sender_of(tag);
      if (!sender) return;
      first.spec.peer = *sender;
    }
    queue.pop_front();
    post(first);
  }
  endpoint_.tags().forget(tag);
  queues_.erase(found);
  if (queues_.empty()) deadline_at_ = ask_at_ = Instant::infinite_future();
}

void AnySource::drop_empty() {
  std::erase_if(queues_, [&](const auto& entry) {
    if (entry.second.empty()) endpoint_.tags().forget(entry.first);
    return entry.second.empty();
  });
  if (queues_.empty()) deadline_at_ = ask_at_ = Instant::infinite_future();
}

template <typename StatusOf>
void AnySource::end_all(Instant now, const StatusOf& status_of) {
  for (auto& [tag, queue] : queues_) {
    for (Request* receive : queue) receive->finish(status_of(*receive), now);
    queue.clear();
  }
  drop_empty();
}

void AnySource::on_wake(Instant now) {
  if (now >= ask_at_) ask(now);
  if (now < deadline_at_) return;
  deadline_at_ = Instant::infinite_future();
  for (auto& [tag, queue] : queues_) {
    std::erase_if(queue, [&](Request* receive) {
      if (now < deadline_of(*receive)) {
        deadline_at_ = std::min(deadline_at_, deadline_of(*receive));
        return false;
      }
      receive->finish(unheard(endpoint_.config().self, *receive), now);
      return true;
    });
  }
  drop_empty();
}

// Asks all ranks which messages they send. Datagrams that came before this rank was ready may have
// been lost. Then this rank learns of their messages only from the ranks' reports.
void AnySource::ask(Instant now) {
  // The last datagrams of a rank that left may hold a message that is matched only after this
  // check. So receives fail only if the check before this one found all ranks gone, too.
  if (std::exchange(alone_, endpoint_.liveness().all_gone()) && alone_) {
    return end_all(now, [&](const Request& receive) {
      return alone(endpoint_.config().self, receive, endpoint_.liveness().first_death());
    });
  }
  endpoint_.probe_all();
  tries_ = std::min(tries_ + 1, 6u);
  // If all other ranks have left, slowest_timeout() is 0. The pauses then grow from one tick.
  const Duration timeout =
      std::max<Duration>(endpoint_.state().slowest_timeout(), Duration(limits::kTickNs));
  const Duration pause = std::min<Duration>(timeout * (1 << tries_), Duration(limits::kBackOffNs));
  ask_at_ = now + pause;
}

void AnySource::cancel_all(Instant now, const Status& status) {
  end_all(now, [&](const Request&) { return status; });
}

}  // namespace leeway::collective
