#include "support/cuda_double/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_double {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;
constexpr std::size_t kLeastAlignment = 512;
constexpr int kPattern = 0xDB;  // byte that fills memory which nobody wrote

std::size_t pages(std::size_t bytes, std::size_t page) {
  return (bytes + page - 1) / page * page;
}

}  // namespace

void fault(const char* format, ...) {
  std::fputs("cuda_double: ", stderr);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  std::abort();
}

Memory::Memory(int devices) {
  for (int device = 0; device < devices; ++device) {
    const int file = ::memfd_create("cuda_double", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, kDeviceBytes) != 0) fault("no memory file");
    void* const seen =
        ::mmap(nullptr, kDeviceBytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void* const alias =
        ::mmap(nullptr, kDeviceBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    ::close(file);
    if (seen == MAP_FAILED || alias == MAP_FAILED) fault("no address space");
    spaces_[device] = {reinterpret_cast<Address>(seen), static_cast<std::byte*>(alias)};
  }
}

Address Memory::allocate(int device, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Space& space = spaces_.at(device);
  const Address end = space.begin + kDeviceBytes;
  // Small allocations do not begin at a page: CUDA puts several into one page, so tests must not
  // rely on a better alignment.
  const std::size_t begin = bytes < kLargePage ? kLeastAlignment : 0;
  // Finds the first gap that has room for the memory and one unused page behind it. That page
  // catches overruns.
  const std::size_t length = pages(begin + bytes, kPage) + kPage;
  const auto page_of = [](Address memory) { return memory / kPage * kPage; };
  Address page = space.begin;
  for (auto next = allocated_.lower_bound(page); next != allocated_.end() && next->first < end;
       ++next) {
    if (page_of(next->first) - page >= length) break;
    page = page_of(next->first) + pages(next->first % kPage + next->second, kPage) + kPage;
  }
  if (page + length > end) return 0;
  const Address at = page + begin;
  allocated_[at] = bytes;
  std::memset(space.alias + (at - space.begin), kPattern, bytes);
  return at;
}

bool Memory::free(Address memory) {
  const std::lock_guard lock(mutex_);
  const auto found = allocated_.find(memory);
  if (found == allocated_.end()) return false;
  const Space& space = spaces_.at(device_of(memory));
  const std::size_t begin = memory % kPage;
  ::madvise(space.alias + (memory - begin - space.begin), pages(begin + found->second, kPage),
            MADV_REMOVE);
  allocated_.erase(found);
  return true;
}

void* Memory::allocate_host(std::size_t bytes) {
  const std::size_t length = pages(bytes, kPage);
  void* const memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  const std::lock_guard lock(mutex_);
  host_[memory] = length;
  return memory;
}

bool Memory::free_host(void* memory) {
  const std::lock_guard lock(mutex_);
  const auto found = host_.find(memory);
  if (found == host_.end()) return false;
  ::munmap(memory, found->second);
  host_.erase(found);
  return true;
}

int Memory::device_of(Address memory) const {
  for (const auto& [device, space] : spaces_) {
    if (memory >= space.begin && memory < space.begin + kDeviceBytes) return device;
  }
  return -1;
}

Memory::Kind Memory::kind_of(Address memory) {
  using leeway::device::cuda::kMemoryDevice;
  using leeway::device::cuda::kMemoryHost;
  const std::lock_guard lock(mutex_);
  if (const int device = device_of(memory); device >= 0) {
    auto after = allocated_.upper_bound(memory);
    if (after == allocated_.begin()) return {};
    --after;
    if (memory >= after->first + after->second) return {};
    return {kMemoryDevice, device};
  }
  void* const pointer = reinterpret_cast<void*>(memory);
  auto after = host_.upper_bound(pointer);
  if (after == host_.begin()) return {};
  --after;
  const auto begin = reinterpret_cast<Address>(after->first);
  return memory < begin + after->second ? Kind{kMemoryHost, 0} : Kind{};
}

std::byte* Memory::resolve(Address memory, std::size_t bytes, const char* what) {
  const std::lock_guard lock(mutex_);
  const int device = device_of(memory);
  if (device < 0) return reinterpret_cast<std::byte*>(memory);
  auto after = allocated_.upper_bound(memory);
  if (after != allocated_.begin()) {
    --after;
    if (memory >= after->first && memory + bytes <= after->first + after->second) {
      const Space& space = spaces_.at(device);
      return space.alias + (memory - space.begin);
    }
  }
  fault("%s: %zu bytes at 0x%llx are in no memory of device %d", what, bytes, memory, device);
}

}  // namespace cuda_double
