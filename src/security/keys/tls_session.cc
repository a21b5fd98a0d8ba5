#include "keys/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/contracts.h"
#include "base/hex_text.h"
#include "base/plain_text.h"
#include "base/read_number.h"
#include "keys/certificate_parts.h"

namespace leeway::keys {
namespace {

// Limit on the bytes that are taken in before the handshake is done. Our ClientHello has 300 bytes.
constexpr std::size_t kHandshakeBytesMax = std::size_t{16} * 1024;

constexpr std::size_t kRecordBytes = std::size_t{16} * 1024;

constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

// Limit on the characters of a stranger's text that an error quotes.
constexpr std::size_t kForeignTextMax = 80;

// Returns the identity that names a secret in a ClientHello.
std::string identity_of(std::uint64_t id) {
  return hex_text(id);
}

// Random numbers of the latest first messages (ClientHellos). A recorded message that is sent again
// is refused before it costs an X25519 exchange. A new message costs an exchange only if it proves
// a secret, or if certificates are used.
class LatestHellos {
 public:
  // has() returns whether the number was added before. add() adds it, or returns false if it was
  // there.
  bool has(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    return numbers_.contains(number);
  }
  bool add(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    if (!numbers_.insert(number).second) return false;
    order_.push_back(number);
    if (order_.size() <= kMax) return true;
    numbers_.erase(order_.front());
    order_.pop_front();
    return true;
  }

