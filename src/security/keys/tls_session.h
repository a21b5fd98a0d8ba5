// TLS 1.3 between two processes that hold a secret, without its sockets: bytes of the connection go
// in, bytes to send come out. Time and sockets are the caller's.
//
// With certificates both sides show one of the same job (certificates.h), and no secret is used.
// Otherwise the secret is an external pre-shared key, always with an X25519 exchange (psk_dhe_ke),
// so that an attacker who learns the secret later cannot read earlier sessions. There are no
// tickets and no early data. The identity in the first message is the secret's id.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// Verdict on the first bytes of a connection.
enum class FirstMessage : std::uint8_t {
  unfinished,      // the beginning of a message
  strangers,       // no message of TLS, one longer than allowed, one that names no secret of ours,
                   // or one that came before
  may_be_members,  // a whole message
};

// State that all sessions of a process share. Keeps the secrets.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> make(std::shared_ptr<const Secrets> secrets);
  ~TlsContext();

  // Returns a text that is equal for equal secrets and certificates.
  std::string name() const;
  // Judges first bytes without cryptography. With certificates, call it only once, for the whole
  // message: afterwards the message counts as a repetition.
  FirstMessage judge(ByteSpan first, std::size_t bytes_max) const;
  // Returns whether certificates prove identities, and not a secret.
  bool has_certificates() const;
  // Number of attempts in which a client proves different secrets.
  std::size_t secrets() const;

 private:
  friend class TlsSession;
  struct Parts;
  explicit TlsContext(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

class TlsSession {
 public:
  // A client proves one secret, and at each further `attempt` the next one in turn. A server
  // accepts any of its own secrets.
  enum class Side : std::uint8_t { client, server };
  TlsSession(std::shared_ptr<const TlsContext> context, Side side, std::size_t attempt = 0);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;

  // Takes bytes that came over the connection. What they decrypt to is added to `plain`, but only
  // once the other side has proved the secret. Returns false, also at all later calls, if the other
  // side did not prove the secret, or if these are not bytes of TLS. Even then take_output() may
  // have an alert that tells the other side.
  bool receive(ByteSpan bytes, std::vector<std::byte>& plain);

  // Adds bytes to send. They leave when the handshake is done.
  void say(ByteSpan plain);

  // Takes the bytes to send over the connection.
  std::vector<std::byte> take_output();

  // Returns whether the other side has proved the secret, and this side has done its part.
  bool is_open() const;
  bool has_failed() const { return failed_; }

  // The reason why this side refused the other's certificate, if the session failed with
  // certificates.
  const std::string& objection() const;
  // The text in which the other side refused this side's certificate, after it showed a good one
  // itself.
  std::optional<std::string> refusal() const { return refusal_; }

 private:
  struct Parts;
  void go_on(std::vector<std::byte>& plain);
  void shake_hands();
  bool is_proved() const;
  void note_refusal();
  void send_waiting();

  std::unique_ptr<Parts> parts_;
  std::vector<std::byte> waiting_;  // bytes to send after the handshake
  bool failed_ = false;
  std::optional<std::string> refusal_;
};

}  // namespace leeway::keys
