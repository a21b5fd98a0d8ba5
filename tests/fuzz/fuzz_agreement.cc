// Ranks that agree on a group must handle any value in the store: a value is a valid message or is
// refused. Rank 0 makes a table of the Hellos that it accepted. Every rank must accept that table.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "rendezvous/agreement.h"
#include "rendezvous/control_message.h"

using namespace leeway;
using namespace leeway::rendezvous;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// Returns a configuration of rank 0, chosen by the input's first byte.
LocalConfiguration root_of(std::uint8_t wish) {
  LocalConfiguration root;
  root.size = 2;
  root.datagram_bytes = 1400;
  root.data_port = 5000;
  root.data_address.assign((wish & 0x10) != 0 ? 16 : 4, std::byte{127});
  root.multicast = (wish & 0x20) != 0;
  root.transport = static_cast<TransportKind>(wish % 8);
  for (const TransportKind kind :
       {TransportKind::verbs, TransportKind::ucx, TransportKind::custom}) {
    root.offers.push_back({kind, std::vector<std::byte>(20, std::byte{1}), 4096, 1, ""});
  }
  if (root.transport == TransportKind::custom) root.data_port = 0;
  if ((wish & 0x40) != 0) {
    const auto identity = std::make_shared<keys::OwnIdentity>();
    identity->told.secrets = {5, 6};
    root.identity = identity;
  }
  return root;
}

void take_hello(ByteSpan value, const LocalConfiguration& root) {
  const auto hello = parse_hello(value);
  if (!hello || !check_hello(*hello, root, 1).ok()) return;
  const auto group = make_group(root, {&*hello, 1}, 7);
  if (!group.ok()) return;
  const auto welcome = parse_welcome(value_of(welcome_of(*group)), root.size);
  check(welcome.has_value());
  check(value_of(welcome_of(group_of(welcome->group()))) == value_of(welcome_of(*group)));
}

void take_welcome(ByteSpan value, const LocalConfiguration& root) {
  const auto welcome = parse_welcome(value, root.size);
  if (!welcome) return;
  if (welcome->has_rejected()) return check(!status_of(welcome->rejected()).ok());
  const Group group = group_of(welcome->group());
  check(group.epoch != 0 && group.datagrams.members.size() == 2 && group.processes.size() == 2);
  check(parse_welcome(value_of(welcome_of(group)), root.size).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const LocalConfiguration root = root_of(data[0]);
  const ByteSpan value = std::as_bytes(std::span(data + 1, size - 1));
  if (const auto invitation = parse_invitation(value)) (void)check_invitation(*invitation, root);
  take_hello(value, root);
  take_welcome(value, root);
  return 0;
}
