// TLS 1.3 between two processes that hold a secret, without its sockets: bytes of the connection go
// in, bytes to send come out. Time and sockets are the caller's.
//
// With certificates both sides show one of the same job (certificates.h), and no secret is used.
// Else the secret is an external pre-shared key, always with an X25519 exchange (psk_dhe_ke), so
// that who learns the secret later reads nothing of earlier sessions. There are no tickets and no
// early data. The identity in the first message is the secret's id.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// What the first bytes of a connection are.
enum class FirstMessage : std::uint8_t {
  unfinished,      // the beginning of a message
  strangers,       // no message of TLS, one longer than allowed, one that names no secret of ours,
                   // or one that came before
  may_be_members,  // a whole message
};

// What all sessions of a process share. Keeps the secrets.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> make(std::shared_ptr<const Secrets> secrets);
  ~TlsContext();

  // Equal for equal secrets and certificates.
  std::string name() const;
  // No cryptography. A whole message is judged once for a connection: it is known from then on.
  FirstMessage judge(ByteSpan first, std::size_t bytes_max) const;
  // Certificates prove who speaks, not a secret.
  bool has_certificates() const;
  // Attempts of a client that prove different secrets.
  std::size_t secrets() const;

 private:
  friend class TlsSession;
  struct Parts;
  explicit TlsContext(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

class TlsSession {
 public:
  // The client proves one secret, another one at each attempt until all had their turn. The server
  // takes any of its own.
  enum class Side : std::uint8_t { client, server };
  TlsSession(std::shared_ptr<const TlsContext> context, Side side, std::size_t attempt = 0);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;

  // Bytes of the connection. What the other side said is added to `plain`, and never before it has
  // proved the secret. False, then and from then on: it has not, or these are no bytes of TLS.
  // An alert that tells the other side so may be left to send.
  bool receive(ByteSpan bytes, std::vector<std::byte>& plain);

  // Something to say. Goes out when the handshake is done.
  void say(ByteSpan plain);

  // Bytes for the connection, which are gone from here then.
  std::vector<std::byte> take_output();

  // The other side has proved the secret, and this side to it as far as it is concerned.
  bool is_open() const;
  bool has_failed() const { return failed_; }

  // With certificates, of a session that failed: why this side did not take the other's.
  const std::string& objection() const;
  // The other side, whose certificate was good, has refused this side's: with these words.
  std::optional<std::string> refusal() const { return refusal_; }

 private:
  struct Parts;
  void go_on(std::vector<std::byte>& plain);
  void shake_hands();
  bool is_proved() const;
  void note_refusal();
  void send_waiting();

  std::unique_ptr<Parts> parts_;
  std::vector<std::byte> waiting_;  // said before the handshake was done
  bool failed_ = false;
  std::optional<std::string> refusal_;
};

}  // namespace leeway::keys
