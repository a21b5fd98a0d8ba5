// An established connection: a communicator of two, over which messages go from rank 1 to rank 0.
//
// A message of up to 2^40 bytes goes as pieces: the piece after a full one belongs to the same
// message. While a message of one piece or more is in progress, no other one is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "interop/nccl_net/logger.h"
#include "leeway/communicator.h"

namespace leeway::nccl_net {

// Largest value that NCCL accepts as the longest message of a plugin.
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 40;
// Well below the 2^22 datagrams that Leeway sends in one operation.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

class Connection;

// A message in progress. NCCL holds its address. It belongs to its connection, which reuses it.
struct Request {
  Connection* connection = nullptr;
  std::byte* data = nullptr;
  std::size_t size = 0;   // bytes; for a receive, the most that it takes
  std::size_t moved = 0;  // bytes of the pieces that are done
  Work work;              // work of the current piece
};

// Used by one thread at a time, including its requests.
class Connection {
 public:
  static constexpr std::size_t kRequestsMax = LEEWAY_NCCL_NET_REQUESTS;

  // `label` names it in the log. `deadline` is that of each message. Tests use small pieces.
  Connection(std::unique_ptr<Communicator> communicator, std::string label, Duration deadline,
             std::size_t piece_bytes = kPieceBytes);
  // If requests are in progress, or it has failed, the connection ends at once: their memory is
  // free, and the peer is told. Otherwise the peer is sent in the background what it still lacks.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begin a message, as the sender and as the receiver. `request` is null if kRequestsMax requests
  // are in progress, or if this message or one in progress has a full piece. The memory is read, or
  // written, until test() says that it is done.
  Code send(const void* data, std::size_t size, Request*& request);
  Code receive(void* data, std::size_t size, Request*& request);
  // Sets `done` if the message is done; `bytes` is then its size. The request is free afterwards,
  // and also if this fails.
  static Code test(Request& request, bool& done, std::size_t& bytes);

  // Registers memory with the connection's transport (Communicator::register_memory).
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
  std::uint32_t used_ = 0;         // one bit for each request in progress
  bool long_ = false;              // a message of a full piece or more is in progress
  Code failure_ = nccl::kSuccess;  // sticky
};

}  // namespace leeway::nccl_net
