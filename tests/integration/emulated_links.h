// The links of the virtual machine that tools/vm_test boots: real netem on every rank's way out.
//
// LEEWAY_TEST_LINKS ("v1,v2,v3,v4") names the ranks' network devices, LEEWAY_TEST_PORTS the
// bridge's ends of the same links, where netem is put, and LEEWAY_TEST_RDMA_ADDRESSES the ranks'
// addresses. If they are not set, there are no such links, and tests that need them are skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leeway::integration {

class EmulatedLinks {
 public:
  // `netem` is netem's arguments for every link ("loss 10%"); if empty, packets pass. Returns null
  // with the reason in `obstacle` if this machine has no such links or its kernel no netem.
  static std::unique_ptr<EmulatedLinks> create(const std::string& netem, std::string& obstacle);
  ~EmulatedLinks();
  EmulatedLinks(const EmulatedLinks&) = delete;
  EmulatedLinks& operator=(const EmulatedLinks&) = delete;

  const std::vector<std::string>& addresses() const { return addresses_; }  // by rank
  const std::vector<std::string>& names() const { return names_; }  // network device by rank

  // Counts since creation, over all links: packets on their way to a rank, and packets that netem
  // dropped. 0 without netem.
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
