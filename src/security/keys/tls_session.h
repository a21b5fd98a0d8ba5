// TLS 1.3 between two processes that hold a secret. The caller has the sockets: it hands in bytes
// of the connection, and gets bytes to send.
//
// With certificates both sides show a certificate of the same job (certificates.h), and no secret
// is used. Otherwise the secret is an external pre-shared key, always with an X25519 exchange
// (psk_dhe_ke), so an attacker who learns the secret later cannot read earlier sessions. There are
// no tickets and no early data. The identity in the first message is the secret's id.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "keys/secret.h"

namespace leeway::keys {

// What the first bytes of a connection tell about the other side.
enum class FirstMessage : std::uint8_t {
  unfinished,      // the beginning of a message
  strangers,       // no message of TLS, one longer than allowed, one that names no secret of ours,
                   // or one that came before
  may_be_members,  // a whole message
};

// State that all sessions of a process share. Keeps the secrets alive.
class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> make(std::shared_ptr<const Secrets> secrets);
  ~TlsContext();

  // Returns a text that is equal for equal secrets and certificates.
  std::string name() const;
  // Judges the first bytes of a connection without cryptography. With certificates, call it only
  // once for a whole message, since a second time it counts as a repetition.
  FirstMessage judge(ByteSpan first, std::size_t bytes_max) const;
  // Returns whether certificates, and not a secret, prove identities.
  bool has_certificates() const;
  // Number of attempts after which a client has tried each secret; 1 with certificates.
  std::size_t secrets() const;

 private:
  friend class TlsSession;
  struct Parts;
  explicit TlsContext(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

class TlsSession {
 public:
  // `attempt`: a client proves another secret at each attempt, in turn. A server accepts any of its
  // secrets.
  enum class Side : std::uint8_t { client, server };
  TlsSession(std::shared_ptr<const TlsContext> context, Side side, std::size_t attempt = 0);
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept;

  // Takes in bytes of the connection. Adds the decrypted bytes to `plain`, but nothing before the
  // other side has proved the secret. Returns false, now and later, if that fails or the bytes are
  // not TLS. Then take_output() may have an alert for the other side.
  bool receive(ByteSpan bytes, std::vector<std::byte>& plain);

  // Adds bytes to send. They are held until the handshake is done.
  void say(ByteSpan plain);

  // Takes the bytes to send over the connection.
  std::vector<std::byte> take_output();

  // Returns whether both sides have finished the handshake, so the other one has proved the secret.
  bool is_open() const;
  bool has_failed() const { return failed_; }

  // Why this side refused the other's certificate; empty if it did not.
  const std::string& objection() const;
  // Why the other side refused this side's certificate, as its alert says. It comes only from a
  // side that has shown a good certificate.
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
