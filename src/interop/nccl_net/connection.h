// An established connection: a communicator of two, over which messages go from rank 1 to rank 0.
//
// A message of up to 2^40 bytes is sent in pieces of kPieceBytes, of which the last is shorter,
// perhaps empty. A message with a full piece is in progress alone, so its pieces follow each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "interop/nccl_net/logger.h"
#include "leeway/communicator.h"

namespace leeway::nccl_net {

// Limit on a message. NCCL accepts no larger value as the longest message of a plugin.
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 40;
// Leeway sends at most 2^22 datagrams in one operation; a piece needs far fewer.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 30;

class Connection;

// A message in progress. Its connection owns and reuses it; NCCL holds its address.
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

  // `label` names the connection in the log. `deadline`: for each message. Tests use small pieces.
  Connection(std::unique_ptr<Communicator> communicator, std::string label, Duration deadline,
             std::size_t piece_bytes = kPieceBytes);
  // If requests are in progress, or the connection has failed, the connection ends at once: memory
  // of requests is free, and the peer is told. Otherwise the peer still gets, in the background,
  // the data that it lacks.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Begin a message, as the sender or the receiver. `request` becomes null if the message must
  // wait: if kRequestsMax requests are in progress, if one of them has a full piece, or if this
  // message has one and any request is in progress. The memory is in use until test() sets `done`.
  Code send(const void* data, std::size_t size, Request*& request);
  Code receive(void* data, std::size_t size, Request*& request);
  // Sets `done` if the message is done, and `bytes` to its size. Then, or on failure, the request
  // is free.
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
