// C functions for communicators, and for those that are being made.
#include "leeway/c/communicator.h"

#include "c_abi/handles.h"
#include "c_abi/options.h"
#include "c_abi/outcome.h"

using namespace leeway;
using namespace leeway::c_abi;

namespace {

// Hands out a communicator. A rank that joins no new one (split() with kNoColor) gets NULL.
Status hand_out(Result<std::unique_ptr<Communicator>> made, leeway_communicator** out) {
  if (!made.ok()) return made.status();
  if (*made != nullptr) *out = new leeway_communicator{std::move(*made)};
  return Status();
}

Status hand_out(PendingCommunicator made, leeway_pending** out) {
  *out = new leeway_pending{std::move(made)};
  return Status();
}

}  // namespace

leeway_status leeway_create(const leeway_options* options, leeway_communicator** communicator) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "communicator", communicator));
    const auto read = options_of(options);
    if (!read.ok()) return read.status();
    return hand_out(Communicator::create(*read), communicator);
  });
}

leeway_status leeway_create_async(const leeway_options* options, leeway_pending** pending) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "pending", pending));
    const auto read = options_of(options);
    if (!read.ok()) return read.status();
    return hand_out(Communicator::create_async(*read), pending);
  });
}

leeway_status leeway_create_inproc(int32_t size, const leeway_options* options,
                                   leeway_communicator** communicators) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "communicators", communicators));
    if (size > 0) std::fill_n(communicators, size, nullptr);
    const auto read = options_of(options);
    if (!read.ok()) return read.status();
    auto made = Communicator::create_inproc(size, *read);
    if (!made.ok()) return made.status();
    std::vector<std::unique_ptr<leeway_communicator>> handles;
    for (auto& one : *made)
      handles.push_back(std::make_unique<leeway_communicator>(leeway_communicator{std::move(one)}));
    for (std::size_t i = 0; i < handles.size(); ++i) communicators[i] = handles[i].release();
    return Status();
  });
}

void leeway_communicator_free(leeway_communicator* communicator) {
  delete communicator;
}

leeway_status leeway_split(leeway_communicator* communicator, int32_t color, int32_t key,
                           leeway_communicator** part) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(counted(communicator, clear(name, "part", part)));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    return hand_out(communicator->value->split(color, key), part);
  });
}

leeway_status leeway_split_async(leeway_communicator* communicator, int32_t color, int32_t key,
                                 leeway_pending** pending) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(counted(communicator, clear(name, "pending", pending)));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    return hand_out(communicator->value->split_async(color, key), pending);
  });
}

leeway_status leeway_shrink(leeway_communicator* communicator, const leeway_rank* excluded,
                            std::size_t count, leeway_communicator** rest) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "rest", rest));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "excluded", excluded, count));
    return hand_out(communicator->value->shrink(std::span(excluded, count)), rest);
  });
}

leeway_status leeway_shrink_async(leeway_communicator* communicator, const leeway_rank* excluded,
                                  std::size_t count, leeway_pending** pending) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "pending", pending));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "excluded", excluded, count));
    return hand_out(communicator->value->shrink_async(std::span(excluded, count)), pending);
  });
}

int32_t leeway_pending_done(const leeway_pending* pending) {
  return pending != nullptr && pending->value.done();
}

leeway_status leeway_pending_on_done(leeway_pending* pending, leeway_done_callback callback,
                                     void* user) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "pending", pending));
    LEEWAY_C_TRY(must_be_there(name, "callback", reinterpret_cast<const void*>(callback)));
    pending->value.on_done([callback, user] { callback(user); });
    return Status();
  });
}

leeway_status leeway_pending_wait(leeway_pending* pending, leeway_communicator** communicator) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "pending", pending));
    return hand_out(pending->value.wait(), communicator);
  });
}

leeway_status leeway_pending_abort(leeway_pending* pending) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "pending", pending));
    pending->value.abort();
    return Status();
  });
}

void leeway_pending_free(leeway_pending* pending) {
  delete pending;
}

leeway_status leeway_abort(leeway_communicator* communicator) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    communicator->value->abort();
    return Status();
  });
}

leeway_status leeway_state(const leeway_communicator* communicator) {
  if (communicator == nullptr) return LEEWAY_INVALID_ARGUMENT;
  return static_cast<leeway_status>(communicator->value->state());
}

leeway_status leeway_explain(const leeway_communicator* communicator) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    return communicator->value->status();
  });
}

leeway_rank leeway_rank_of(const leeway_communicator* communicator) {
  return communicator != nullptr ? communicator->value->rank() : kNoRank;
}

int32_t leeway_size_of(const leeway_communicator* communicator) {
  return communicator != nullptr ? communicator->value->size() : 0;
}

std::size_t leeway_datagram_bytes(const leeway_communicator* communicator) {
  return communicator != nullptr ? communicator->value->datagram_bytes() : 0;
}

leeway_transport leeway_transport_of(const leeway_communicator* communicator) {
  if (communicator == nullptr) return LEEWAY_TRANSPORT_AUTOMATIC;
  return static_cast<leeway_transport>(communicator->value->transport());
}

leeway_status leeway_register_memory(leeway_communicator* communicator, const void* memory,
                                     std::size_t bytes, leeway_registration** registration) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(clear(name, "registration", registration));
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "memory", memory, bytes));
    auto handle = std::make_unique<leeway_registration>();
    auto made =
        communicator->value->register_memory({static_cast<const std::byte*>(memory), bytes});
    if (!made.ok()) return made.status();
    handle->value = std::move(*made);
    *registration = handle.release();
    return Status();
  });
}

void leeway_registration_free(leeway_registration* registration) {
  delete registration;
}

leeway_status leeway_notify_payload(leeway_communicator* communicator) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    communicator->value->notify_payload();
    return Status();
  });
}

leeway_status leeway_counters(const leeway_communicator* communicator,
                              leeway_counter_callback callback, void* user) {
  return guarded(__func__, [&](const char* name) -> Status {
    LEEWAY_C_TRY(must_be_there(name, "communicator", communicator));
    LEEWAY_C_TRY(must_be_there(name, "callback", reinterpret_cast<const void*>(callback)));
    for (const auto& [counter, value] : communicator->value->counters())
      callback(user, counter.c_str(), value);
    return Status();
  });
}