 private:
  static constexpr std::size_t kMax = 8192;
  mutable std::mutex mutex_;
  std::unordered_set<std::uint64_t> numbers_;
  std::deque<std::uint64_t> order_;
};

// What the callbacks of a TLS context need.
struct Known {
  std::shared_ptr<const Secrets> secrets;
  LatestHellos hellos;
};

// What the callbacks of a TLS session need.
struct Notes {
  std::size_t attempt = 0;
  std::string objection;
};

// Returns a TLS session with the secret's key as its pre-shared key; null if OpenSSL has no memory.
SSL_SESSION* session_of(SSL* ssl, const Secret& secret) {
  static constexpr std::array<unsigned char, 2> kAes128GcmSha256 = {0x13, 0x01};
  const SSL_CIPHER* const cipher = ::SSL_CIPHER_find(ssl, kAes128GcmSha256.data());
  TlsPtr<SSL_SESSION> session(::SSL_SESSION_new());
  Key key = secret.key_for("join");
  const bool made =
      cipher != nullptr && session != nullptr &&
      ::SSL_SESSION_set1_master_key(session.get(), reinterpret_cast<unsigned char*>(key.data()),
                                    key.size()) == 1 &&
      ::SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
      ::SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  wipe(key);
  return made ? session.release() : nullptr;
}

Known& known_to(SSL* ssl) {
  return *static_cast<Known*>(SSL_CTX_get_app_data(::SSL_get_SSL_CTX(ssl)));
}

// Returns the first bytes of the random number in the client's first message; 0 if there is none.
std::uint64_t number_of_hello(const SSL* ssl) {
  std::array<unsigned char, 32> random{};
  std::uint64_t number = 0;
  if (::SSL_get_client_random(ssl, random.data(), random.size()) == random.size())
    std::memcpy(&number, random.data(), sizeof number);
  return number;
}

int use_secret(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes,
               SSL_SESSION** session) {
  const std::size_t attempt = static_cast<const Notes*>(SSL_get_app_data(ssl))->attempt;
  const Secret& secret = known_to(ssl).secrets->at(attempt);
  thread_local std::string identity;
  identity = identity_of(secret.id());
  *id = reinterpret_cast<const unsigned char*>(identity.data());
  *id_bytes = identity.size();
  *session = session_of(ssl, secret);
  return *session != nullptr ? 1 : 0;
}

// Finds the secret that the client's first message names. If there is none, or the message came
// before, returns success without a session. The handshake then fails by itself.
int find_secret(SSL* ssl, const unsigned char* identity, std::size_t bytes, SSL_SESSION** session) {
  *session = nullptr;
  std::uint64_t id = 0;
  const char* const text = reinterpret_cast<const char*>(identity);
  if (!read_number(std::string_view(text, bytes), id, 16) || bytes != identity_of(id).size())
    return 1;
  Known& known = known_to(ssl);
  const Secret* const secret = known.secrets->find(id);
  if (secret != nullptr && known.hellos.add(number_of_hello(ssl)))
    *session = session_of(ssl, *secret);
  return 1;
}

// Checks that the certificate names this process's job, because one authority may sign for several
// jobs.
int check_job(int good, X509_STORE_CTX* context) {
  const int index = ::SSL_get_ex_data_X509_STORE_CTX_idx();
  auto* const ssl = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(context, index));
  std::string& objection = static_cast<Notes*>(SSL_get_app_data(ssl))->objection;
  if (good != 1) {
    objection = reason_of(context);
    return 0;
  }
  if (::X509_STORE_CTX_get_error_depth(context) > 0) return 1;
  const auto job = job_of(::X509_STORE_CTX_get_current_cert(context));
  const std::string& own = known_to(ssl).secrets->certificates()->job();
  if (job == own) return 1;
  objection = job ? "it is of job \"" + plain(std::string_view(*job).substr(0, kForeignTextMax)) +
                        "\", and this process of \"" + own + "\""
                  : "it names no job";
  ::X509_STORE_CTX_set_error(context, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

bool use_certificates(SSL_CTX* context, const Certificates& certificates) {
  const Certificates::Parts& parts = certificates.parts();
  bool made = ::SSL_CTX_use_certificate(context, parts.chain.front().get()) == 1 &&
              ::SSL_CTX_use_PrivateKey(context, parts.key.get()) == 1 &&
              ::SSL_CTX_set_purpose(context, X509_PURPOSE_ANY) == 1;
  for (std::size_t i = 1; i < parts.chain.size(); ++i)
    made = made && SSL_CTX_add1_chain_cert(context, parts.chain[i].get()) == 1;
  SSL_CTX_set1_cert_store(context, parts.authority.get());
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, check_job);
  return made;
}

}  // namespace

struct TlsContext::Parts {
  Known known;
  TlsPtr<SSL_CTX> context;
};

struct TlsSession::Parts {
  std::shared_ptr<const TlsContext> context;
  TlsPtr<SSL> ssl;
  Notes notes;
  BIO* in = nullptr;   // the session's
  BIO* out = nullptr;  // the session's
  std::size_t received = 0;
};

TlsContext::TlsContext(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsContext::~TlsContext() = default;

std::string TlsContext::name() const {
  std::string name;
  for (const std::uint64_t id : parts_->known.secrets->ids())
    name.append(" ").append(std::to_string(id));
  if (has_certificates()) name += parts_->known.secrets->certificates()->fingerprint();
  return name;
}

// Expects the first message in one record, as our own clients send it. OpenSSL judges all else.
FirstMessage TlsContext::judge(ByteSpan first, std::size_t bytes_max) const {
  constexpr std::byte kHandshake{22};
  constexpr std::size_t kRecordHeader = 5;
  constexpr std::size_t kRandomAt = kRecordHeader + 4 + 2;  // message, version
  if (!first.empty() && first[0] != kHandshake) return FirstMessage::strangers;
  if (first.size() < kRecordHeader) return FirstMessage::unfinished;
  const std::size_t whole = kRecordHeader + (std::to_integer<std::size_t>(first[3]) << 8 |
                                             std::to_integer<std::size_t>(first[4]));
  if (whole < kRandomAt + sizeof(std::uint64_t) || whole > bytes_max)
    return FirstMessage::strangers;
  if (first.size() < whole) return FirstMessage::unfinished;
  std::uint64_t number = 0;
  std::memcpy(&number, first.data() + kRandomAt, sizeof number);
  // Without secrets anybody can make a new first message, so only a recorded one can be refused
  // here.
  if (has_certificates()) {
    return parts_->known.hellos.add(number) ? FirstMessage::may_be_members
                                            : FirstMessage::strangers;
  }
  if (parts_->known.hellos.has(number)) return FirstMessage::strangers;
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  const auto ids = parts_->known.secrets->ids();
  const bool named = std::any_of(ids.begin(), ids.end(), [&](std::uint64_t id) {
    return text.find(identity_of(id)) != std::string_view::npos;
  });
  return named ? FirstMessage::may_be_members : FirstMessage::strangers;
}

bool TlsContext::has_certificates() const {
  return parts_->known.secrets->certificates() != nullptr;
}

std::size_t TlsContext::secrets() const {
  return has_certificates() ? 1 : parts_->known.secrets->count();
}

Result<std::shared_ptr<const TlsContext>> TlsContext::make(std::shared_ptr<const Secrets> secrets) {
  auto parts = std::make_unique<Parts>();
  parts->known.secrets = std::move(secrets);
  parts->context.reset(::SSL_CTX_new(::TLS_method()));
  SSL_CTX* const context = parts->context.get();
  const bool made = context != nullptr &&
                    ::SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                    ::SSL_CTX_set_ciphersuites(context, kCiphers) == 1 &&
                    ::SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
                    ::SSL_CTX_set_num_tickets(context, 0) == 1;
  if (!made) {
    return Status::error(StatusCode::kUnsupported,
                         "this machine's OpenSSL lacks TLS 1.3 with X25519, which a secret needs");
  }
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_app_data(context, &parts->known);
  if (const Certificates* const certificates = parts->known.secrets->certificates()) {
    if (!use_certificates(context, *certificates)) {
      ::ERR_clear_error();
      return Status::error(StatusCode::kUnsupported,
                           "this machine's OpenSSL does not take the certificate in "
                           "LEEWAY_TLS_CERT: is its key long enough?");
    }
  } else {
    ::SSL_CTX_set_psk_use_session_callback(context, use_secret);
    ::SSL_CTX_set_psk_find_session_callback(context, find_secret);
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(parts)));
}

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, Side side, std::size_t attempt)
    : parts_(std::make_unique<Parts>()) {
  parts_->context = std::move(context);
  parts_->ssl.reset(::SSL_new(parts_->context->parts_->context.get()));
  parts_->in = ::BIO_new(::BIO_s_mem());
  parts_->out = ::BIO_new(::BIO_s_mem());
  LEEWAY_ASSERT(parts_->ssl != nullptr && parts_->in != nullptr && parts_->out != nullptr);
  SSL* const ssl = parts_->ssl.get();
  ::SSL_set_bio(ssl, parts_->in, parts_->out);
  parts_->notes.attempt = attempt;
  SSL_set_app_data(ssl, &parts_->notes);
  if (side == Side::server) {
    ::SSL_set_accept_state(ssl);
    return;
  }
  // The server must prove the secret. A server that shows a certificate instead is refused, since
  // no certificate is trusted.
  if (!parts_->context->has_certificates()) ::SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  ::SSL_set_connect_state(ssl);
  shake_hands();
}

