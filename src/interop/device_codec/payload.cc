#include "device_codec/payload.h"

#include <algorithm>
#include <utility>

#include "base/contracts.h"

namespace leeway::device_codec {
namespace {

codec::Format format_of(const PayloadLayout::Half& half, DataType dtype) {
  return half.blocks.empty() ? codec::Format() : codec::format_of(half.codec, dtype);
}

}  // namespace

DevicePayload::DevicePayload(const device::Driver& driver, const Kernels& kernels,
                             device::cuda::Context context)
    : driver_(driver),
      kernels_(kernels),
      context_(context),
      encoded_memory_(driver, context),
      landing_memory_(driver, context),
      factor_memory_(driver, context) {
  auto thread =
      Thread::start("run kernels of a codec", [this](const std::stop_token& stop) { work(stop); });
  if (thread.ok()) thread_ = std::move(*thread);
  no_thread_ = thread.status();
}

DevicePayload::~DevicePayload() {
  thread_ = {};
}

Status DevicePayload::status() {
  const std::lock_guard lock(mutex_);
  return status_;
}

// ---- the call begins ----

Status DevicePayload::check(const PayloadLayout& layout) {
  const bool adds = layout.op == ReduceOp::sum || layout.op == ReduceOp::avg;
  if (layout.reduce.blocks.empty() || !adds)
    return Status::error(StatusCode::kUnsupported, "kernels are for sums and averages");
  if (layout.dtype != DataType::f32 && layout.size > static_cast<int>(kContributionsMax)) {
    return Status::error(StatusCode::kUnsupported,
                         "kernels add up at most %u contributions in 16 bits", kContributionsMax);
  }
  for (const PayloadLayout::Half* half : {&layout.reduce, &layout.spread}) {
    if (half->blocks.empty()) continue;
    const codec::Format format = format_of(*half, layout.dtype);
    if (!Kernels::supports(format)) {
      return Status::error(StatusCode::kUnsupported, "no kernel encodes %s as %.100s",
                           to_string(layout.dtype).data(), to_string(format.options).c_str());
    }
  }
  return Status();
}

// Gives each chunk of a block its place in encoded_memory_, from `at` on. Returns the end.
std::size_t DevicePayload::set_up(PayloadHalf half, Rank owner, std::size_t at, Block& block) {
  block.chunk_at.clear();
  const std::uint32_t chunks = layout_.chunks(half, owner);
  block.ready.assign(chunks, false);
  for (std::uint32_t c = 0; c < chunks; ++c) {
    block.chunk_at.push_back(at);
    at += layout_.chunk(half, owner, c).bytes;
  }
  return at;
}

Status DevicePayload::begin(const PayloadLayout& layout) {
  if (Status status = check(layout); !status.ok()) return status;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return idle_ && tasks_.empty(); });  // wait for a call that failed
    status_ = Status();
    used_ = asked_ = 0;
  }
  layout_ = layout;
  reduce_format_ = format_of(layout.reduce, layout.dtype);
  spread_format_ = format_of(layout.spread, layout.dtype);
  contributions_.assign(static_cast<std::size_t>(layout.size), {});
  reduced_.assign(layout.chunks(PayloadHalf::reduce, layout.rank), false);
  std::size_t bytes = 0;
  std::size_t factors = layout.reduce.packets(layout.rank) * static_cast<std::size_t>(layout.size);
  for (Rank owner = 0; owner < layout.size; ++owner) {
    if (owner == layout.rank) continue;
    bytes = set_up(PayloadHalf::reduce, owner, bytes, contributions_[owner]);
    factors += layout.spread.packets(owner);
  }
  bytes = set_up(PayloadHalf::spread, layout.rank, bytes, spread_);
  factors_used_ = 0;
  if (Status status = encoded_memory_.resize(bytes); !status.ok()) return status;
  if (Status status = factor_memory_.resize(factors * sizeof(float)); !status.ok()) return status;
  add_tasks_of_contributions();
  return Status();
}

