// One connection that stands: a communicator of two, over which messages go from rank 1 to rank 0.
//
// A message has up to a tebibyte, and goes as pieces: whatever follows a full piece belongs to the
// same message. Messages of a piece or more are under way alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "interop/nccl_net/logger.h"
#include "leeway/communicator.h"

namespace leeway::nccl_net {

// What NCCL accepts at most, as the longest message of a plugin.
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 40;
// Well below the 2^22 datagrams that Leeway sends in one operation.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

class Connection;

// A message under way; NCCL holds its address. Its connection's, and used again and again.
struct Request {
  Connection* connection = nullptr;
  std::byte* data = nullptr;
  std::size_t size = 0;   // of a receive: the most that it takes
  std::size_t moved = 0;  // by pieces that are done
  Work work;              // of the piece under way
};

// For one thread at a time, its requests included.
class Connection {
 public:
  static constexpr std::size_t kRequestsMax = LEEWAY_NCCL_NET_REQUESTS;

  // `label` names it in the log. `deadline` is of each message. Tests have small pieces.
  Connection(std::unique_ptr<Communicator> communicator, std::string label, Duration deadline,
             std::size_t piece_bytes = kPieceBytes);
  // With requests under way, or failed, it ends at once: their memory is free, and the peer is
  // told. Else the peer is served what it lacks, in the background.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begin a message: of the sender, and of the receiver. `request` is null where as many are under
  // way as there may be. The memory is read, or written, until test() says that it is done.
  Code send(const void* data, std::size_t size, Request*& request);
  Code receive(void* data, std::size_t size, Request*& request);
  // Whether it is done: the request is free again then, and `bytes` is how many were moved. So it
  // is where this fails.
  static Code test(Request& request, bool& done, std::size_t& bytes);

  // Known to what carries the connection (Communicator::register_memory).
  Result<MemoryRegistration> register_memory(ByteSpan memory);

 private:
  static constexpr std::uint32_t kAllUsed = ~std::uint32_t{0};
  static_assert(kRequestsMax == 32, "a bit for each request");

  Code begin(std::byte* data, std::size_t size, Request*& request);
  void begin_piece(Request& request);
  void free(Request& request);
  Code fail(const Status& status);

  std::unique_ptr<Communicator> communicator_;  // moves to the background at the end
  const std::string label_;
  const std::size_t piece_bytes_;
  CollectiveOptions options_;
  std::array<Request, kRequestsMax> requests_;
  std::uint32_t used_ = 0;         // a bit for each request under way
  bool long_ = false;              // a message of a piece or more is under way
  Code failure_ = nccl::kSuccess;  // sticky
};

}  // namespace leeway::nccl_net
