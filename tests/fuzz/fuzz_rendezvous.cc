// The server of a TcpRendezvous must handle any bytes from its connections, in any pieces and
// order. It answers in frames that clients can read, holds no more data than permitted, and closes
// connections that break the protocol.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

#include "fuzz/codec_input.h"
#include "rendezvous/store_server.h"

using namespace leeway;
using namespace leeway::rendezvous;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

// A server with up to four connections. Its limits are so small that short inputs reach them.
class Play {
 public:
  explicit Play(fuzz::Input input) : input_(input) {}

  void run() {
    while (!input_.rest().empty()) {
      step();
      check_server();
    }
  }

 private:
  struct Client {
    StoreServer::Id id = 0;  // 0 while not connected
    FrameReader reader;
    bool greeted = false;
  };

  static RendezvousLimits small_limits() {
    RendezvousLimits limits;
    limits.half_open_max = 2;
    limits.half_open_network_max = 1;
    limits.connections_max = 3;
    limits.bytes_max = 4096;
    limits.requests_max = 8;
    limits.all_requests_max = 16;
    return limits;
  }

  void step() {
    const std::uint8_t what = input_.byte();
    Client& client = clients_[what & 3];
    switch (what >> 2 & 7) {
      case 0:
        return connect(client, what >> 5);
      case 1:
        return say(client, raw());
      case 2:
      case 3:
      case 4:
        return say(client, request());
      case 5:
        if (client.id != 0) server_.on_closed(client.id);
        client = {};
        return;
      case 6:
        now_ += std::chrono::milliseconds(input_.two_bytes());
        return server_.on_wake(now_);
      default:
        return put_here();
    }
  }

  void connect(Client& client, std::uint64_t network) {
    if (client.id != 0) server_.on_closed(client.id);
    client = {};
    client.id = ++last_id_;
    server_.on_accept(now_, client.id, network);
  }

  void say(Client& client, const std::string& bytes) {
    server_.on_bytes(now_, client.id, std::as_bytes(std::span(bytes)));
  }

  std::string raw() {
    std::string bytes(input_.byte() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(input_.byte());
    return bytes;
  }

  // Returns a request that is valid or nearly so.
  std::string request() {
    StoreRequest request;
    const std::uint8_t kind = input_.byte();
    request.operation = static_cast<StoreOperation>(kind % 6);
    request.with_connection = (kind & 0x40) != 0;
    request.quiet = (kind & 0x80) != 0;
    request.number = input_.byte() % 8;
    request.readers = (kind & 0x20) != 0 ? 1 : 0;
    static constexpr const char* kKeys[] = {"a", "b", "leeway/0/world/root", ""};
    request.key = request.operation == StoreOperation::cancel ? "" : kKeys[input_.byte() % 4];
    const std::string value(
        request.operation == StoreOperation::put ? input_.two_bytes() % 2048 : 0, 'v');
    request.value = std::as_bytes(std::span(value));
    std::string bytes;
    if ((kind & 0x10) != 0)
      bytes.assign(reinterpret_cast<const char*>(kGreeting.data()), kGreeting.size());
    append_request(request, bytes);
    return bytes;
  }

  void put_here() { (void)server_.put_here(now_, "a", {}, input_.byte() % 3); }

  void check_server() {
    for (const StoreServer::Closing& closing : server_.poll_closings()) {
      check(closing.reason != nullptr);
      for (auto& client : clients_) {
        if (client.id == closing.id) client.id = 0;
      }
    }
    for (const StoreServer::Answer& answer : server_.poll_answers()) {
      for (auto& client : clients_) {
        if (client.id == answer.to) hear(client, answer);
      }
    }
    check(server_.bytes() <= small_limits().bytes_max);
    check(server_.connections() <= small_limits().connections_max);
    const auto wake = server_.next_wake();
    check(!wake || *wake <= now_ + small_limits().idle_timeout);
  }

  void hear(Client& client, const StoreServer::Answer& answer) {
    std::vector<std::byte> bytes = answer.head;
    if (answer.value) bytes.insert(bytes.end(), answer.value->begin(), answer.value->end());
    int answers = 0;
    check(client.reader.feed_answers(bytes, [&](const StoreAnswer&) { ++answers; }));
    check(answers == 1 && client.reader.buffered() == 0);
    if (input_.byte() % 4 != 0) server_.on_sent(now_, client.id, 1);
  }

  fuzz::Input input_;
  Instant now_;
  StoreTable table_{small_limits().bytes_max};
  StoreServer server_{small_limits(), table_};
  StoreServer::Id last_id_ = 0;
  Client clients_[4];
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Play(fuzz::Input(data, size)).run();
  return 0;
}
