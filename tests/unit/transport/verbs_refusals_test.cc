#include "transport/verbs/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace leeway::transport {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const asio::ip::address kRefusedAddress = asio::ip::make_address("10.0.0.1");

VerbsPort good_port() {
  VerbsPort port;
  port.device = "mlx5_3";
  port.port = 2;
  port.active = true;
  port.state = "PORT_ACTIVE";
  port.mtu_bytes = 4096;
  port.gids = {{3, GidType::roce_v2, gid_of(kRefusedAddress)}};
  return port;
}

std::string text(const Status& status) {
  EXPECT_FALSE(status.ok());
  EXPECT_LT(status.text().size(), Status::kTextMax) << "cut: " << status.c_str();
  return std::string(status.text());
}

std::string unusable(const VerbsPort& port) {
  return text(refusal::unusable(port, kRefusedAddress).value_or(Status()));
}

TEST(VerbsRefusal, OfMissingDevicesAndFilesNamesTheRemedy) {
  EXPECT_THAT(text(refusal::no_device()),
              AllOf(HasSubstr("rdma link add"), HasSubstr("LEEWAY_TRANSPORT=udp")));
  EXPECT_THAT(text(refusal::no_connection_manager(ENOENT)), HasSubstr("modprobe rdma_ucm"));
  EXPECT_THAT(text(refusal::no_connection_manager(EACCES)),
              HasSubstr("permission for /dev/infiniband/rdma_cm"));
  EXPECT_THAT(text(refusal::device_closed("mlx5_3", EACCES)),
              AllOf(HasSubstr("mlx5_3"), HasSubstr("/dev/infiniband/uverbs*")));
  EXPECT_THAT(text(refusal::device_closed("mlx5_3", ENODEV)),
              AllOf(HasSubstr("No such device"), HasSubstr("-d mlx5_3")));
}

TEST(VerbsRefusal, OfAnAddressNamesThePortsThereAre) {
  std::vector<VerbsPort> ports(6, good_port());
  ports[1].gids.clear();
  ports[2].error = EACCES;
  ports[2].port = 0;
  const std::string all = text(refusal::no_port(asio::ip::make_address("10.9.9.9"), ports));
  EXPECT_THAT(all,
              AllOf(HasSubstr("10.9.9.9"), HasSubstr("LEEWAY_BIND"),
                    HasSubstr("mlx5_3 port 2 (10.0.0.1)"), HasSubstr("mlx5_3 port 2 (no address)"),
                    HasSubstr("and 2 more"), HasSubstr("mlx5_3 (Permission denied)")));
}

TEST(VerbsRefusal, OfAnAddressWhosePortIsDownOrClosedSaysThat) {
  std::vector<VerbsPort> ports(2, good_port());
  ports[1].device = "mlx5_4";
  ports[1].active = false;
  ports[1].gids[0].gid = gid_of(asio::ip::make_address("10.0.0.2"));
  EXPECT_THAT(text(refusal::no_port(asio::ip::make_address("10.0.0.2"), ports)),
              AllOf(HasSubstr("mlx5_4 port 2 is not active"), HasSubstr("ip link set")));
  for (VerbsPort& port : ports) port.error = EACCES;
  EXPECT_THAT(text(refusal::no_port(kRefusedAddress, ports)),
              HasSubstr("no permission for RDMA device mlx5_3"));
}

TEST(VerbsRefusal, OfAPortSaysWhatIsWrongWithIt) {
  EXPECT_FALSE(refusal::unusable(good_port(), kRefusedAddress));
  VerbsPort down = good_port();
  down.active = false;
  down.state = "PORT_DOWN";
  EXPECT_THAT(unusable(down),
              AllOf(HasSubstr("mlx5_3 port 2"), HasSubstr("PORT_DOWN"), HasSubstr("ip link set")));
  down.link = LinkLayer::infiniband;
  EXPECT_THAT(unusable(down), HasSubstr("subnet manager"));
  VerbsPort other = good_port();
  other.gids[0].type = GidType::roce_v1;
  EXPECT_THAT(unusable(other),
              AllOf(HasSubstr("RoCE v2"), HasSubstr("10.0.0.1"), HasSubstr("ibv_devinfo")));
  VerbsPort narrow = good_port();
  narrow.mtu_bytes = 256;
  EXPECT_THAT(unusable(narrow), AllOf(HasSubstr("256"), HasSubstr("512"), HasSubstr("mtu 1500")));
  narrow.mtu_bytes = 512;
  EXPECT_FALSE(refusal::unusable(narrow, kRefusedAddress));
  VerbsPort closed = good_port();
  closed.error = EIO;
  EXPECT_THAT(unusable(closed), HasSubstr("Input/output error"));
}

TEST(VerbsRefusal, OfMemoryNamesTheLimitWhereThatIsIt) {
  const VerbsPort port = good_port();
  EXPECT_THAT(
      text(refusal::no_memory(port, "receive ring", 8u << 20, ENOMEM, 64u << 10)),
      AllOf(HasSubstr("receive ring of 8192 KiB"), HasSubstr("(64 KiB)"), HasSubstr("ulimit -l")));
  EXPECT_THAT(text(refusal::no_memory(port, "receive ring", 1 << 20, ENOMEM, std::nullopt)),
              AllOf(HasSubstr("Cannot allocate memory"), testing::Not(HasSubstr("ulimit"))));
  EXPECT_THAT(text(refusal::no_memory(port, "receive ring", 1 << 20, EFAULT, 64u << 10)),
              HasSubstr("Bad address"));
}

TEST(VerbsRefusal, OfThingsThatFailLaterNamesTheDevice) {
  const VerbsPort port = good_port();
  EXPECT_THAT(text(refusal::device_gone(port, "the device was removed")),
              AllOf(HasSubstr("mlx5_3 port 2"), HasSubstr("was removed"),
                    HasSubstr("LEEWAY_TRANSPORT=udp")));
  EXPECT_THAT(text(refusal::no_route(port, 7, "10.0.0.9", EHOSTUNREACH)),
              AllOf(HasSubstr("rank 7 at 10.0.0.9"), HasSubstr("rping")));
  EXPECT_THAT(text(refusal::no_multicast(port, asio::ip::make_address("239.1.2.3"), ETIMEDOUT)),
              AllOf(HasSubstr("239.1.2.3"), HasSubstr("LEEWAY_MULTICAST")));
  EXPECT_THAT(text(refusal::failed(port, "completion channel", EMFILE)),
              HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace leeway::transport
