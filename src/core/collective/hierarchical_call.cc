#include "collective/hierarchical_call.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/contracts.h"
#include "base/duration_text.h"
#include "base/limits.h"
#include "schedule/shard_map.h"
#include "wire/packet.h"

namespace leeway::collective {
namespace {

// How a lossy call's time is divided among its hops. The first hop must end within the first
// quarter. If a third hop follows, the second one (between sites) must end before the last quarter.
// If the hop between sites is an all_reduce, its spread half gets the second half of the hop's
// time.
constexpr int kReduceEnds = 4;    // a quarter
constexpr int kSpreadBegins = 4;  // a quarter is left

// Each rank of a site reduces an equal part of a piece, whose length is a multiple of this many
// elements.
constexpr std::size_t kPieceGrain = 1024;

// Places (Request::place) that each call reserves in the communicator of each tier, one for each
// leg. A reduce_scatter has a leg for each site, and an all_reduce a leg for each piece. One more
// place is for the leg of add_tally().
constexpr std::uint64_t kLegsMax = 256;
constexpr std::size_t kPiecesMax = kLegsMax - 1;

bool is_native(const CollectiveOptions& options) {
  const CodecOptions spread = options.spread_codec.value_or(options.codec);
  return options.codec.codec == Codec::native && spread.codec == Codec::native;
}

bool is_narrow(DataType type) {
  return is_floating(type) && size_of(type) < sizeof(float);
}

OperationSpec leg_spec(OperationKind kind, ConstTensorView in, TensorView out) {
  return {.kind = kind, .input = in, .output = out};
}

}  // namespace

bool HierarchicalCall::takes(const OperationSpec& spec, const SiteMap& sites) {
  if (static_cast<std::size_t>(sites.sites()) > kPiecesMax) return false;
  if (spec.uneven() || spec.elsewhere() || !spec.contents) return false;
  if (spec.kind == OperationKind::all_gather) return true;
  if (spec.kind != OperationKind::all_reduce && spec.kind != OperationKind::reduce_scatter)
    return false;
  if (spec.options.confirm_use) return false;
  if (spec.options.op == ReduceOp::avg && !is_floating(spec.input.dtype)) return false;
  const bool rounds_once = spec.options.op != ReduceOp::min && spec.options.op != ReduceOp::max;
  return !(is_narrow(spec.input.dtype) && rounds_once);
}

OperationSpec HierarchicalCall::stand_in(const OperationSpec& spec) {
  OperationSpec whole = spec;
  whole.stands_in = true;
  whole.parts = wire::kBySites;
  return whole;
}

HierarchicalCall::HierarchicalCall(const OperationSpec& spec, const SiteMap& sites,
                                   Instant submitted, std::size_t piece_bytes, std::uint64_t place)
    : spec_(spec), sites_(sites), submitted_(submitted), place_(place) {
  for (int rank = 0; rank < sites.size(); ++rank)
    peers_.push_back({.rank = static_cast<Rank>(rank)});
  if (spec_.kind == OperationKind::all_reduce) plan_all_reduce(piece_bytes);
  if (spec_.kind == OperationKind::reduce_scatter) plan_reduce_scatter();
  if (spec_.kind == OperationKind::all_gather) plan_all_gather();
  for (const std::vector<Leg>& legs : legs_) left_ += legs.size();
}

ConstTensorView HierarchicalCall::input(std::size_t offset, std::size_t count) const {
  return {element_at(spec_.input.data, offset, spec_.input.dtype), count, spec_.input.dtype};
}

TensorView HierarchicalCall::output(std::size_t offset, std::size_t count) const {
  return {element_at(spec_.output.data, offset, spec_.output.dtype), count, spec_.output.dtype};
}

CollectiveOptions HierarchicalCall::reduce_options() const {
  CollectiveOptions options;
  options.op = spec_.options.op;
  options.factor = spec_.options.factor;
  options.weight = spec_.options.weight;
  options.keep_non_finite = spec_.options.keep_non_finite;
  if (lossy()) options.delivery.kind = Delivery::Kind::bounded;  // until nothing is missing
  return options;
}

CollectiveOptions HierarchicalCall::across_options() const {
  CollectiveOptions options = spec_.options;
  options.factor = 1;
  options.weight = 1.0;
  if (options.op == ReduceOp::premul_sum) options.op = ReduceOp::sum;
  options.residual = {};
  options.control_variate = {};
  return options;
}

CollectiveOptions HierarchicalCall::spread_options() const {
  CollectiveOptions options;
  options.delivery.kind = spec_.options.delivery.kind;
  options.delivery.loss_max = spec_.options.delivery.loss_max;
  return options;
}

void HierarchicalCall::add(Tier tier, std::size_t piece, OperationSpec spec, std::size_t part) {
  std::vector<Leg>& legs = legs_[static_cast<std::size_t>(tier)];
  spec.lenient |= tier == Tier::spread && lossy();
  spec.parts = wire::kBySites;
  spec.whole = {.kind = spec_.kind,
                .number = static_cast<std::uint32_t>(place_),
                .deadline = spec_.options.delivery.deadline};
  LEEWAY_ASSERT(legs.size() < kLegsMax);
  legs.push_back({.tier = tier,
                  .piece = piece,
                  .part = part,
                  .spec = std::move(spec),
                  .place = place_ * kLegsMax + legs.size()});
}

void HierarchicalCall::plan_all_reduce(std::size_t piece_bytes) {
  const std::size_t count = spec_.input.count;
  const std::size_t grain = per_site() * kPieceGrain;
  std::size_t whole =
      std::max<std::size_t>(1, piece_bytes / size_of(spec_.input.dtype) / grain) * grain;
  const bool cut = !lossy() && is_native(spec_.options) && piece_bytes > 0;
  std::size_t pieces = cut ? std::max<std::size_t>(1, count / whole) : 1;
  if (pieces > kPiecesMax) {
    whole = count / kPiecesMax / grain * grain;
    pieces = kPiecesMax;
  }
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t offset = i * whole;
    pieces_.push_back({offset, i + 1 == pieces ? count - offset : whole});
  }
  units_.assign(pieces, 1.0);
  for (std::size_t i = 0; i < pieces; ++i) plan_piece(i);
  if (lossy()) add_tally();
}

