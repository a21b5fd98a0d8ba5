#include "trace/datagram_text.h"

#include <gtest/gtest.h>

#include <array>

#include "seal/packet.h"
#include "written_trace.h"

namespace leeway::sim::trace {
namespace {

ByteSpan head(const std::vector<std::byte>& datagram) {
  return ByteSpan(datagram).first(std::min<std::size_t>(datagram.size(), kHeaderBytesKept));
}

TEST(DatagramText, DataFromItsHeaderAlone) {
  EXPECT_EQ(datagram_text(head(data_datagram(3, 17))), "data round 3 reduce packet 17 of 64");
}

TEST(DatagramText, PermutedAndRepairedDataSaysSo) {
  std::vector<std::byte> datagram(wire::kDataHeaderBytes);
  wire::DataHeader header;
  header.round = 3;
  header.kind = wire::FlowKind::spread;
  header.index = {5};
  header.position = {9};
  header.flow_packets = 10;
  header.attempt = 2;
  wire::encode_data({}, header, 0, datagram);
  EXPECT_EQ(datagram_text(datagram),
            "data round 3 spread packet 5 of 10, sent as no. 9, answer to request 2");
}

TEST(DatagramText, RequestsWhoseBitmapWasNotKept) {
  std::vector<std::byte> datagram(limits::kDatagramBytesMax);
  const std::array<std::uint64_t, 20> words{1, 2, 3};
  const wire::Repair repair{
      .round = 4, .kind = wire::FlowKind::reduce, .attempt = 1, .base = 128, .words = 20};
  datagram.resize(wire::encode_repair({.type = wire::PacketType::repair}, repair, words, datagram));
  EXPECT_EQ(datagram_text(head(datagram)),
            "repair round 4 reduce request 1 from packet 128, 20 words");
}

TEST(DatagramText, EndsReportsAndBareDatagrams) {
  std::vector<std::byte> datagram(limits::kDatagramBytesMax);
  wire::End end{.round = 6, .kind = wire::FlowKind::reduce, .attempt = 0, .flow_packets = 12};
  datagram.resize(wire::encode_end({.type = wire::PacketType::end}, end, datagram));
  EXPECT_EQ(datagram_text(datagram), "end round 6 reduce pass 0 of 12 packets");

  datagram.resize(limits::kDatagramBytesMax);
  datagram.resize(wire::encode_report({.type = wire::PacketType::report, .sequence = 12},
                                      wire::Report{}, datagram));
  EXPECT_EQ(datagram_text(head(datagram)), "report no. 12");

  datagram.resize(limits::kDatagramBytesMax);
  datagram.resize(wire::encode_bare({.type = wire::PacketType::goodbye, .sequence = 2}, datagram));
  EXPECT_EQ(datagram_text(datagram), "goodbye no. 2");

  datagram.resize(limits::kDatagramBytesMax);
  datagram.resize(wire::encode_bare({.type = wire::PacketType::alive, .sequence = 9}, datagram));
  EXPECT_EQ(datagram_text(datagram), "alive, answers no. 9");
}

TEST(DatagramText, OfSealedOnesTheNumberIsSaid) {
  std::vector<std::byte> datagram(100);
  seal::encode_header({.tag = 5, .counter = 77}, datagram);
  EXPECT_EQ(datagram_text(datagram), "sealed no. 77");
}

TEST(DatagramText, AnythingElseIsNotOurs) {
  EXPECT_EQ(datagram_text({}), "not Leeway's");
  EXPECT_EQ(datagram_text(std::vector<std::byte>(100)), "not Leeway's");
}

}  // namespace
}  // namespace leeway::sim::trace
