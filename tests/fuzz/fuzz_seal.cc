// A process must not open a forger's datagrams, and they must change nothing. It must open the
// peer's own datagrams, whatever came before them. The input decides what is sent.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/contracts.h"
#include "seal/aead.h"
#include "seal/associations.h"
#include "seal/path_message.h"
#include "step_input.h"

using namespace leeway;
using leeway::fuzz::StepInput;

namespace {

// Two processes with a forger between them. Keys change every few datagrams.
class Scene {
 public:
  Scene() {
    for (Rank self = 0; self < 2; ++self) {
      const seal::Party parties[2] = {{.public_key = {}, .tag_base = 0x10000},
                                      {.public_key = {std::byte{1}}, .tag_base = 0x20000}};
      keys_[self] = seal::derive_pair({}, {}, {}, parties[self], parties[1 - self], 0, 0);
      ends_[self].meet(Instant{0}, static_cast<Rank>(1 - self), keys_[self],
                       seal::aead_maker(seal::AeadKind::aes_128_gcm));
    }
  }

  std::vector<std::byte> seal(Rank from, std::size_t bytes) {
    const std::vector<std::byte> plain(bytes + 1, std::byte{7});
    const Slice slice{plain.data(), plain.size()};
    const Train train{static_cast<Rank>(1 - from), plain.size(), plain.size(), {&slice, 1}};
    std::vector<std::byte> out(seal::Associations::sealed_bytes(train));
    ends_[from].seal(Instant{0}, train, out);
    return out;
  }
  bool opens(Rank at, MutableByteSpan datagram) {
    return ends_[at].open_from_anywhere(Instant{0}, kNoRank, datagram).from == 1 - at;
  }
  void pass(Rank from, std::size_t bytes) {
    std::vector<std::byte> datagram = seal(from, bytes);
    std::vector<std::byte> copy = datagram;
    const auto to = static_cast<Rank>(1 - from);
    LEEWAY_ASSERT(opens(to, datagram));
    LEEWAY_ASSERT(!opens(to, copy));
    change_keys();
  }
  std::uint32_t tag_at(Rank receiver) const { return keys_[receiver].inbound_tag; }

 private:
  static constexpr seal::Rotation kQuick{.datagrams = 20};

  // Delivers all messages about keys, without loss.
  void change_keys() {
    for (bool any = true; any;) {
      any = false;
      for (Rank from = 0; from < 2; ++from) {
        ends_[from].on_wake(Instant{0});
        while (const auto message = ends_[from].poll_message()) {
          std::vector<std::byte> datagram(message->datagram.begin(), message->datagram.end());
          LEEWAY_ASSERT(opens(static_cast<Rank>(1 - from), datagram));
          any = true;
        }
      }
    }
  }

  std::array<seal::PairKeys, 2> keys_;
  std::array<seal::Associations, 2> ends_{seal::Associations(0, kQuick),
                                          seal::Associations(0, kQuick)};
};

void step(StepInput& input, Scene& scene) {
  const std::uint8_t choice = input.byte();
  const Rank from = choice >> 2 & 1;
  const auto to = static_cast<Rank>(1 - from);
  const std::size_t bytes = input.byte();
  switch (choice & 3) {
    case 0:
      return scene.pass(from, bytes);
    case 1: {  // a damaged one
      std::vector<std::byte> datagram = scene.seal(from, bytes);
      const std::size_t at = input.byte() % datagram.size();
      const std::byte damage{input.byte()};
      datagram[at] ^= damage;
      LEEWAY_ASSERT(scene.opens(to, datagram) == (damage == std::byte{0}));
      return;
    }
    case 2: {  // anything
      const ByteSpan taken = input.take(bytes);
      std::vector<std::byte> datagram(taken.begin(), taken.end());
      if (const auto message = seal::decode_path_message(taken)) {
        std::array<std::byte, seal::kPathMessageBytesMax> again;
        const std::size_t used = seal::encode_path_message(*message, again);
        LEEWAY_ASSERT(std::equal(taken.begin(), taken.end(), again.begin(), again.begin() + used));
      }
      if (const auto message = seal::decode_exchange_message(taken)) {
        std::array<std::byte, seal::kExchangeMessageBytesMax> again;
        const std::size_t used = seal::encode_exchange_message(*message, again);
        LEEWAY_ASSERT(std::equal(taken.begin(), taken.end(), again.begin(), again.begin() + used));
      }
      if (const auto head = seal::decode_relay_head(taken)) {
        std::array<std::byte, seal::kRelayHeadBytes> again;
        seal::encode_relay_head(*head, again);
        LEEWAY_ASSERT(std::equal(again.begin(), again.end(), taken.begin()));
      }
      if (const auto share = seal::decode_share_message(taken)) {
        std::array<std::byte, seal::kShareMessageBytes> again;
        seal::encode_share_message(*share, again);
        LEEWAY_ASSERT(std::equal(taken.begin(), taken.end(), again.begin(), again.end()));
      }
      LEEWAY_ASSERT(!scene.opens(to, datagram));
      return;
    }
    default: {  // any datagram, by a forger who knows the tag
      std::vector<std::byte> datagram(seal::kHeaderBytes);
      std::uint64_t counter = 0;
      for (int i = 0; i < 8; ++i) counter = counter << 8 | input.byte();
      seal::encode_header({.path_message = (choice & 8) != 0,
                           .phase = input.byte(),
                           .tag = scene.tag_at(to),
                           .counter = counter},
                          datagram);
      const ByteSpan taken = input.take(bytes);
      datagram.insert(datagram.end(), taken.begin(), taken.end());
      LEEWAY_ASSERT(!scene.opens(to, datagram));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  StepInput input(ByteSpan(reinterpret_cast<const std::byte*>(data), size));
  Scene scene;
  while (!input.empty()) step(input, scene);
  for (int i = 0; i < 20; ++i) {
    scene.pass(0, 10);
    scene.pass(1, 10);
  }
  return 0;
}
