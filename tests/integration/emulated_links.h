// The links of the virtual machine of tools/vm_test: each rank has a network device, with the
// kernel's netem on the way to it.
//
// LEEWAY_TEST_LINKS ("v1,v2,v3,v4") names the ranks' devices. LEEWAY_TEST_PORTS names the other
// ends of the same links, at the bridge. Netem is put on those. LEEWAY_TEST_RDMA_ADDRESSES has the
// ranks' addresses. Without these variables, tests that need the links are skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leeway::integration {

class EmulatedLinks {
 public:
  // `netem`: arguments of netem for every link ("loss 10%"); if empty, links lose nothing. Returns
  // null, with the reason in `obstacle`, if this machine has no such links or no netem.
  static std::unique_ptr<EmulatedLinks> create(const std::string& netem, std::string& obstacle);
  ~EmulatedLinks();
  EmulatedLinks(const EmulatedLinks&) = delete;
  EmulatedLinks& operator=(const EmulatedLinks&) = delete;

  const std::vector<std::string>& addresses() const { return addresses_; }  // by rank
  const std::vector<std::string>& names() const { return names_; }  // network device by rank

  // Counts of packets over all links since creation: those sent towards ranks, and those that netem
  // dropped. Both are 0 without netem.
  struct Packets {
    std::uint64_t sent = 0;
    std::uint64_t lost = 0;
  };
  Packets packets() const;

 private:
  EmulatedLinks() = default;
  bool impair(const std::string& netem, std::string& obstacle);

  std::vector<std::string> names_;
  std::vector<std::string> ports_;
  std::vector<std::string> addresses_;
};

}  // namespace leeway::integration
