#include "store_rendezvous.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace leeway::torch_backend {
namespace {

// Period at which get() checks for the key.
constexpr auto kLook = std::chrono::milliseconds(2);

Status unreachable(const char* call, const std::exception& error) {
  return Status::error(StatusCode::kUnavailable, "torch's store, %s: %.200s", call, error.what());
}

}  // namespace

StoreRendezvous::StoreRendezvous(const c10::intrusive_ptr<c10d::Store>& store) : store_(store) {}

Status StoreRendezvous::put(std::string_view key, ByteSpan value) {
  try {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(value.data());
    store_->set(std::string(key), std::vector<std::uint8_t>(bytes, bytes + value.size()));
    return Status();
  } catch (const std::exception& error) {
    return unreachable("set", error);
  }
}

// Uses check() and sleep instead of wait(): the connection may be shared, and a waiting call would
// hold up others.
Result<std::vector<std::byte>> StoreRendezvous::get(std::string_view key, Duration patience) {
  const std::string name(key);
  const auto until = std::chrono::steady_clock::now() + std::max(patience, Duration(0));
  try {
    while (!store_->check({name})) {
      if (std::chrono::steady_clock::now() >= until)
        return Status::error(StatusCode::kDeadlineExceeded, "%s is not in torch's store",
                             name.c_str());
      std::this_thread::sleep_for(kLook);
    }
    const std::vector<std::uint8_t> value = store_->get(name);
    const auto* const bytes = reinterpret_cast<const std::byte*>(value.data());
    return std::vector<std::byte>(bytes, bytes + value.size());
  } catch (const std::exception& error) {
    return unreachable("get", error);
  }
}

Status StoreRendezvous::erase(std::string_view key) {
  try {
    store_->deleteKey(std::string(key));
    return Status();
  } catch (const std::exception& error) {
    return unreachable("deleteKey", error);
  }
}

}  // namespace leeway::torch_backend