void HierarchicalCall::plan_piece(std::size_t piece) {
  const auto [offset, count, reduces, done] = pieces_[piece];
  const auto shards = schedule::ShardMap::even(count, sites_.ranks_per_site());
  const schedule::Shard own = shards[static_cast<Rank>(sites_.place())];
  const TensorView part = output(offset + own.offset, own.count);
  OperationSpec reduce = leg_spec(OperationKind::reduce_scatter, input(offset, count), part);
  OperationSpec spread = leg_spec(OperationKind::all_gather, part, output(offset, count));
  std::vector<std::size_t> counts;
  for (Rank place = 0; place < per_site(); ++place) counts.push_back(shards[place].count);
  if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) != counts.end()) {
    reduce.input_blocks = BlockList(Blocks(counts));
    spread.output_blocks = BlockList(Blocks(counts));
  }
  reduce.options = reduce_options();
  spread.options = spread_options();
  OperationSpec across = leg_spec(OperationKind::all_reduce, part, part);
  across.options = across_options();
  across.lenient = lossy();
  if (!spec_.options.residual.empty())
    across.options.residual = spec_.options.residual.subspan(offset + own.offset, own.count);
  if (!spec_.options.control_variate.empty()) {
    across.options.control_variate =
        spec_.options.control_variate.subspan(offset + own.offset, own.count);
  }
  pieces_[piece].reduces_left = 1;
  add(Tier::reduce, piece, std::move(reduce), piece);
  add(Tier::across, piece, std::move(across));
  add(Tier::spread, piece, std::move(spread));
}

// Adds a leg in which the ranks of a site exchange tallies of the elements that they lack. Each
// rank knows only what its own hop across did not bring.
void HierarchicalCall::add_tally() {
  tallies_.resize(kTallies * per_site());
  brought_.assign(per_site(), true);
  OperationSpec tally = leg_spec(OperationKind::all_gather, std::span<const double>(tally_here_),
                                 std::span(tallies_));
  tally.options.delivery.kind = Delivery::Kind::bounded;
  add(Tier::spread, pieces_.size() - 1, std::move(tally));
  legs_[static_cast<std::size_t>(Tier::spread)].back().tallies = true;
}

