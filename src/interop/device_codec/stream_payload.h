// The elements of a call that a stream waits for. Kernels encode, sum and decode them in the order
// of streams, and the network sees encoded packets in staging.
//
// At most five launches are on streams before the network's operation begins: one by encode(), up
// to three by reduce(), one by decode(). Their jobs are known only when the operation has its
// number, when contributions have landed, or when the operation is over. The host then writes a
// list of jobs to staging, and a word that the launch waits for (device/signal.h). So a call may be
// part of a graph: every replay writes its lists anew. The class was run on an H100 by hand
// (README.md); as part of a graph it ran on the test double of the driver only.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "device/transfer.h"
#include "device_codec/kernels.h"
#include "leeway/payload.h"

namespace leeway::device_codec {

class StreamPayload final : public device::StepKernels,
                            public PayloadSource,
                            public PayloadSink,
                            public std::enable_shared_from_this<StreamPayload> {
 public:
  // A sum or an average of all ranks' elements.
  struct Call {
    CodecOptions codec;              // for both halves
    DataType type = DataType::f32;   // type of the tensors
    int size = 1;                    // ranks
    std::size_t elements = 0;        // elements in the input, all ranks' blocks together
    std::size_t block_elements = 0;  // elements in the longest block that this rank reduces
    bool spreads = true;             // reduced blocks go to all ranks: an all_reduce
    unsigned multiprocessors = 12;   // as Launch
    // Input and output are in memory of the device, and may be the same.
    const std::byte* input = nullptr;
    // Bytes from one rank's block of the input to the next; 0 if blocks lie one behind the other.
    std::size_t input_pitch = 0;
    std::byte* output = nullptr;
  };

  // Begins the operation whose source and sink is `payload`. When the operation is over, `ended` is
  // called, with true if all went well.
  using Begin = std::function<void(const std::shared_ptr<StreamPayload>& payload,
                                   std::function<void(bool ok)> ended)>;

  // Returns true if kernels can do the call: a sum or an average, with a codec that has kernels, of
  // at most kContributionsMax ranks.
  static bool supports(const CodecOptions& codec, DataType type, ReduceOp op, int size);

  // The kernels must outlive this object.
  StreamPayload(const Kernels& kernels, const Call& call, Begin begin);

  // Staging that one run needs.
  std::size_t staging_bytes() const { return staging_bytes_; }

  // See StepKernels. Runs must come one after the other.
  Status encode(const device::Site& site, device::cuda::Stream stream) override;
  Status reduce(const device::Site& site, device::cuda::Stream stream) override;
  Status decode(const device::Site& site, device::cuda::Stream stream) override;
  void run(const device::Site& site) override;

  // See PayloadSource and PayloadSink. Returns kInternal if the library divides the call in a way
  // for which lists have no room.
  Status begin(const PayloadLayout& layout) override;
  EncodedChunk encoded(const PayloadChunk& chunk) override;
  Duration poll_every() const override { return std::chrono::microseconds(20); }
  Result<MutableByteSpan> landing(const PayloadLayout& layout) override;
  void take(const PayloadChunk& chunk, std::span<const PayloadContribution> contributions) override;
  // Always true: staging belongs to the step until its stream has used it, so the library need not
  // wait for that.
  bool used(const PayloadChunk&) override { return true; }

 private:
  // The lists of jobs in staging. First come the numbers of jobs of all lists, then all jobs.
  enum List : unsigned { kContributions, kSum, kSpread, kAdopt, kDecode, kLists };
  template <typename Job>
  JobList<Job> list_of(List list, const device::Site& site, device::Word word,
                       std::uint32_t packets) const;
  template <typename Job>
  void write(List list, const std::vector<Job>& jobs);

  std::size_t take_room(std::size_t bytes);
  std::byte* on_device(std::size_t at) const;
  Packets packets_of(PayloadHalf half, Rank owner) const;
  EncodeJob encode_job(PayloadHalf half, Rank owner, const std::byte* elements,
                       std::size_t out_at) const;
  const std::byte* input_of(Rank owner) const;
  std::byte* output_of(Rank owner) const;
  std::size_t sum_factors_of(Rank rank) const;
  void write_contributions();
  void write_sums();
  void write_decodes();
  void ended(bool ok);

  const Kernels& kernels_;
  const Call call_;
  const codec::Format format_;
  const Begin begin_;
  std::size_t jobs_at_[kLists] = {};
  std::size_t payload_at_ = 0;  // behind the lists
  std::size_t staging_bytes_ = 0;

  // State of the present run.
  device::Site site_;
  PayloadLayout layout_;
  std::size_t room_at_ = 0;                   // next free byte of staging
  std::vector<std::size_t> contribution_at_;  // encoded, by owner of the block
  std::size_t spread_at_ = 0;                 // our own block, encoded
  std::size_t landing_at_ = 0;
  std::size_t factors_at_ = 0;                    // where all factors begin
  std::size_t sum_factors_at_ = 0;                // by rank, then by packet of our block
  std::vector<std::size_t> spread_factors_at_;    // by owner
  std::vector<const std::byte*> sum_landing_;     // contributions to our block, by rank
  std::vector<const std::byte*> spread_landing_;  // other ranks' blocks, by rank
  // Chunks of contributions to our block that have not landed yet.
  std::uint32_t chunks_left_ = 0;
};

}  // namespace leeway::device_codec
