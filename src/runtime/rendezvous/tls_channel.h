// The server's side of a TLS connection. It encrypts answers a part at a time, so that memory does
// not hold the encrypted tables of many ranks at once.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "keys/tls_session.h"
#include "rendezvous/store_server.h"

namespace leeway::rendezvous {

class TlsChannel {
 public:
  explicit TlsChannel(std::shared_ptr<const keys::TlsContext> context)
      : session_(std::move(context), keys::TlsSession::Side::server) {}

  bool receive(ByteSpan bytes, std::vector<std::byte>& plain) {
    return session_.receive(bytes, plain);
  }

  const std::string& objection() const { return session_.objection(); }

  void queue(StoreServer::Answer answer);

  // Returns the bytes to write next; none if all are written, or a write has not ended.
  ByteSpan begin_write();
  struct Written {
    std::size_t answers = 0;  // number of answers that have left whole
    std::size_t bytes = 0;    // bytes of answers
  };
  Written end_write();

  // Bytes of answers that have not left.
  std::size_t bytes_left() const { return bytes_left_; }

 private:
  void say_more();

  keys::TlsSession session_;
  std::deque<StoreServer::Answer> answers_;
  std::size_t said_ = 0;  // bytes of the first answer that are encrypted
  std::size_t bytes_left_ = 0;
  std::vector<std::byte> writing_;
  Written written_;
};

}  // namespace leeway::rendezvous
