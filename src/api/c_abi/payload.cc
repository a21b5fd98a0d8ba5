#include "c_abi/payload.h"

#include "c_abi/options.h"
#include "c_abi/outcome.h"
#include "c_abi/sized.h"

struct leeway_payload_layout {
  leeway::PayloadLayout value;
};
struct leeway_payload_contributions {
  std::span<const leeway::PayloadContribution> value;
};

namespace leeway::c_abi {
namespace {

constexpr leeway_payload_source kSourceDefaults = LEEWAY_PAYLOAD_SOURCE_INIT;
constexpr leeway_payload_sink kSinkDefaults = LEEWAY_PAYLOAD_SINK_INIT;
static_assert(LEEWAY_PAYLOAD_SPREAD == static_cast<int>(PayloadHalf::spread));

leeway_payload_chunk struct_of(const PayloadChunk& chunk) {
  leeway_payload_chunk out = LEEWAY_PAYLOAD_CHUNK_INIT;
  out.half = static_cast<leeway_payload_half>(chunk.half);
  out.owner = chunk.owner;
  out.index = chunk.index;
  out.packets = chunk.packets;
  out.first_element = chunk.first_element;
  out.elements = chunk.elements;
  out.bytes = chunk.bytes;
  out.position = chunk.position;
  return out;
}

class CallbackSource final : public PayloadSource {
 public:
  explicit CallbackSource(const leeway_payload_source& callbacks) : callbacks_(callbacks) {}

  Status begin(const PayloadLayout& layout) override {
    const leeway_payload_layout handle{layout};
    leeway_fail(LEEWAY_OK, "");
    return status_of(callbacks_.begin(callbacks_.user, &handle), "begin");
  }
  EncodedChunk encoded(const PayloadChunk& chunk) override {
    const leeway_payload_chunk out = struct_of(chunk);
    const void* const data = callbacks_.encoded(callbacks_.user, &out);
    return {static_cast<const std::byte*>(data), data != nullptr ? chunk.bytes : 0};
  }
  Duration poll_every() const override { return duration_of(callbacks_.poll_every_ns); }

 private:
  const leeway_payload_source callbacks_;
};

class CallbackSink final : public PayloadSink {
 public:
  explicit CallbackSink(const leeway_payload_sink& callbacks) : callbacks_(callbacks) {}

  Result<MutableByteSpan> landing(const PayloadLayout& layout) override {
    const leeway_payload_layout handle{layout};
    void* memory = nullptr;
    std::size_t bytes = 0;
    leeway_fail(LEEWAY_OK, "");
    LEEWAY_C_TRY(
        status_of(callbacks_.landing(callbacks_.user, &handle, &memory, &bytes), "landing"));
    LEEWAY_C_TRY(must_be_there("landing", "memory", memory, bytes));
    return MutableByteSpan(static_cast<std::byte*>(memory), bytes);
  }
  void take(const PayloadChunk& chunk,
            std::span<const PayloadContribution> contributions) override {
    const leeway_payload_chunk out = struct_of(chunk);
    const leeway_payload_contributions handle{contributions};
    callbacks_.take(callbacks_.user, &out, &handle, contributions.size());
  }
  bool used(const PayloadChunk& chunk) override {
    const leeway_payload_chunk out = struct_of(chunk);
    return callbacks_.used(callbacks_.user, &out) != 0;
  }

 private:
  const leeway_payload_sink callbacks_;
};

template <typename Callback>
Status must_be_given(const char* name, Callback callback) {
  return must_be_there("payload", name, reinterpret_cast<const void*>(callback));
}

Result<PayloadHalf> half_of(leeway_payload_half number) {
  return enum_of<PayloadHalf>("payload half", number, 2);
}

// Returns the half if the layout has a block of `owner` in it, else an error.
Result<PayloadHalf> check_block(const leeway_payload_layout& layout, leeway_payload_half number,
                                leeway_rank owner) {
  const auto half = half_of(number);
  if (!half.ok()) return half.status();
  const std::size_t blocks = layout.value.half(*half).blocks.size();
  if (owner < blocks) return *half;
  return Status::error(StatusCode::kInvalidArgument, "payload: block %u, and there are %zu",
                       unsigned{owner}, blocks);
}

}  // namespace

Result<std::shared_ptr<PayloadSource>> source_of(const leeway_payload_source* given) {
  if (given == nullptr) return std::shared_ptr<PayloadSource>();
  const auto read = read_sized("leeway_payload_source", given, kSourceDefaults);
  if (!read.ok()) return read.status();
  LEEWAY_C_TRY(must_be_given("begin", read->begin));
  LEEWAY_C_TRY(must_be_given("encoded", read->encoded));
  return std::shared_ptr<PayloadSource>(std::make_shared<CallbackSource>(*read));
}

Result<std::shared_ptr<PayloadSink>> sink_of(const leeway_payload_sink* given) {
  if (given == nullptr) return std::shared_ptr<PayloadSink>();
  const auto read = read_sized("leeway_payload_sink", given, kSinkDefaults);
  if (!read.ok()) return read.status();
  LEEWAY_C_TRY(must_be_given("landing", read->landing));
  LEEWAY_C_TRY(must_be_given("take", read->take));
  LEEWAY_C_TRY(must_be_given("used", read->used));
  return std::shared_ptr<PayloadSink>(std::make_shared<CallbackSink>(*read));
}

}  // namespace leeway::c_abi