void HierarchicalCall::plan_reduce_scatter() {
  const std::size_t block = spec_.output.count;
  const auto sites = static_cast<std::size_t>(sites_.sites());
  partials_.resize(sites * block * size_of(spec_.input.dtype));
  units_.assign(sites, 1.0);
  pieces_.push_back({.offset = 0, .count = spec_.input.count, .reduces_left = sites});
  const std::vector<std::size_t> counts(per_site(), block);
  for (std::size_t site = 0; site < sites; ++site) {
    std::vector<std::size_t> places;
    places.reserve(per_site());
    for (int place = 0; place < sites_.ranks_per_site(); ++place)
      places.push_back(sites_.rank(static_cast<int>(site), place) * block);
    OperationSpec reduce = leg_spec(
        OperationKind::reduce_scatter, spec_.input,
        {element_at(partials_.data(), site * block, spec_.input.dtype), block, spec_.input.dtype});
    reduce.input_blocks = BlockList(Blocks(counts, places));
    reduce.options = reduce_options();
    add(Tier::reduce, 0, std::move(reduce), site);
  }
  OperationSpec across =
      leg_spec(OperationKind::reduce_scatter, {partials_.data(), sites * block, spec_.input.dtype},
               spec_.output);
  across.options = across_options();
  // Appends the blocks of this rank and its counterparts to `part`.
  const auto gather = [&](std::span<const float> whole, std::vector<float>& part) {
    for (const Rank rank : sites_.across())
      part.insert(part.end(), whole.begin() + static_cast<std::ptrdiff_t>(rank * block),
                  whole.begin() + static_cast<std::ptrdiff_t>((rank + 1) * block));
  };
  if (!spec_.options.residual.empty()) {
    gather(spec_.options.residual, residual_);
    across.options.residual = residual_;
  }
  if (!spec_.options.control_variate.empty()) {
    gather(spec_.options.control_variate, control_);
    across.options.control_variate = control_;
  }
  add(Tier::across, 0, std::move(across));
}

void HierarchicalCall::plan_all_gather() {
  const std::size_t block = spec_.input.count;
  pieces_.push_back({.offset = 0, .count = spec_.output.count});
  std::vector<std::size_t> places;
  for (const Rank rank : sites_.across()) places.push_back(rank * block);
  OperationSpec across = leg_spec(OperationKind::all_gather, spec_.input, spec_.output);
  across.output_blocks = BlockList(Blocks(std::vector<std::size_t>(places.size(), block), places));
  across.options = across_options();
  add(Tier::across, 0, std::move(across));
  const std::vector<std::size_t> counts(per_site(), block);
  for (int site = 0; site < sites_.sites(); ++site) {
    places.clear();
    for (int place = 0; place < sites_.ranks_per_site(); ++place)
      places.push_back(sites_.rank(site, place) * block);
    const auto own = places[static_cast<std::size_t>(sites_.place())];
    OperationSpec spread = leg_spec(OperationKind::all_gather, output(own, block), spec_.output);
    spread.output_blocks = BlockList(Blocks(counts, places));
    spread.options = spread_options();
    add(Tier::spread, 0, std::move(spread));
  }
}

bool HierarchicalCall::may_begin(const Leg& leg) const {
  switch (leg.tier) {
    case Tier::reduce:
      return true;
    case Tier::across:
      return pieces_[leg.piece].reduces_left == 0;
    case Tier::spread:
      return pieces_[leg.piece].across_done;
  }
  return false;
}

bool HierarchicalCall::through(Tier tier) const {
  const auto t = static_cast<std::size_t>(tier);
  return next_[t] == legs_[t].size();
}

HierarchicalCall::Leg* HierarchicalCall::next(Tier tier, Instant now) {
  const auto t = static_cast<std::size_t>(tier);
  if (through(tier) || !may_begin(legs_[t][next_[t]])) return nullptr;
  Leg& leg = legs_[t][next_[t]++];
  leg.spec.options.delivery.deadline = time_left(tier, now);
  // After a failure the leg still takes its number, so that numbers stay equal on all ranks. It is
  // forfeited, so it sends no wrong elements.
  if (!failure_.ok()) leg.spec.forfeit = std::make_shared<const Status>(failure_);
  if (tier == Tier::across && failure_.ok()) weigh(leg);
  return &leg;
}

