// The client of a TcpRendezvous: connects to the server, again and again until it is there, and
// asks on the calling thread. It has no thread of its own.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "leeway/rendezvous.h"
#include "rendezvous/address.h"
#include "rendezvous/store_frame.h"
#include "rendezvous/tcp_security.h"

namespace leeway::rendezvous {

class StoreConnection;

// Addresses of the two ends; IPv4 inside IPv6 is given as plain IPv4.
struct ConnectionEnds {
  asio::ip::address own;
  asio::ip::address theirs;
};

// Thread-safe: each call has a connection to itself. Connections stay open for later calls. When
// one closes, the server erases the keys that were put on it with_this_process.
//
// Errors: kUnavailable if the server was not reached in time, hung up, or does not know our secret
// (and may be a stranger); the text says why. kMismatch if the other side is no server of ours.
// kInvalidArgument if the host's name does not exist, or if this process lacks the secret that a
// public address or the server demands.
class TcpClient final : public Rendezvous {
 public:
  using Clock = std::chrono::steady_clock;

  // Returns the server's address. Called before each attempt to connect. Returns kUnavailable if it
  // is not known yet.
  using Find = std::function<Result<HostPort>()>;

  // No call lasts beyond `end`. `owner` names the server's owner in texts, and must stay valid.
  TcpClient(Find find, TcpSecurity security, const char* owner,
            Clock::time_point end = Clock::time_point::max());

  // Calls `tell` once, with the reason, if the other side does not prove that it is of this job.
  // The other side may be a stranger, so calls go on trying. But this process may also have the
  // wrong secret, which an operator should know.
  void on_refusal(std::function<void(const Status&)> tell) { tell_refusal_ = std::move(tell); }
  ~TcpClient() override;

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;

  // Puts a value that is erased when this process ends, then gets another key, in one exchange.
  // `patience` must be positive.
  Result<std::vector<std::byte>> put_and_get(std::string_view put_key, ByteSpan value,
                                             std::string_view get_key, Duration patience);

  // Returns the least round trip that TCP measured on connections not in use now, or 0 if there are
  // none.
  Duration round_trip() const override;

  // The two ends of the connection that was used last, if no call uses it now.
  std::optional<ConnectionEnds> ends() const;

 private:
  using ConnectionPtr = std::unique_ptr<StoreConnection>;

  Clock::time_point end_of(Duration patience) const;
  Status ask(const std::vector<StoreRequest>& requests, Clock::time_point end, bool patient,
             const std::function<bool(const StoreAnswer&)>& on_answer);
  Result<ConnectionPtr> lease(Clock::time_point end, bool patient);
  void tell_once_all_were_refused(const Status& why);
  Result<ConnectionPtr> with_refusal(Result<ConnectionPtr> connection, bool reached);
  // `reached` is set if someone accepted the connection.
  Result<ConnectionPtr> connect(Clock::time_point end, bool& reached) const;

  const Find find_;
  const TcpSecurity security_;
  const Clock::time_point end_;
  const char* const owner_;
  const pid_t process_;
  std::function<void(const Status&)> tell_refusal_;
  std::atomic<std::size_t> attempt_{0};  // which secret is proved next
  mutable std::mutex mutex_;
  std::vector<ConnectionPtr> free_;  // the last one was used last
  Status refusal_;                   // why the last server that was reached refused
};

}  // namespace leeway::rendezvous
