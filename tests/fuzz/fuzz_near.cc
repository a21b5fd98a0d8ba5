// Peers write anything into their parts of an arena (memory that all ranks of a host map) while
// this rank waits in its calls. Each call must end by its deadline. It may write nothing but this
// rank's tensors and parts of the arena, and read peers' memory only where this rank has mapped it.
// The input decides the calls and what peers do.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/contracts.h"
#include "near/caller.h"
#include "step_input.h"

using namespace leeway;
using namespace leeway::near;
using leeway::collective::OperationKind;
using leeway::collective::OperationSpec;
using leeway::fuzz::StepInput;

namespace {

constexpr Rank kRanks = 3;
constexpr Shape kShape{kRanks, 4096};
constexpr ArenaName kName{std::byte{'f'}};
constexpr Duration kDeadline = std::chrono::milliseconds(10);

const std::string& folder() {
  static const std::string kFolder = transport::kSharedMemoryFolder;
  return kFolder;
}

// One arena for all inputs, mapped as by three processes. After each input its bytes are set to
// zero.
struct Memory {
  Memory() {
    ArenaName name = kName;
    const auto process = ::getpid();
    std::memcpy(name.data() + 1, &process, sizeof(process));
    files.push_back(ArenaFile::create(folder(), name, kShape, 0).value());
    for (Rank rank = 1; rank < kRanks; ++rank)
      files.push_back(ArenaFile::open(folder(), name, kShape, rank).value());
    ArenaFile::remove_name(folder(), name);
    clean();
  }
  void clean() const {
    for (const ArenaFile& file : files) {
      std::memset(static_cast<void*>(&file.arena().own_line()), 0, kLineBytes);
      std::memset(file.arena().own_slot(0), 0, kSlots * kShape.slot_bytes);
    }
  }
  Line& line(Rank rank) const { return files[rank].arena().own_line(); }

  std::vector<ArenaFile> files;
};

// A tensor with guard elements on both sides, which must not be written.
class Guarded {
 public:
  explicit Guarded(std::size_t count) : values_(count + 2 * kAround, kGuard), count_(count) {
    std::fill_n(data(), count, 1.0f);
  }
  float* data() { return values_.data() + kAround; }
  bool intact() const {
    const auto whole = [](float value) { return value == kGuard; };
    return std::all_of(values_.begin(), values_.begin() + kAround, whole) &&
           std::all_of(values_.end() - kAround, values_.end(), whole);
  }
  TensorView view() { return {data(), count_, DataType::f32}; }