Duration HierarchicalCall::time_left(Tier tier, Instant now) const {
  Duration whole = spec_.options.delivery.deadline;
  if (whole > no_deadline / 4) return no_deadline;
  if (lossy() && tier == Tier::reduce) whole /= kReduceEnds;
  if (lossy() && tier == Tier::across && !legs_[static_cast<std::size_t>(Tier::spread)].empty())
    whole -= whole / kSpreadBegins;
  return std::max<Duration>(submitted_ + whole - now, Duration(1));
}

// Prepares the hop across of an average. A contribution to an average must be a sum over its units
// of work, but the hop inside the site gave a mean. So the mean is multiplied by the site's units,
// which `units_` has divided by the number of ranks in a site. Without weights all `units_` are 1,
// and nothing is multiplied.
void HierarchicalCall::weigh(Leg& leg) {
  if (spec_.options.op != ReduceOp::avg || spec_.input.dtype != DataType::f32) return;
  if (std::all_of(units_.begin(), units_.end(), [](double units) { return units == 1.0; })) return;
  if (spec_.kind == OperationKind::reduce_scatter) {
    for (std::size_t site = 0; site < units_.size(); ++site) {
      const std::span<float> partial(
          reinterpret_cast<float*>(partials_.data()) + site * spec_.output.count,
          spec_.output.count);
      for (float& value : partial) value *= static_cast<float>(units_[site]);
    }
    leg.spec.options.owner_weights = units_;
    return;
  }
  const double units = units_[leg.piece];
  leg.spec.options.weight = units;
  const std::span<float> partial(static_cast<float*>(leg.spec.output.data), leg.spec.output.count);
  for (float& value : partial) value *= static_cast<float>(units);
}

void HierarchicalCall::fail(const Status& status, const protocol::Blame& blame) {
  if (!failure_.ok()) return;
  failure_ = status;
  blame_ = blame;
}

// Converts a rank of the tier's communicator to the rank in the whole communicator.
Rank HierarchicalCall::known_as(Tier tier, Rank rank) const {
  if (rank == kNoRank) return kNoRank;
  return tier == Tier::across ? sites_.rank(rank, sites_.place())
                              : sites_.rank(sites_.site(), rank);
}

void HierarchicalCall::on_done(const Leg& leg, const Request& request, Instant now) {
  --left_;
  Piece& piece = pieces_[leg.piece];
  if (leg.tier == Tier::reduce) --piece.reduces_left;
  if (leg.tier == Tier::across) piece.across_done = true;
  if (!request.status.ok()) {
    return fail(request.status, {.rank = known_as(leg.tier, request.blame.rank),
                                 .first = known_as(leg.tier, request.blame.first)});
  }
  report_.deadline_cut |= request.report.deadline_cut;
  if (leg.tallies) return;
  if (leg.tier == Tier::reduce) {
    const double units = request.units / static_cast<double>(per_site());
    units_[leg.part] = units == 0.0 ? 0.0 : std::max(units, limits::kWeightMin);
  }
  merge(leg, request, now);
}

void HierarchicalCall::merge(const Leg& leg, const Request& request, Instant now) {
  const CollectiveReport& part = request.report;
  for (const PeerReport& from : part.peers) add_counts(from, peers_[known_as(leg.tier, from.rank)]);
  report_.bytes_sent += part.bytes_sent;
  report_.non_finite += part.non_finite;
  const bool first = leg.piece == 0 && leg.part == 0 && leg.tier != Tier::spread;
  if (first && report_.times.gate == Duration{0})
    report_.times.gate = request.submitted - submitted_ + part.times.gate;
  if (leg.tier == Tier::across) merge_across(request);
  if (leg.tier == Tier::spread) {
    report_.elements_missing += part.elements_missing;
    if (!tallies_.empty()) {
      for (const PeerReport& from : part.peers) brought_[from.rank] = from.arrived > 0;
    }
  }
  report_.times.total = now - submitted_;
}

