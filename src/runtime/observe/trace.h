// A qlog of the datagrams that a process sends and receives, in a file that qvis opens (JSON-SEQ,
// qlog 0.3).
//
// A thread that notes an event puts it into a bounded buffer and never waits; the trace's own
// thread writes the text. Events that find no room are counted, and the file has their number. The
// file ends at 64 MiB with a record that says so. It also ends if the disk is full, which is
// logged.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/fork.h"
#include "base/thread.h"
#include "base/time.h"
#include "driving/snapshot.h"
#include "leeway/options.h"
#include "rendezvous/log.h"
#include "wire/packet.h"

namespace leeway::observe {

class Trace {
 public:
  static constexpr std::size_t kFileBytesMax = 64u << 20;
  static constexpr std::size_t kNotesMax = 1u << 16;

  // Returns the process's trace, which all its sockets share. Returns null if the options ask for
  // no trace, or if the file cannot be opened, which is logged.
  static std::shared_ptr<Trace> of(const Options& options);
  // The file of rank `rank` of `size`: for rank 3 "run.sqlog" becomes "run.3.sqlog".
  static std::string path_of(const std::string& path, int rank, int size);

  Trace(std::FILE* file, const Options& options, const rendezvous::Log& log,
        std::size_t bytes_max = kFileBytesMax);
  // Writes the remaining events.
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // Direction of a datagram, as this process sees it.
  enum class Way : std::uint8_t { sent, received };

  // Any thread may call these functions, which never block. `peer` is a slot of the transport.
  void moved(Instant now, Way way, Rank peer, const wire::Prefix& prefix, std::size_t bytes);
  void look(const driving::Snapshot& snapshot);
  void done(Instant now, const collective::Request& request);

 private:
  enum class What : std::uint8_t { sent, received, lost, metrics, done };
  struct Note {
    Instant at;
    What what = What::sent;
    std::uint8_t type = 0;  // type of the packet or kind of the operation
    bool flag = false;      // the operation failed
    Rank peer = 0;
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    Duration rtt{0};  // or the duration of the operation
    Duration rtt_min{0};
    std::uint64_t window_bytes = 0;
    double bits_per_second = 0;
    double loss = 0;
  };

  void leave(const Note& note);
  void write_all(const std::stop_token& stop);
  void write(const Note& note);
  void flush();
  void write_record(const char* text, int length);

  std::FILE* const file_;
  const std::string path_;
  KeptFromChildren kept_;
  const std::size_t bytes_max_;
  rendezvous::Log log_;
  const Instant began_;
  std::mutex mutex_;
  std::vector<Note> notes_;
  std::condition_variable_any stopping_;
  std::atomic<std::uint64_t> dropped_{0};
  std::vector<std::uint64_t> lost_seen_;  // by peer; used by the driving thread only
  // Used by the writer's thread only
  std::vector<Note> taken_;
  std::size_t bytes_ = 0;
  bool full_ = false;
  std::uint64_t dropped_told_ = 0;
  Thread writer_;
};

// Returns `transport` itself, or a transport around it that traces its datagrams, as the options
// ask.
std::unique_ptr<DatagramTransport> traced(std::unique_ptr<DatagramTransport> transport,
                                          const Options& options);

}  // namespace leeway::observe