// Adds a task for each chunk to encode. The blocks take turns, one chunk at a time. Chunks of a
// block are in the order in which they are sent.
void DevicePayload::add_tasks_of_contributions() {
  const std::lock_guard lock(mutex_);
  bool more = true;
  for (std::uint32_t turn = 0; more; ++turn) {
    more = false;
    for (Rank owner = 0; owner < layout_.size; ++owner) {
      const auto chunks = static_cast<std::uint32_t>(contributions_[owner].ready.size());
      if (turn >= chunks) continue;
      more = true;
      const std::uint32_t index = (layout_.reduce.blocks[owner].first_chunk + turn) % chunks;
      tasks_.push_back({.chunk = layout_.chunk(PayloadHalf::reduce, owner, index)});
    }
  }
  changed_.notify_all();
}

Result<MutableByteSpan> DevicePayload::landing(const PayloadLayout& layout) {
  if (Status status = landing_memory_.resize(layout.landing_bytes()); !status.ok()) return status;
  return MutableByteSpan(landing_memory_.data(), layout.landing_bytes());
}

// ---- the functions that the library calls ----

DevicePayload::Block& DevicePayload::block_of(const PayloadChunk& chunk) {
  return chunk.half == PayloadHalf::reduce ? contributions_[chunk.owner] : spread_;
}

EncodedChunk DevicePayload::encoded(const PayloadChunk& chunk) {
  const std::lock_guard lock(mutex_);
  const Block& block = block_of(chunk);
  if (!block.ready[chunk.index]) return {};
  return {encoded_memory_.data() + block.chunk_at[chunk.index], chunk.bytes};
}

