// Plays a hostile peer that has the keys. The input is a script of datagrams with a valid prefix
// and checksum but arbitrary fields, which reach a process during its operations. Some datagrams
// name communicators that are closed or unknown. The process must not crash or read out of bounds,
// and must finish by its deadlines. A datagram that belongs to no communicator of the process may
// cause at most one datagram in answer. The script is played twice: to a process without pace, and
// to one whose pace follows the peer's reports.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/contracts.h"
#include "base/crc32c.h"
#include "collective/node.h"
#include "wire/packet.h"

using namespace leeway;

namespace {

constexpr std::uint32_t kOpen = 7;
constexpr std::uint32_t kClosed = 8;
constexpr std::uint32_t kUnknown = 9;

std::uint32_t epoch_of(std::byte choice) {
  return choice == std::byte{0xFF} ? kUnknown : choice == std::byte{0xFE} ? kClosed : kOpen;
}

// Makes the fuzzer's bytes a valid datagram: sets magic, version, epoch, routing and checksum, and
// leaves the rest.
void authenticate(std::vector<std::byte>& datagram, Rank source) {
  const std::uint16_t magic = wire::kMagic;
  const std::uint32_t epoch = epoch_of(datagram[17]);
  const Rank to = datagram[14] == std::byte{0xFE} ? kEveryRank : Rank{1};
  std::memcpy(datagram.data(), &magic, sizeof(magic));
  datagram[2] = std::byte{wire::kVersion};
  datagram[3] = std::byte(1 + (static_cast<int>(datagram[3]) + 9) % 10);
  if (wire::is_bare(static_cast<wire::PacketType>(datagram[3])))
    datagram.resize(wire::kPrefixBytes);
  std::memcpy(datagram.data() + 8, &epoch, sizeof(epoch));
  std::memcpy(datagram.data() + 12, &source, sizeof(source));
  std::memcpy(datagram.data() + 14, &to, sizeof(to));
  const bool data = datagram[3] == std::byte{1};
  const std::size_t header =
      data ? std::min(wire::kDataHeaderBytes, datagram.size()) : datagram.size();
  const ByteSpan all(datagram);
  std::uint32_t crc = crc32c(all.subspan(header));
  crc = crc32c(all.first(4), crc);
  crc = crc32c(all.subspan(8, header - 8), crc);
  std::memcpy(datagram.data() + 4, &crc, sizeof(crc));
}

struct Victim {
  std::vector<float> gradient = std::vector<float>(3000, 1.0f);
  std::vector<float> small = std::vector<float>(10, 1.0f);
  std::vector<float> inbox = std::vector<float>(500);
  std::vector<float> any_inbox = std::vector<float>(500);
  std::vector<float> uneven = std::vector<float>(1000);
  std::vector<float> uneven_result = std::vector<float>(1000);
  collective::Request requests[5];
  collective::Node node;
  collective::Member* member = nullptr;
  int strange_in = 0;  // datagrams that reach no member
  int strange_out = 0;
  std::unique_ptr<protocol::TrainBuffer> buffer = std::make_unique<protocol::TrainBuffer>();
  Instant now{1'000'000};

  explicit Victim(CongestionControl control)
      : node({.control = control, .rate_bits_per_second = 50'000'000}) {
    protocol::EndpointConfig config;
    config.self = 1;
    config.size = 4;
    config.epoch = kOpen;
    config.datagram_bytes = 600;
    config.multicast = true;
    config.window_bytes.assign(4, 64 * 1024);
    member = &node.join(now, config, {0, 1, 2, 3});
    config.epoch = kClosed;
    (void)node.part(node.join(now, config, {0, 1, 2, 3}));
    // Sends probes, so that peers can claim that they heard this rank's multicast.
    member->engine().endpoint().probe_all();
    requests[0].spec = {.kind = collective::OperationKind::all_reduce,
                        .input = std::span(gradient),
                        .output = std::span(gradient)};
    requests[0].spec.options.delivery = best_effort(std::chrono::milliseconds(50));
    requests[1].spec = {.kind = collective::OperationKind::all_reduce,
                        .input = std::span(small),
                        .output = std::span(small)};
    requests[1].spec.options.delivery = exact(std::chrono::milliseconds(80));
    requests[2].spec = {
        .kind = collective::OperationKind::recv, .output = std::span(inbox), .peer = 2};
    requests[2].spec.options.delivery = exact(std::chrono::milliseconds(60));
    requests[3].spec = {
        .kind = collective::OperationKind::recv, .output = std::span(any_inbox), .peer = kAnyRank};
    requests[3].spec.options.tag = 5;
    requests[3].spec.options.delivery = exact(std::chrono::milliseconds(60));
    const std::vector<std::size_t> counts = {0, 100, 300, 500};
    requests[4].spec = {.kind = collective::OperationKind::all_to_all,
                        .input = std::span(uneven),
                        .output = std::span(uneven_result)};
    requests[4].spec.options.delivery = exact(std::chrono::milliseconds(70));
    requests[4].spec.input_blocks = collective::BlockList(Blocks(counts));
    requests[4].spec.output_blocks = collective::BlockList(Blocks(counts));
    for (auto& request : requests) member->engine().submit(now, request);
    node.touch(*member);
  }

  void pump(Duration step) {
    now += step;
    node.on_wake(now);
    while (node.poll_train(now, *buffer)) {
      const Slice first = buffer->train().slices[0];
      strange_out += wire::epoch_of({first.data, first.bytes}) != kOpen;
    }
    LEEWAY_ASSERT(strange_out <= strange_in);
    if (node.uplink() == nullptr) return;
    const double pace = node.uplink()->pace().bits_per_second;
    LEEWAY_ASSERT(pace > 0 && pace <= 1e12);
  }
};

void play(CongestionControl control, const std::uint8_t* data, std::size_t size) {
  Victim victim(control);
  while (size >= 2) {  // an entry is a length, then as many bytes
    const std::size_t length = std::min<std::size_t>(size - 2, (data[0] | data[1] << 8) % 700);
    std::vector<std::byte> datagram(std::max(length, wire::kPrefixBytes));
    std::memcpy(datagram.data(), data + 2, length);
    const Rank source = static_cast<Rank>(datagram[16]) % 2 == 0 ? 2 : 3;
    authenticate(datagram, source);
    victim.strange_in += wire::epoch_of(datagram) != kOpen;
    victim.node.on_datagram(victim.now, source, datagram);
    victim.pump(std::chrono::microseconds(100));
    data += 2 + length;
    size -= 2 + length;
  }
  for (int i = 0; i < 200; ++i) victim.pump(std::chrono::milliseconds(1));
  for (const auto& request : victim.requests) LEEWAY_ASSERT(request.done);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr CongestionControl kControls[] = {CongestionControl::fixed, CongestionControl::scavenger,
                                             CongestionControl::wan, CongestionControl::fabric};
  play(CongestionControl::none, data, size);
  play(kControls[size % std::size(kControls)], data, size);
  return 0;
}
