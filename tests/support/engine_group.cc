#include "support/engine_group.h"

#include <algorithm>

#include "base/contracts.h"
#include "support/train_datagrams.h"

namespace leeway::testing {
EngineGroup::EngineGroup(const GroupOptions& options) : options_(options), nodes_(options.size) {
  protocol::EndpointConfig config;
  config.size = options.size;
  config.epoch = 77;
  config.seed = options.seed;
  config.datagram_bytes = options.datagram_bytes;
  config.window_bytes.assign(options.size, options.window_bytes);
  config.peer_timeout = options.peer_timeout;
  config.rtt_initial = 2 * options.delay;
  config.multicast = options.multicast;
  config.paced = options.paced;
  config.one_host = options.one_host;
  config.sum_payloads = options.sum_payloads;
  for (Rank rank = 0; rank < options.size; ++rank) {
    config.self = rank;
    nodes_[rank].engine = std::make_unique<collective::Engine>(config);
    if (!options.faults.any()) continue;
    auto plan = impairment::FaultPlan::create(options.faults);
    LEEWAY_ASSERT(plan.ok());
    nodes_[rank].faults = std::make_unique<impairment::FaultPlan>(std::move(*plan));
  }
}

collective::Request& EngineGroup::submit(Rank rank, const collective::OperationSpec& spec,
                                         std::optional<std::uint64_t> place) {
  requests_.push_back(std::make_unique<collective::Request>());
  collective::Request& request = *requests_.back();
  request.spec = spec;
  request.place = place;
  engine(rank).submit(now_, request);
  pump(rank);
  return request;
}

std::vector<collective::Request*> EngineGroup::submit_all(
    const std::function<collective::OperationSpec(Rank)>& make) {
  std::vector<collective::Request*> requests;
  for (Rank rank = 0; rank < size(); ++rank) requests.push_back(&submit(rank, make(rank)));
  return requests;
}

bool EngineGroup::run(const std::vector<collective::Request*>& requests, Duration limit) {
  return run_until(
      [&] {
        return std::all_of(requests.begin(), requests.end(),
                           [](const auto* request) { return request->done; });
      },
      limit);
}

bool EngineGroup::settle(Duration limit) {
  return run_until(
      [&] {
        return std::all_of(nodes_.begin(), nodes_.end(),
                           [](const Node& node) { return node.frozen || node.engine->idle(); });
      },
      limit);
}

bool EngineGroup::run_until(const std::function<bool()>& done, Duration limit) {
  const Instant end = now_ + limit;
  for (Rank rank = 0; rank < size(); ++rank) pump(rank);
  while (!done()) {
    const auto next = next_event();
    if (!next || *next > end) {
      now_ = std::max(now_, end);
      return done();
    }
    now_ = std::max(now_, *next);
    while (!flights_.empty() && flights_.begin()->first <= now_.ns) {
      Flight flight = std::move(flights_.begin()->second);
      flights_.erase(flights_.begin());
      arrive(std::move(flight));
    }
    for (Rank rank = 0; rank < size(); ++rank) pump(rank);
  }
  return true;
}

std::optional<Instant> EngineGroup::next_event() const {
  std::optional<Instant> next;
  if (!flights_.empty()) next = Instant{flights_.begin()->first};
  for (const Node& node : nodes_) {
    if (node.frozen) continue;
    const Instant wake = node.engine->wake_at();
    if (wake < next.value_or(Instant::infinite_future())) next = wake;
  }
  return next;
}

void EngineGroup::pump(Rank rank) {
  Node& node = nodes_[rank];
  if (node.frozen) return;
  node.engine->on_wake(now_);
  while (node.engine->poll_train(now_, *buffer_, node.polled)) launch(buffer_->train(), rank);
  node.engine->on_wake(now_);
}

void EngineGroup::launch(const Train& train, Rank from) {
  std::size_t bytes = 0;
  support::for_each_datagram(train, [&](ByteSpan datagram) {
    bytes += datagram.size();
    for (Rank to = 0; to < size(); ++to) {
      if (train.to == to || (train.to == kEveryRank && to != from)) fly(from, to, datagram);
    }
  });
  LEEWAY_ASSERT(bytes == train.total_bytes);
}

void EngineGroup::fly(Rank from, Rank to, ByteSpan datagram) {
  if (filter && !filter(from, to, datagram)) return;
  std::vector<std::byte> bytes(datagram.begin(), datagram.end());
  Duration delay = options_.delay;
  impairment::PacketAddress address;
  if ((nodes_[to].faults || observer) && impairment::read_address(datagram, to, address)) {
    const impairment::Fate fate =
        nodes_[to].faults ? nodes_[to].faults->fate(address) : impairment::Fate{};
    if (observer) observer(address, fate);
    if (fate.lost) {
      lost_data_ += !address.control;
      return;
    }
    delay += fate.delay + fate.reorder * options_.delay / 4;
    if (fate.corrupt)
      bytes[fate.corrupt_bit / 8 % bytes.size()] ^= std::byte(1 << (fate.corrupt_bit % 8));
    if (fate.duplicate)
      flights_.emplace((now_ + delay + options_.delay).ns, Flight{from, to, bytes});
  }
  flights_.emplace((now_ + delay).ns, Flight{from, to, std::move(bytes)});
}

void EngineGroup::arrive(Flight flight) {
  Node& node = nodes_[flight.to];
  if (node.frozen) {
    node.waiting.emplace_back(flight.from, std::move(flight.bytes));
    return;
  }
  ++delivered_;
  node.engine->on_datagram(now_, flight.from, flight.bytes);
}

void EngineGroup::thaw(Rank rank) {
  Node& node = nodes_[rank];
  node.frozen = false;
  for (auto& [from, bytes] : node.waiting) node.engine->on_datagram(now_, from, bytes);
  node.waiting.clear();
}

void EngineGroup::inject(Rank to, Rank from, std::vector<std::byte> datagram) {
  nodes_[to].engine->on_datagram(now_, from, datagram);
}

}  // namespace leeway::testing
