// Rendezvous: a store of keys and values that all ranks of a group can reach, where they meet.
//
// Communicator::create() uses the store only until the group has formed. By default the store is at
// a TCP port of rank 0 (Options::rendezvous). A program that has a store already, such as a
// c10d::Store, passes an object of a class of its own that derives from Rendezvous
// (Options::store). This header also has a TCP server that any process can own, a folder of files,
// and the memory of one process.
//
// Many groups meet in one place at the same time. Keys of a group begin with
// "leeway/<restart count>/<communicator name>/".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leeway/export.h"
#include "leeway/status.h"
#include "leeway/types.h"

namespace leeway {
inline namespace v0 {

// A store of keys and values, to be derived from. Only put() and get() must be written. For a
// c10d::Store, set() is enough to write put(), and check(), wait() and get() to write get().
//
// What an implementation promises:
//   Every process that has an object of the same store sees the same keys. After put() has
//   returned, every get() finds the value or a later one. A value is seen whole or not at all.
//   A second put() of a key replaces the value: the last one wins.
//   All calls may come from several threads at once. A call that waits does not hold up others.
//   Keys have 1 .. kKeyBytesMax bytes, of letters, digits and "._-%/". Values have 0 ..
//   kValueBytesMax bytes. A key or value that a store cannot take is an error, never cut. (In a
//   group that uses only UDP, values have about 200 bytes, and one value has 40 bytes for each
//   rank.)
// An implementation need not be fast, know who is alive, or keep a value once its group has met.
// Leeway treats every value as one from a stranger, and checks it before use.
class LEEWAY_EXPORT Rendezvous {
 public:
  // Longest key.
  static constexpr std::size_t kKeyBytesMax = 240;
  // Longest value. A table of 1,024 ranks with an address of 4 KiB each takes half of it.
  static constexpr std::size_t kValueBytesMax = 8'650'752;

  Rendezvous() = default;
  virtual ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Stores the value. Must return in bounded time, 30 s at most.
  virtual Status put(std::string_view key, ByteSpan value) = 0;

  // Returns the value as soon as there is one. Waits `patience` at most; with 0 or less it looks
  // once and does not wait. kDeadlineExceeded means that the key is not there. Any other error
  // means that the store cannot be reached; Leeway asks again until its own deadline.
  virtual Result<std::vector<std::byte>> get(std::string_view key, Duration patience) = 0;

  // When the store may forget a value.
  struct Lifetime {
    bool with_this_process = false;  // once the process that put it has ended
    std::uint32_t readers = 0;       // after this many gets, if room is needed; 0 = never
  };
  // Like put(), for a value that the store may forget. The default calls put().
  virtual Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime);

  // Forgets a key. The default does nothing. If keys are not forgotten, a group that meets again
  // under the same name polls until rank 0 has replaced the values of the old meeting.
  virtual Status erase(std::string_view key);

  // Receives the index of a key and its value. Returns false if it needs no more.
  using Taker = std::function<bool(std::size_t index, std::vector<std::byte> value)>;
  // Gets each of the keys once, in the order in which their values appear. It ends when `take`
  // returns false, all keys were taken, or `patience` is over; all three are success. The default
  // gets one key after the other, and waits for one at a time only. A store with a request for many
  // keys can do better.
  virtual Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take);

  // Shortest measured round trip to the store. The default is 0, which means not known. Ranks far
  // from the store count as ranks of another site (CongestionControl::automatic).
  virtual Duration round_trip() const;
};

// A store over TCP. One process owns the server, which runs in the background. This process need
// not be rank 0, nor any rank. All other processes connect.
//
// The server stores at most 64 MiB, and closes connections that do not speak its protocol. With a
// secret, connections are encrypted (TLS 1.3), and the server refuses clients that do not know the
// secret. Without a secret anyone may write, and public addresses are refused.
class LEEWAY_EXPORT TcpRendezvous final : public Rendezvous {
 public:
  // Credentials that decide who may connect to the server.
  struct Security {
    std::string secret_file;  // as Options::secret_file; on both sides; may be empty
    std::string secret;       // as Options::secret, instead of a file
    bool insecure = false;    // as Options::insecure
    // As in Options. Give these on the server and all clients, or on none of them
    std::string tls_ca;
    std::string tls_certificate;
    std::string tls_key;
  };

  // Owns a server at "host:port", "[v6]:port" or ":port" (all addresses of this machine) until the
  // object is destroyed. With port 0 the system chooses a free one, which address() gives. Within
  // one process, objects of the same address share one server.
  static Result<std::shared_ptr<TcpRendezvous>> serve(std::string_view address,
                                                      const Security& security);
  // Like the function above, without a secret.
  static Result<std::shared_ptr<TcpRendezvous>> serve(std::string_view address);

  // A client of the server at "host:port". It connects when it is first used, and waits for a
  // server that is not there yet. An error means that the address is malformed.
  static Result<std::shared_ptr<TcpRendezvous>> connect(std::string_view address,
                                                        const Security& security);
  // Like the function above, without a secret.
  static Result<std::shared_ptr<TcpRendezvous>> connect(std::string_view address);

  ~TcpRendezvous() override;

  // The server's "host:port", for connect().
  const std::string& address() const;

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;
  Duration round_trip() const override;

 private:
  TcpRendezvous(std::string address, std::shared_ptr<Rendezvous> store);

  const std::string address_;
  const std::shared_ptr<Rendezvous> store_;
};

// A store that is a folder which all ranks see, for instance on NFS. Each key is a file, which
// appears by a rename. A get() that waits polls every 1 ms to 50 ms. Each meeting leaves one small
// file; the caller must remove the folder.
class LEEWAY_EXPORT FileRendezvous final : public Rendezvous {
 public:
  // Creates the folder if it does not exist.
  explicit FileRendezvous(std::string folder);

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status erase(std::string_view key) override;

 private:
  const std::string folder_;
};

// A store in the memory of one process, for ranks that are threads.
class LEEWAY_EXPORT InprocRendezvous final : public Rendezvous {
 public:
  InprocRendezvous();
  ~InprocRendezvous() override;

  Status put(std::string_view key, ByteSpan value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Duration patience) override;
  Status put_briefly(std::string_view key, ByteSpan value, Lifetime lifetime) override;
  Status erase(std::string_view key) override;
  Status get_each(std::span<const std::string> keys, Duration patience, const Taker& take) override;

 private:
  struct Memory;
  const std::unique_ptr<Memory> memory_;
};

}  // namespace v0
}  // namespace leeway