 private:
  static constexpr std::ptrdiff_t kAround = 16;
  static constexpr float kGuard = -12345.0f;
  std::vector<float> values_;
  std::size_t count_;
};

class Scene {
 public:
  Scene(const Memory& memory, StepInput& input)
      : memory_(memory),
        input_(input),
        station_(memory.files[0].arena(),
                 {.now = [this] { return turn(); }, .look = [](Rank&) { return Status(); }}),
        caller_(station_, folder(), file_name(memory.files[0].name())) {}
  ~Scene() {
    for (const std::string& name : names_) transport::MemoryFile::remove_name(folder(), name);
    caller_.close();
    memory_.clean();
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void call() {
    ++number_;
    const std::uint8_t choice = input_.byte();
    if (choice % 16 == 15) return allocate();
    if (choice % 16 == 14) return station_.go_elsewhere(number_);
    constexpr std::size_t kCounts[] = {0, 1, 12, 700, 1024, 3000, 6000, 40'000};
    const std::size_t count = kCounts[input_.byte() % std::size(kCounts)] * kRanks;
    OperationSpec spec{.kind = static_cast<OperationKind>(choice % wire::kOperationKinds)};
    spec.options.delivery.deadline = kDeadline;
    Guarded in(count);
    Guarded out(count);
    spec.input = in.view();
    spec.output = out.view();
    shrink(spec);
    if (region_ != nullptr && choice >= 128) place_in_region(spec);
    if (!takes(spec) || !collective::validate(spec, 0, kRanks).ok()) return;
    CollectiveReport report;
    what_ = plan_of(spec, kRanks, kShape.slot_bytes).what();
    count_ = collective::agreed_count(spec);
    const auto outcome = caller_.run(spec, number_, now_, report);
    LEEWAY_ASSERT(in.intact() && out.intact());
    LEEWAY_ASSERT(outcome.way == Caller::Way::here || outcome.status.ok());
  }

 private:
  void allocate() {
    const std::size_t bytes = 1 + input_.byte() * std::size_t{4096};
    what_ = kAllocation;
    count_ = bytes;
    const auto region = caller_.allocate(bytes, number_, now_, kDeadline);
    if (!region.ok()) return;
    LEEWAY_ASSERT((*region)->memory().size() >= bytes);
    region_ = *region;
    std::memset(region_->memory().data(), 1, region_->memory().size());
  }

  // Shrinks tensors of `spec` to the sizes that the operation requires.
  static void shrink(OperationSpec& spec) {
    switch (spec.kind) {
      case OperationKind::reduce_scatter:
      case OperationKind::scatter:
        spec.output.count /= kRanks;
        break;
      case OperationKind::all_gather:
      case OperationKind::gather:
      case OperationKind::split:
        spec.input.count /= kRanks;
        break;
      case OperationKind::barrier:
        spec.input.count = spec.output.count = 0;
        break;
      default:
        break;
    }
    if (spec.kind == OperationKind::reduce || spec.kind == OperationKind::broadcast ||
        spec.kind == OperationKind::gather || spec.kind == OperationKind::scatter)
      spec.peer = 0;
  }
  void place_in_region(OperationSpec& spec) {
    const MutableByteSpan memory = region_->memory();
    if (memory.size() < spec.input.bytes() + spec.output.bytes()) return;
    spec.input.data = memory.data();
    spec.output.data = memory.data() + spec.input.bytes();
  }

  // Called when the tested rank reads the clock. Peers act then.
  Instant turn() {
    now_ = now_ + std::chrono::milliseconds(1);
    if (!input_.empty()) act();
    return now_;
  }

  void act() {
    const std::uint8_t choice = input_.byte();
    const Rank rank = static_cast<Rank>(1 + (choice >> 7));
    Line& line = memory_.line(rank);
    Descriptor& descriptor = line.descriptors[choice >> 6 & 1];
    switch (choice % 12) {
      case 0:  // as a peer that is in the call, and far ahead in it
      case 1:
        for (Rank peer = 1; peer < kRanks; ++peer) take_part(peer);
        return;
      case 2:
        describe(descriptor);
        line.progress = progress_of(number_, input_.byte());
        return;
      case 3: {  // any word of the peer's line
        const std::size_t at = input_.get<std::uint16_t>() % (kLineBytes / sizeof(Word));
        reinterpret_cast<Word*>(&line)[at] = input_.get<std::uint64_t>();
        return;
      }
      case 4:
        descriptor.first = input_.get<std::uint64_t>();
        return;
      case 5:
        descriptor.from = descriptor.to = input_.byte();
        descriptor.from_at = input_.get<std::uint64_t>();
        descriptor.to_at = input_.get<std::uint64_t>();
        return;
      case 6:
        descriptor.from = descriptor.to = allocated_;
        descriptor.from_at = input_.get<std::uint16_t>();
        descriptor.to_at = input_.get<std::uint16_t>();
        return;
      case 7:
        line.gave_up = input_.byte();
        return;
      case 8:
        line.elsewhere[input_.byte() % kElsewhereMax] = input_.byte();
        return;
      case 9: {
        const std::size_t bytes = input_.byte();
        const ByteSpan taken = input_.take(bytes);
        std::copy(taken.begin(), taken.end(), memory_.files[rank].arena().own_slot(choice >> 4));
        return;
      }
      case 10:
        return make_regions();
      case 11:
        ++line.freed;
        line.regions[input_.byte() % kRegionsMax] = input_.byte();
        return;
    }
  }

  void describe(Descriptor& descriptor) const {
    descriptor.call = number_;
    descriptor.what = what_;
    descriptor.count = count_;
    descriptor.condition = 0;
  }
  void take_part(Rank rank) const {
    Line& line = memory_.line(rank);
    describe(line.descriptors[0]);
    line.progress = progress_of(number_, kStepsMax);
  }
  void make_regions() {
    if (what_ != kAllocation || allocated_ == number_) return;
    allocated_ = number_;
    const std::size_t pages = (count_ + kLineBytes - 1) / kLineBytes * kLineBytes;
    for (Rank rank = 1; rank < kRanks; ++rank) {
      names_.push_back(file_name(memory_.files[0].name()) + "-" + std::to_string(rank) + "-" +
                       std::to_string(number_));
      (void)transport::MemoryFile::create(folder(), names_.back(), pages);
      take_part(rank);
      Line& line = memory_.line(rank);
      line.descriptors[0].to = 1;
      line.descriptors[0].to_at = 0;
      line.regions[0] = number_;
    }
  }

  const Memory& memory_;
  StepInput& input_;
  Station station_;
  Caller caller_;
  Instant now_{1'000'000};
  std::uint64_t number_ = 0;  // number of the current call
  std::uint64_t what_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t allocated_ = 0;  // the call in which peers made memory
  std::shared_ptr<Region> region_;
  std::vector<std::string> names_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Memory memory;
  StepInput input(std::as_bytes(std::span(data, size)));
  Scene scene(memory, input);
  while (!input.empty()) scene.call();
  return 0;
}
