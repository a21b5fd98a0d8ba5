// A peer writes anything into a pair's shared memory between this side's steps on both rings.
// Nothing outside of the ring may be lent or written, no call may go on for ever, and a broken ring
// must stay broken. The input gives the actions.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/contracts.h"
#include "step_input.h"
#include "transport/shm/segment.h"

using namespace leeway;
using namespace leeway::transport;
using leeway::fuzz::StepInput;

namespace {

constexpr std::size_t kDatagramMax = 32768;

// One segment for all inputs, mapped as by two processes. After each input its bytes are set to
// zero.
struct Memory {
  Memory() {
    const std::string name = "leeway-fuzz-" + std::to_string(::getpid());
    ours = Segment::create(kSharedMemoryFolder, name, kRingBytesMin).value();
    peers = Segment::open(kSharedMemoryFolder, name).value();
    MemoryFile::remove_name(kSharedMemoryFolder, name);
  }
  Segment ours;
  Segment peers;
};

class Scene {
 public:
  explicit Scene(const Memory& memory)
      : there_{memory.peers.ring(0), memory.peers.ring(1)},
        inbound_(memory.ours.ring(0)),
        reader_(inbound_, kDatagramMax),
        writer_(memory.ours.ring(1)),
        copies_(kOut * RingReader::kCopiedBytesMax) {}

  ~Scene() {
    for (const RingMemory& ring : there_)
      std::memset(static_cast<void*>(ring.head), 0, sizeof(RingHead));
    for (const std::size_t at : scribbled_) std::memset(there_[0].data + at, 0, sizeof(RecordHead));
    std::memset(there_[1].data, 0, std::min(put_, there_[1].bytes));
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void step(StepInput& input) {
    switch (input.byte() % 8) {
      case 0:
        return scribble(input);
      case 1:
        there_[0].head->written.store(input.get<std::uint64_t>());
        return;
      case 2:  // a position that a writer could give
        there_[0].head->written.store(std::uint64_t{input.get<std::uint16_t>()} * kRecordGrain);
        return;
      case 3:
        there_[1].head->released.store(input.get<std::uint64_t>());
        return;
      case 4:
        return read(input);
      case 5:
        (void)reader_.release();
        return;
      case 6:
        return put(input);
      case 7:
        return sleep();
    }
  }

 private:
  static constexpr std::size_t kOut = 16;

  void scribble(StepInput& input) {
    constexpr std::uint32_t kKinds[] = {static_cast<std::uint32_t>(RecordKind::train),
                                        static_cast<std::uint32_t>(RecordKind::challenge),
                                        static_cast<std::uint32_t>(RecordKind::echo)};
    const std::size_t at = input.get<std::uint16_t>() * kRecordGrain % there_[0].bytes;
    const auto kind = input.byte();
    RecordHead head;
    head.kind = kind < 240 ? kKinds[kind % 3] : input.get<std::uint32_t>();
    head.bytes = kind % 2 == 0 ? input.get<std::uint16_t>() : input.get<std::uint32_t>();
    head.segment_bytes = input.get<std::uint16_t>();
    std::memcpy(there_[0].data + at, &head, sizeof(head));
    scribbled_.push_back(at);
  }

  void read(StepInput& input) {
    const bool broken = reader_.broken();
    const std::size_t room = input.byte() % (kOut + 1);
    const std::size_t count = reader_.read(1, std::span(out_).first(room), copies_.data());
    LEEWAY_ASSERT(count <= room && (!broken || count == 0));
    for (const Received& datagram : std::span(out_).first(count)) {
      LEEWAY_ASSERT(datagram.bytes.size() >= 1 && datagram.bytes.size() <= kDatagramMax);
      LEEWAY_ASSERT(lies_in(datagram.bytes, {inbound_.data, 2 * inbound_.bytes}) ||
                    lies_in(datagram.bytes, copies_));
      sum_ += std::to_integer<unsigned>(datagram.bytes.front()) +
              std::to_integer<unsigned>(datagram.bytes.back());
    }
    LEEWAY_ASSERT(!broken || reader_.broken());
  }

  void put(StepInput& input) {
    const bool broken = writer_.broken();
    const std::size_t bytes = 1 + input.get<std::uint16_t>() % kTrainBytesMax;
    const Slice slice{payload_.data(), bytes};
    const bool taken = writer_.put({1, kDatagramMax, bytes, {&slice, 1}});
    LEEWAY_ASSERT(!broken || !taken);
    put_ += taken ? record_bytes(bytes) : 0;
    writer_.publish();
    (void)writer_.reader_sleep();
  }

  void sleep() {
    if (reader_.begin_sleep()) reader_.end_sleep();
    if (writer_.begin_waiting(1000)) writer_.end_waiting();
    (void)reader_.writer_wait();
  }

  static bool lies_in(ByteSpan bytes, ByteSpan memory) {
    return bytes.data() >= memory.data() &&
           bytes.data() + bytes.size() <= memory.data() + memory.size();
  }

  const std::array<RingMemory, 2> there_;
  const RingMemory inbound_;
  RingReader reader_;
  RingWriter writer_;
  std::array<Received, kOut> out_;
  std::vector<std::byte> copies_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(kTrainBytesMax);
  std::vector<std::size_t> scribbled_;
  std::size_t put_ = 0;
  unsigned sum_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Memory memory;
  StepInput input(std::as_bytes(std::span(data, size)));
  Scene scene(memory);
  while (!input.empty()) scene.step(input);
  return 0;
}
