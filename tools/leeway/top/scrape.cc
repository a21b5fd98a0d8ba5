#include "top/scrape.h"

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <chrono>

#include "rendezvous/address.h"

namespace leeway::tools::top {
namespace {

constexpr auto kPatience = std::chrono::seconds(2);
constexpr std::size_t kAnswerBytesMax = 16u << 20;

struct Conversation {
  asio::io_context io;
  asio::ip::tcp::socket socket{io};
  std::string request;
  std::string answer;
  std::error_code outcome = asio::error::timed_out;

  void begin(const std::vector<asio::ip::tcp::endpoint>& endpoints) {
    asio::async_connect(socket, endpoints, [this](std::error_code error, const auto&) {
      outcome = error;
      if (error) return;
      outcome = asio::error::timed_out;
      asio::async_write(socket, asio::buffer(request),
                        [this](std::error_code failure, std::size_t) {
                          outcome = failure;
                          if (!failure) read();
                        });
    });
  }
  void read() {
    outcome = asio::error::timed_out;
    asio::async_read(socket, asio::dynamic_buffer(answer, kAnswerBytesMax),
                     [this](std::error_code error, std::size_t) {
                       outcome = error == asio::error::eof ? std::error_code() : error;
                     });
  }
};

}  // namespace

Result<std::string> scrape(const std::string& address) {
  const auto where = rendezvous::parse_host_port(address);
  if (!where.ok()) return where.status();
  Conversation talk;
  const auto resolved = rendezvous::resolve(talk.io, *where);
  if (!resolved.ok()) return resolved.status();
  talk.request = "GET /metrics HTTP/1.1\r\nHost: " + address + "\r\nConnection: close\r\n\r\n";
  talk.begin(resolved->endpoints);
  talk.io.run_for(kPatience);
  const std::size_t body = talk.answer.find("\r\n\r\n");
  if (talk.outcome || talk.answer.find(" 200 ") > 16 || body == std::string::npos) {
    return Status::error(StatusCode::kUnavailable, "%s",
                         talk.outcome ? talk.outcome.message().c_str() : "no metrics are there");
  }
  return talk.answer.substr(body + 4);
}

}  // namespace leeway::tools::top