// Takes over the report of a leg across. Estimates are set and not added up, because only a call
// with one such leg has any: calls of several pieces are exact.
void HierarchicalCall::merge_across(const Request& request) {
  const CollectiveReport& part = request.report;
  tally_here_[kMissing] = static_cast<double>(part.elements_missing);
  tally_here_[kCut] = report_.deadline_cut ? 1.0 : 0.0;
  report_.elements_untouched += part.elements_untouched;
  report_.complete &= part.complete;
  report_.times.reduce =
      std::max(report_.times.reduce, request.submitted - submitted_ + part.times.reduce);
  report_.owners = part.owners * static_cast<std::uint32_t>(per_site());
  report_.estimator = part.estimator;
  report_.codec = part.codec;
  report_.variance_estimate = part.variance_estimate;
  report_.noise = part.noise;
  report_.contributions_fetched += part.contributions_fetched;
  report_.contributions_missing += part.contributions_missing;
  add_contributors(part.contributors, report_.contributors);
}

// Returns the error of a call whose result lacks elements in this site. The text names the rank
// from which most packets are missing.
Status HierarchicalCall::incomplete(const CollectiveReport& report) const {
  const auto missing = [](const PeerReport& row) { return row.expected - row.arrived; };
  const auto most = std::max_element(
      peers_.begin(), peers_.end(),
      [&](const PeerReport& a, const PeerReport& b) { return missing(a) < missing(b); });
  std::array<char, 40> from{};
  if (missing(*most) > 0)
    std::snprintf(from.data(), from.size(), ", most of them from rank %u", unsigned{most->rank});
  return Status::error(
      report.deadline_cut ? StatusCode::kDeadlineExceeded : StatusCode::kPeerLost,
      "rank %u: %s #%llu between sites: %llu of %zu elements of the result did not come to this "
      "site%s (deadline %s): they are 0, where spread exact promises all; a lossy spread asks for "
      "what comes",
      unsigned{sites_.self()}, to_string(spec_.kind), static_cast<unsigned long long>(place_),
      static_cast<unsigned long long>(report.elements_missing), spec_.output.count, from.data(),
      in_milliseconds(spec_.options.delivery.deadline).data());
}

void HierarchicalCall::finish(Request& outcome, Instant now) const {
  CollectiveReport& report = outcome.report;
  const std::uint64_t sequence = report.sequence;
  report = report_;
  report.sequence = sequence;
  report.sites = static_cast<std::uint32_t>(sites_.sites());
  report.times.total = now - submitted_;
  report.times.spread = report.times.total - report.times.reduce;
  for (const PeerReport& row : peers_) {
    if (row.rank != sites_.self()) report.peers.push_back(row);
  }
  set_losses(report);
  if (!tallies_.empty()) add_tallies(report);
  report.complete &= report.elements_missing == 0;
  if (!spec_.options.residual.empty() && spec_.kind == OperationKind::reduce_scatter)
    put_back_residual();
  const bool promised = spec_.kind == OperationKind::all_reduce && lossy() &&
                        spec_.options.spread == Delivery::Kind::exact;
  if (failure_.ok() && promised && !report.complete) return outcome.finish(incomplete(report), now);
  outcome.finish(failure_, now);
}

// Adds the elements that the ranks of this site did not get in their hops across. If a rank's tally
// did not come, nobody knows what that rank's part of the result lacks, and the whole part counts
// as missing. If nothing of the part came either, merge() has counted it already.
void HierarchicalCall::add_tallies(CollectiveReport& report) const {
  const auto parts = schedule::ShardMap::even(spec_.input.count, sites_.ranks_per_site());
  for (Rank place = 0; place < per_site(); ++place) {
    const double* const tally = tallies_.data() + kTallies * place;
    const bool heard = tally[kHeard] == 1.0;
    report.complete &= heard;
    report.deadline_cut |= tally[kCut] == 1.0;
    report.elements_missing += heard ? static_cast<std::uint64_t>(std::llround(tally[kMissing]))
                               : brought_[place] ? parts[place].count
                                                 : 0;
  }
  report.elements_missing = std::min<std::uint64_t>(report.elements_missing, spec_.input.count);
}

void HierarchicalCall::put_back_residual() const {
  const std::size_t block = spec_.output.count;
  auto from = residual_.begin();
  for (const Rank rank : sites_.across()) {
    std::copy_n(from, block,
                spec_.options.residual.begin() + static_cast<std::ptrdiff_t>(rank * block));
    from += static_cast<std::ptrdiff_t>(block);
  }
}

}  // namespace leeway::collective
