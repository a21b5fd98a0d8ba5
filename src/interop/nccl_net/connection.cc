#include "interop/nccl_net/connection.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "interop/nccl_net/background.h"

namespace leeway::nccl_net {
namespace {

constexpr Rank kReceiverRank = 0;
constexpr Rank kSenderRank = 1;

}  // namespace

Connection::Connection(std::unique_ptr<Communicator> communicator, std::string label,
                       Duration deadline, std::size_t piece_bytes)
    : communicator_(std::move(communicator)), label_(std::move(label)), piece_bytes_(piece_bytes) {
  options_.delivery = exact(deadline);
  for (Request& request : requests_) request.connection = this;
}

Connection::~Connection() {
  if (used_ == 0 && failure_ == nccl::kSuccess) {
    leave_in_background(std::move(communicator_));
  } else {
    communicator_->abort();
  }
}

Code Connection::send(const void* data, std::size_t size, Request*& request) {
  if (communicator_->rank() != kSenderRank) {
    return fail(Status::error(StatusCode::kInvalidArgument, "isend on the receiver's end"));
  }
  // The data are only read; a request has one pointer for both directions.
  return begin(static_cast<std::byte*>(const_cast<void*>(data)), size, request);
}

Code Connection::receive(void* data, std::size_t size, Request*& request) {
  if (communicator_->rank() != kReceiverRank) {
    return fail(Status::error(StatusCode::kInvalidArgument, "irecv on the sender's end"));
  }
  return begin(static_cast<std::byte*>(data), size, request);
}

Code Connection::begin(std::byte* data, std::size_t size, Request*& request) {
  request = nullptr;
  if (failure_ != nccl::kSuccess) return failure_;
  if (communicator_->state() != StatusCode::kOk) return fail(communicator_->status());
  if (communicator_->peer_left() && communicator_->rank() == kSenderRank)
    return fail(Status::error(StatusCode::kPeerLost, "the receiver has closed it"));
  if (size > kMessageBytesMax) {
    return fail(Status::error(StatusCode::kInvalidArgument, "a message of %zu bytes: %zu is most",
                              size, kMessageBytesMax));
  }
  const bool is_long = size >= piece_bytes_;
  if (used_ == kAllUsed || long_ || (is_long && used_ != 0)) return nccl::kSuccess;
  const int slot = std::countr_one(used_);
  used_ |= std::uint32_t{1} << slot;
  long_ = is_long;
  Request& begun = requests_[slot];
  begun.data = data;
  begun.size = size;
  begun.moved = 0;
  begin_piece(begun);
  request = &begun;
  return nccl::kSuccess;
}

void Connection::begin_piece(Request& request) {
  std::byte* const data = request.data + request.moved;
  const std::size_t size = std::min(request.size - request.moved, piece_bytes_);
  request.work =
      communicator_->rank() == kSenderRank
          ? communicator_->send_async({data, size, DataType::u8}, kReceiverRank, options_)
          : communicator_->recv_async({data, size, DataType::u8}, kSenderRank, options_);
}

Code Connection::test(Request& request, bool& done, std::size_t& bytes) {
  done = false;
  Connection& self = *request.connection;
  if (!request.work.test()) return nccl::kSuccess;
  const auto outcome = request.work.wait();
  if (!outcome.ok()) {
    self.free(request);
    return self.fail(outcome.status());
  }
  const std::uint64_t piece = outcome->messages.front().count;
  request.moved += piece;
  if (piece == self.piece_bytes_) {
    self.begin_piece(request);
    return nccl::kSuccess;
  }
  bytes = request.moved;
  done = true;
  self.free(request);
  return nccl::kSuccess;
}

void Connection::free(Request& request) {
  request.work = Work();
  used_ &= ~(std::uint32_t{1} << (&request - requests_.data()));
  long_ = false;
}

Result<MemoryRegistration> Connection::register_memory(ByteSpan memory) {
  return communicator_->register_memory(memory);
}

Code Connection::fail(const Status& status) {
  if (failure_ == nccl::kSuccess) failure_ = failed(status, label_.c_str());
  return failure_;
}

}  // namespace leeway::nccl_net