using namespace leeway;
using namespace leeway::c_abi;

leeway_status leeway_payload_layout_copy(const leeway_payload_layout* layout,
                                         leeway_payload_layout** copy) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "copy", copy));
    LEEWAY_C_TRY(must_be_there(name, "layout", layout));
    *copy = new leeway_payload_layout(*layout);
    return Status();
  });
}

void leeway_payload_layout_free(leeway_payload_layout* copy) {
  delete copy;
}

leeway_status leeway_payload_half_get(const leeway_payload_layout* layout, leeway_payload_half half,
                                      leeway_payload_half_info* info, leeway_codec_options* codec) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "layout", layout));
    LEEWAY_C_TRY(must_be_there(name, "info", info));
    const auto which = half_of(half);
    if (!which.ok()) return which.status();
    const PayloadLayout& whole = layout->value;
    const PayloadLayout::Half& from = whole.half(*which);
    leeway_payload_half_info out = LEEWAY_PAYLOAD_HALF_INFO_INIT;
    out.rank = whole.rank;
    out.ranks = whole.size;
    out.dtype = static_cast<leeway_data_type>(whole.dtype);
    out.op = static_cast<std::int32_t>(whole.op);
    out.seed = whole.seed;
    out.step = whole.step;
    out.packet_elements = from.packet_elements;
    out.chunk_packets = from.chunk_packets;
    out.block_count = static_cast<std::uint32_t>(from.blocks.size());
    out.header_bytes = from.header_bytes;
    out.block_elements = from.block_elements;
    out.block_bytes = from.block_bytes;
    LEEWAY_C_TRY(write_sized("leeway_payload_half_info", out, info));
    if (codec == nullptr) return Status();
    return write_sized("leeway_codec_options", codec_struct(from.codec), codec);
  });
}

leeway_status leeway_payload_block_at(const leeway_payload_layout* layout, leeway_payload_half half,
                                      leeway_rank owner, leeway_payload_block* block) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "layout", layout));
    LEEWAY_C_TRY(must_be_there(name, "block", block));
    const auto which = check_block(*layout, half, owner);
    if (!which.ok()) return which.status();
    const PayloadLayout::Block& from = layout->value.half(*which).blocks[owner];
    const leeway_payload_block out = {sizeof out,       from.offset,
                                      from.elements,    from.position,
                                      from.first_chunk, layout->value.chunks(*which, owner)};
    return write_sized("leeway_payload_block", out, block);
  });
}

leeway_status leeway_payload_chunk_at(const leeway_payload_layout* layout, leeway_payload_half half,
                                      leeway_rank owner, std::uint32_t index,
                                      leeway_payload_chunk* chunk) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "layout", layout));
    LEEWAY_C_TRY(must_be_there(name, "chunk", chunk));
    const auto which = check_block(*layout, half, owner);
    if (!which.ok()) return which.status();
    LEEWAY_C_TRY(check_index(name, index, layout->value.chunks(*which, owner)));
    return write_sized("leeway_payload_chunk", struct_of(layout->value.chunk(*which, owner, index)),
                       chunk);
  });
}

std::size_t leeway_payload_landing_bytes(const leeway_payload_layout* layout) {
  return layout != nullptr ? layout->value.landing_bytes() : 0;
}

leeway_status leeway_payload_contribution_at(const leeway_payload_contributions* contributions,
                                             std::size_t index,
                                             leeway_payload_contribution* contribution) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "contributions", contributions));
    LEEWAY_C_TRY(must_be_there(name, "contribution", contribution));
    LEEWAY_C_TRY(check_index(name, index, contributions->value.size()));
    const PayloadContribution& from = contributions->value[index];
    leeway_payload_contribution out = LEEWAY_PAYLOAD_CONTRIBUTION_INIT;
    out.data = from.data;
    out.scales = from.scales.data();
    out.scale_count = from.scales.size();
    out.rank = from.rank;
    return write_sized("leeway_payload_contribution", out, contribution);
  });
}