void DevicePayload::take(const PayloadChunk& chunk,
                         std::span<const PayloadContribution> contributions) {
  Task task{.chunk = chunk, .handed_over = true, .contributions = {}};
  for (const PayloadContribution& one : contributions) {
    auto* const factors = reinterpret_cast<float*>(factor_memory_.data()) + factors_used_;
    std::ranges::copy(one.scales, factors);
    factors_used_ += one.scales.size();
    const bool encoded = one.data != nullptr;
    task.contributions.push_back(
        {.data = encoded ? landing_memory_.on_device(one.data) : input_of(chunk),
         .factors = reinterpret_cast<const float*>(factor_memory_.on_device(factors)),
         .encoded = encoded});
  }
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

bool DevicePayload::used(const PayloadChunk&) {
  const std::lock_guard lock(mutex_);
  if (asked_ == used_) return false;
  ++asked_;
  return true;
}

// ---- the thread ----

// Enqueues all waiting tasks, waits for the stream, and then marks them as done.
void DevicePayload::work(const std::stop_token& stop) {
  const device::ContextScope scope(driver_, context_);
  Status status;
  if (const auto code =
          driver_.call.cuStreamCreateWithPriority(&stream_, device::cuda::kStreamNonBlocking, 0);
      code != device::cuda::kSuccess)
    status = driver_.error("cuStreamCreate", code);
  std::unique_lock lock(mutex_);
  while (true) {
    idle_ = true;
    changed_.notify_all();
    changed_.wait(lock, stop, [this] { return !tasks_.empty(); });
    if (stop.stop_requested()) break;
    idle_ = false;
    const std::deque<Task> tasks = std::exchange(tasks_, {});
    lock.unlock();
    std::vector<PayloadChunk> encoded;
    std::size_t used = 0;
    for (const Task& task : tasks) {
      if (status.ok()) status = run(task, encoded);
      used += task.handed_over ? 1 : 0;
    }
    if (const auto code = driver_.call.cuStreamSynchronize(stream_);
        code != device::cuda::kSuccess && status.ok())
      status = driver_.error("cuStreamSynchronize", code);
    lock.lock();
    status_ = status;
    if (!status.ok()) continue;
    for (const PayloadChunk& chunk : encoded) block_of(chunk).ready[chunk.index] = true;
    used_ += used;
  }
  (void)driver_.call.cuStreamDestroy(stream_);
}

Status DevicePayload::run(const Task& task, std::vector<PayloadChunk>& encoded) {
  const PayloadChunk& chunk = task.chunk;
  if (task.handed_over && chunk.half == PayloadHalf::reduce) return sum(task, encoded);
  if (task.handed_over) {
    return add_up(spread_format_, packets_of(chunk), output_of(chunk), task.contributions,
                  SumJob::Absent::stays);
  }
  encoded.push_back(chunk);
  return encode(chunk, input_of(chunk));
}

Packets DevicePayload::packets_of(const PayloadChunk& chunk) const {
  const PayloadLayout::Half& half = layout_.half(chunk.half);
  return {.elements = chunk.elements,
          .packet_elements = half.packet_elements,
          .packet_bytes = static_cast<std::uint32_t>(half.packet_bytes(half.packet_elements)),
          .count = chunk.packets};
}

const std::byte* DevicePayload::input_of(const PayloadChunk& contribution) const {
  const std::size_t offset = layout_.reduce.blocks[contribution.owner].offset;
  return tensors_.input + (offset + contribution.first_element) * size_of(layout_.dtype);
}

// Returns the chunk's elements in the output. For a reduce-scatter the output is only the rank's
// own block.
std::byte* DevicePayload::output_of(const PayloadChunk& chunk) const {
  const bool whole = !layout_.spread.blocks.empty();
  const std::size_t offset = whole ? layout_.half(chunk.half).blocks[chunk.owner].offset : 0;
  return tensors_.output + (offset + chunk.first_element) * size_of(layout_.dtype);
}

Status DevicePayload::encode(const PayloadChunk& chunk, const std::byte* elements) {
  const bool contributes = chunk.half == PayloadHalf::reduce;
  std::byte* const out =
      encoded_memory_.on_device(encoded_memory_.data() + block_of(chunk).chunk_at[chunk.index]);
  return kernels_.encode(contributes ? reduce_format_ : spread_format_,
                         {.packets = packets_of(chunk),
                          .elements = elements,
                          .out = out,
                          .place = {layout_.seed, layout_.step, layout_.rank, chunk.position}},
                         {.stream = stream_});
}

Status DevicePayload::sum(const Task& task, std::vector<PayloadChunk>& encoded) {
  if (Status status = add_up(reduce_format_, packets_of(task.chunk), output_of(task.chunk),
                             task.contributions, SumJob::Absent::zeros);
      !status.ok())
    return status;
  reduced_[task.chunk.index] = true;
  return encode_whole(task.chunk, encoded);
}

// Encodes the chunks of our block that `reduced` completed. All ranks must end with the same
// values, so this rank also replaces its sum by what the chunks decode to.
Status DevicePayload::encode_whole(const PayloadChunk& reduced,
                                   std::vector<PayloadChunk>& encoded) {
  const auto overlap = [](const PayloadChunk& a, const PayloadChunk& b) {
    return a.first_element < b.first_element + b.elements &&
           b.first_element < a.first_element + a.elements;
  };
  for (std::uint32_t c = 0; c < layout_.chunks(PayloadHalf::spread, layout_.rank); ++c) {
    const PayloadChunk chunk = layout_.chunk(PayloadHalf::spread, layout_.rank, c);
    if (!overlap(chunk, reduced)) continue;
    bool whole = true;
    for (std::uint32_t r = 0; r < reduced_.size(); ++r)
      whole &= reduced_[r] || !overlap(layout_.chunk(PayloadHalf::reduce, layout_.rank, r), chunk);
    if (!whole) continue;
    if (Status status = encode(chunk, output_of(chunk)); !status.ok()) return status;
    const Contribution own{
        .data = encoded_memory_.on_device(encoded_memory_.data() + spread_.chunk_at[chunk.index])};
    if (Status status = add_up(spread_format_, packets_of(chunk), output_of(chunk),
                               std::span(&own, 1), SumJob::Absent::stays);
        !status.ok())
      return status;
    encoded.push_back(chunk);
  }
  return Status();
}

Status DevicePayload::add_up(const codec::Format& format, const Packets& packets,
                             std::byte* elements, std::span<const Contribution> contributions,
                             SumJob::Absent absent) {
  SumJob job{.packets = packets, .elements = elements, .absent = absent};
  do {
    const std::size_t count = std::min<std::size_t>(contributions.size(), kContributionsMax);
    std::ranges::copy(contributions.first(count), job.contributions);
    job.contributions_count = static_cast<unsigned>(count);
    if (Status status = kernels_.sum(format, job, {.stream = stream_}); !status.ok()) return status;
    contributions = contributions.subspan(count);
    job.adds = true;
  } while (!contributions.empty());
  return Status();
}

}  // namespace leeway::device_codec