TlsSession::~TlsSession() = default;
TlsSession::TlsSession(TlsSession&&) noexcept = default;

bool TlsSession::is_open() const {
  return !failed_ && ::SSL_is_init_finished(parts_->ssl.get()) == 1;
}

bool TlsSession::receive(ByteSpan bytes, std::vector<std::byte>& plain) {
  if (failed_) return false;
  parts_->received += bytes.size();
  if (!bytes.empty()) {
    const int taken = ::BIO_write(parts_->in, bytes.data(), static_cast<int>(bytes.size()));
    failed_ = taken != static_cast<int>(bytes.size());
  }
  if (!failed_) go_on(plain);
  if (!is_open() && parts_->received > kHandshakeBytesMax) failed_ = true;
  return !failed_;
}

void TlsSession::go_on(std::vector<std::byte>& plain) {
  if (!is_open()) shake_hands();
  if (!is_open()) return;
  send_waiting();
  std::array<std::byte, kRecordBytes> record;  // NOLINT: written by SSL_read
  while (true) {
    ::ERR_clear_error();
    const int got = ::SSL_read(parts_->ssl.get(), record.data(), static_cast<int>(record.size()));
    if (got > 0) {
      plain.insert(plain.end(), record.begin(), record.begin() + got);
      continue;
    }
    // An ended stream is no failure: the other side closes its connection.
    const int why = ::SSL_get_error(parts_->ssl.get(), got);
    failed_ = why != SSL_ERROR_WANT_READ && why != SSL_ERROR_ZERO_RETURN;
    if (failed_ && parts_->context->has_certificates()) note_refusal();
    return;
  }
}

const std::string& TlsSession::objection() const {
  return parts_->notes.objection;
}

// Keeps the text of an alert. It came from the server inside the session, so the server has proved
// its identity.
void TlsSession::note_refusal() {
  const char* const words = ::ERR_reason_error_string(::ERR_peek_error());
  if (words != nullptr && std::strstr(words, "alert") != nullptr) refusal_ = words;
  ::ERR_clear_error();
}

bool TlsSession::is_proved() const {
  if (!parts_->context->has_certificates()) return ::SSL_session_reused(parts_->ssl.get()) == 1;
  return ::SSL_session_reused(parts_->ssl.get()) == 0 &&
         ::SSL_get0_peer_certificate(parts_->ssl.get()) != nullptr &&
         ::SSL_get_verify_result(parts_->ssl.get()) == X509_V_OK;
}

void TlsSession::shake_hands() {
  ::ERR_clear_error();
  const int done = ::SSL_do_handshake(parts_->ssl.get());
  if (done == 1) {
    failed_ = !is_proved();
    return;
  }
  failed_ = ::SSL_get_error(parts_->ssl.get(), done) != SSL_ERROR_WANT_READ;
}

void TlsSession::say(ByteSpan plain) {
  waiting_.insert(waiting_.end(), plain.begin(), plain.end());
  if (is_open()) send_waiting();
}

void TlsSession::send_waiting() {
  ByteSpan rest = waiting_;
  while (!rest.empty() && !failed_) {
    const ByteSpan record = rest.first(std::min(rest.size(), kRecordBytes));
    ::ERR_clear_error();
    const int said = ::SSL_write(parts_->ssl.get(), record.data(), static_cast<int>(record.size()));
    failed_ = said <= 0;
    if (!failed_) rest = rest.subspan(static_cast<std::size_t>(said));
  }
  waiting_ = {};
}

std::vector<std::byte> TlsSession::take_output() {
  std::vector<std::byte> bytes(::BIO_ctrl_pending(parts_->out));
  if (bytes.empty()) return bytes;
  const int got = ::BIO_read(parts_->out, bytes.data(), static_cast<int>(bytes.size()));
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

}  // namespace leeway::keys
