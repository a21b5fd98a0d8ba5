// C: rendezvous, a store of keys and values that all ranks of a group can reach, where they meet.
#ifndef LEEWAY_C_RENDEZVOUS_H
#define LEEWAY_C_RENDEZVOUS_H

#include "leeway/c/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// A store, for leeway_options.store. Its functions may be called from several threads. A
// communicator keeps the parts of the store that it needs, so the handle may be freed at any time.
typedef struct leeway_rendezvous leeway_rendezvous;

// The place into which a get callback puts its value, by leeway_value_set().
typedef struct leeway_value leeway_value;
// For a store's callbacks (below): sets the value that the callback returns to the library. Copies
// `data`. If a callback calls this function several times, the last call counts.
LEEWAY_C_EXPORT leeway_status leeway_value_set(leeway_value* value, const void* data, size_t bytes);

// Callbacks that make a store of the caller's own, with the promises of leeway::Rendezvous
// (leeway/rendezvous.h). They may be called from several threads at once, also after
// leeway_rendezvous_free() while a communicator is being made. They return LEEWAY_OK or an error
// code, to which leeway_fail() adds a text. Keys have at most 240 bytes.
typedef struct leeway_store_callbacks {
  size_t size;  // bytes of this struct
  void* user;   // first argument of each callback
  // Stores the value within 30 s. A second put of a key replaces the value.
  leeway_status (*put)(void* user, const char* key, const void* data, size_t bytes);
  // Passes the value to leeway_value_set() as soon as there is one. Waits at most `patience_ns`;
  // with 0 or less it looks once. Returns LEEWAY_DEADLINE_EXCEEDED if the key is not there.
  leeway_status (*get)(void* user, const char* key, int64_t patience_ns, leeway_value* value);
  // Forgets a key. May be NULL; keys then stay.
  leeway_status (*erase)(void* user, const char* key);
  // Called once, when the store is not used any more. May be NULL.
  void (*destroy)(void* user);
} leeway_store_callbacks;
// An empty struct; the program must set put and get.
#define LEEWAY_STORE_CALLBACKS_INIT \
  { sizeof(leeway_store_callbacks), NULL, NULL, NULL, NULL, NULL }

// Makes a store of callbacks. Returns LEEWAY_INVALID_ARGUMENT if put or get is missing; destroy is
// not called then.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_create(const leeway_store_callbacks* callbacks,
                                                       leeway_rendezvous** store);
// Starts a TCP server at "host:port", "[v6]:port" or ":port". It runs until the handle is freed and
// no communicator needs it. With port 0 the system chooses a port.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_serve_tcp(const char* address,
                                                          leeway_rendezvous** store);
// Makes a client of the TCP server at "host:port". The server may start later.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_connect_tcp(const char* address,
                                                            leeway_rendezvous** store);
// Credentials that decide who may connect to a TCP server; the same on both sides. Strings are
// copied at the call; NULL means the empty string, no credential.
typedef struct leeway_tcp_security {
  size_t size;              // bytes of this struct
  const char* secret_file;  // file made by `leeway keygen`
  // PEM files, as in leeway_options
  const char* tls_ca;           // certificate of the job's authority
  const char* tls_certificate;  // certificate of this process
  const char* tls_key;          // key of that certificate
  int32_t insecure;             // flag: public addresses without a secret, for laboratories
} leeway_tcp_security;
// No credentials: any process with a private address may connect.
#define LEEWAY_TCP_SECURITY_INIT \
  { sizeof(leeway_tcp_security), NULL, NULL, NULL, NULL, 0 }

// Like leeway_rendezvous_serve_tcp(), but only for clients that prove that they are members.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_serve_tcp_secure(
    const char* address, const leeway_tcp_security* security, leeway_rendezvous** store);
// Makes a client of a server that leeway_rendezvous_serve_tcp_secure() started.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_connect_tcp_secure(
    const char* address, const leeway_tcp_security* security, leeway_rendezvous** store);
// Makes a store in a folder that all ranks can reach.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_in_folder(const char* folder,
                                                          leeway_rendezvous** store);
// Makes a store in the memory of this process, for ranks that are threads.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_in_process(leeway_rendezvous** store);

// Returns the "host:port" to which clients of a TCP store connect, or "" for other stores. Valid
// until the handle is freed.
LEEWAY_C_EXPORT const char* leeway_rendezvous_address(const leeway_rendezvous* store);
// Stores a value.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_put(leeway_rendezvous* store, const char* key,
                                                    const void* data, size_t bytes);
// Copies the value into `data`, which has `capacity` bytes, and gives its length in `bytes`. Waits
// at most `patience_ns` for it, like the get callback. If the value is longer than `capacity`,
// returns LEEWAY_RESOURCE_EXHAUSTED and does not change `data`.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_get(leeway_rendezvous* store, const char* key,
                                                    int64_t patience_ns, void* data,
                                                    size_t capacity, size_t* bytes);
// Forgets a key.
LEEWAY_C_EXPORT leeway_status leeway_rendezvous_erase(leeway_rendezvous* store, const char* key);
// Frees the handle.
LEEWAY_C_EXPORT void leeway_rendezvous_free(leeway_rendezvous* store);

#ifdef __cplusplus
}
#endif

#endif
