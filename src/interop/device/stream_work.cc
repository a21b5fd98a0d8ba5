#include "device/stream_work.h"

#include <memory>

namespace leeway::device {
namespace {

// CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so far.
constexpr std::size_t kPitchMax = (std::size_t{1} << 31) - 1;

cuda::Address address_of(const std::byte* memory) {
  return reinterpret_cast<cuda::Address>(memory);
}

Status copy_plane(const Driver& driver, const Copy& copy, std::byte* staging, Direction direction,
                  cuda::Stream stream) {
  cuda::Copy2D plane{};
  plane.source_type = plane.target_type = cuda::kMemoryUnified;
  plane.width = copy.bytes;
  plane.height = copy.rows;
  const bool in = direction == Direction::to_staging;
  plane.source_device = in ? copy.memory : address_of(staging);
  plane.source_pitch = in ? copy.pitch : copy.bytes;
  plane.target_device = in ? address_of(staging) : copy.memory;
  plane.target_pitch = in ? copy.bytes : copy.pitch;
  return checked(driver, "cuMemcpy2DAsync", driver.call.cuMemcpy2DAsync(&plane, stream));
}

// Argument of a host function, which frees it.
struct Store {
  std::uint32_t* word;
  std::uint32_t value;

  static void run(void* argument) {
    const std::unique_ptr<Store> store(static_cast<Store*>(argument));
    std::atomic_ref(*store->word).store(store->value, std::memory_order_release);
  }
};

}  // namespace

Status checked(const Driver& driver, const char* what, cuda::Code code) {
  return code == cuda::kSuccess ? Status() : driver.error(what, code);
}

Status copy_rows(const Driver& driver, const Copy& copy, std::byte* staging, Direction direction,
                 cuda::Stream stream) {
  if (copy.bytes == 0) return Status();
  std::byte* const start = staging + copy.offset;
  if (copy.rows > 1 && copy.pitch <= kPitchMax)
    return copy_plane(driver, copy, start, direction, stream);
  for (std::size_t row = 0; row < copy.rows; ++row) {
    const cuda::Address memory = copy.memory + row * copy.pitch;
    const cuda::Address staged = address_of(start + row * copy.bytes);
    const bool in = direction == Direction::to_staging;
    const cuda::Code code =
        driver.call.cuMemcpyAsync(in ? staged : memory, in ? memory : staged, copy.bytes, stream);
    if (code != cuda::kSuccess) return driver.error("cuMemcpyAsync", code);
  }
  return Status();
}

Status write_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word,
                  bool by_host) {
  if (by_host) {
    auto store = std::make_unique<Store>(Store{&(signal.words()->*word), signal.value()});
    const cuda::Code code = driver.call.cuLaunchHostFunc(stream, &Store::run, store.get());
    if (code != cuda::kSuccess) return driver.error("cuLaunchHostFunc", code);
    (void)store.release();
    return Status();
  }
  return checked(driver, "cuStreamWriteValue32",
                 driver.call.cuStreamWriteValue32(stream, signal.address(word), signal.value(),
                                                  cuda::kWriteAfterEarlierWork));
}

Status wait_for_word(const Driver& driver, cuda::Stream stream, const Signal& signal, Word word) {
  return checked(driver, "cuStreamWaitValue32",
                 driver.call.cuStreamWaitValue32(stream, signal.address(word), signal.value(),
                                                 cuda::kWaitGreaterOrEqual));
}

Status let_wait(const Driver& driver, cuda::Event event, cuda::Stream earlier,
                std::span<const cuda::Stream> later) {
  Status status = checked(driver, "cuEventRecord", driver.call.cuEventRecord(event, earlier));
  for (std::size_t i = 0; status.ok() && i < later.size(); ++i)
    status =
        checked(driver, "cuStreamWaitEvent", driver.call.cuStreamWaitEvent(later[i], event, 0));
  return status;
}

Status encode_on(const Driver& driver, cuda::Stream stream, const Site& site,
                 StepKernels& kernels) {
  Status status = write_word(driver, stream, site.signal, &Words::reached, /*by_host=*/false);
  if (status.ok()) status = wait_for_word(driver, stream, site.signal, &Words::begun);
  return status.ok() ? kernels.encode(site, stream) : status;
}

Status reduce_on(const Driver& driver, cuda::Stream stream, const Site& site,
                 StepKernels& kernels) {
  Status status = wait_for_word(driver, stream, site.signal, &Words::landed);
  if (status.ok()) status = kernels.reduce(site, stream);
  if (!status.ok()) return status;
  return write_word(driver, stream, site.signal, &Words::reduced, /*by_host=*/false);
}

}  // namespace leeway::device
