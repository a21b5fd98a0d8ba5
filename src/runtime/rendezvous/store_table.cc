#include "rendezvous/store_table.h"

#include <algorithm>

namespace leeway::rendezvous {
namespace {

// Bytes that the map's nodes take for each key, beside key and value.
constexpr std::size_t kEntryBytes = 256;

bool is_key_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '%' || c == '/';
}

}  // namespace

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= Rendezvous::kKeyBytesMax &&
         std::all_of(key.begin(), key.end(), is_key_letter);
}

Status check_put(std::string_view key, ByteSpan value) {
  if (!is_key(key)) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rendezvous: a key of %zu bytes is not of 1 to %zu letters, digits and "
                         "\"._-%%/\"",
                         key.size(), Rendezvous::kKeyBytesMax);
  }
  if (value.size() > Rendezvous::kValueBytesMax) {
    return Status::error(StatusCode::kInvalidArgument,
                         "rendezvous: a value of %zu bytes is longer than %zu", value.size(),
                         Rendezvous::kValueBytesMax);
  }
  return {};
}

StoreTable::Value StoreTable::make_value(ByteSpan bytes, std::size_t cost) {
  *bytes_ += cost;
  return {new std::vector<std::byte>(bytes.begin(), bytes.end()),
          [total = bytes_, cost](const std::vector<std::byte>* value) {
            *total -= cost;
            delete value;
          }};
}

std::size_t StoreTable::cost_of(std::string_view key, ByteSpan value) {
  return key.size() + value.size() + kEntryBytes;
}

bool StoreTable::make_room(std::size_t more) {
  if (bytes() + more > bytes_max_) {
    std::erase_if(entries_, [](const auto& one) {
      const Entry& entry = one.second;
      return entry.value != nullptr && entry.readers != 0 && entry.reads >= entry.readers;
    });
  }
  return bytes() + more <= bytes_max_;
}

bool StoreTable::put(std::string_view key, ByteSpan value, Owner owner, std::uint32_t readers,
                     std::vector<Woken>& woken) {
  const std::size_t cost = cost_of(key, value);
  if (!make_room(cost)) return false;
  auto at = entries_.find(key);
  if (at == entries_.end()) at = entries_.emplace(std::string(key), Entry{}).first;
  ++changes_;
  Entry& entry = at->second;
  entry.value = make_value(value, cost);
  entry.owner = owner;
  entry.readers = readers;
  entry.reads = 0;
  for (const Waiter& waiter : entry.waiters) woken.push_back({waiter, entry.value});
  entry.reads = static_cast<std::uint32_t>(entry.waiters.size());
  all_reads_ += entry.reads;
  entry.waiters.clear();
  return true;
}

StoreTable::Value StoreTable::read(std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.value == nullptr) return nullptr;
  ++at->second.reads;
  ++all_reads_;
  return at->second.value;
}

bool StoreTable::contains(std::string_view key) const {
  const auto at = entries_.find(key);
  return at != entries_.end() && at->second.value != nullptr;
}

void StoreTable::erase(std::string_view key) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.value == nullptr) return;
  entries_.erase(at);
  ++changes_;
}

void StoreTable::erase_of(std::string_view key, Owner owner) {
  const auto at = entries_.find(key);
  if (at == entries_.end() || at->second.value == nullptr || at->second.owner != owner) return;
  entries_.erase(at);
  ++changes_;
}

void StoreTable::wait(std::string_view key, Waiter waiter) {
  auto at = entries_.find(key);
  if (at == entries_.end()) at = entries_.emplace(std::string(key), Entry{}).first;
  at->second.waiters.insert(waiter);
}

void StoreTable::cancel(std::string_view key, Waiter waiter) {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return;
  at->second.waiters.erase(waiter);
  if (at->second.waiters.empty() && at->second.value == nullptr) entries_.erase(at);
}

std::uint32_t StoreTable::reads(std::string_view key) const {
  const auto at = entries_.find(key);
  return at == entries_.end() ? 0 : at->second.reads;
}

}  // namespace leeway::rendezvous
