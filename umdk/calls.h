// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <new>

#include "umdk/context.h"
#include "umdk/handle.h"
#include "umdk/log.h"
#include "umdk/pool.h"
#include "umdk/statuses.h"
#include "urma/core/result.h"

namespace urma::umdk {

// Common to the functions of the C API. A `call` is such a function.

inline constexpr const char* no_memory = "the system has no memory left. Fix: free some";

// A call that succeeds leaves errno as it was, as UMDK's do: programs look at errno after several
// calls. This restores it at the end of the scope.
class KeptErrno {
 public:
  KeptErrno() = default;
  ~KeptErrno() { errno = before_; }
  KeptErrno(const KeptErrno&) = delete;

 private:
  const int before_ = errno;
};

// Runs a call that returns a status; nothing is thrown out of it.
template <class Function>
urma_status_t run(Call call, Function&& function) {
  try {
    const KeptErrno kept;
    return function();
  } catch (const std::bad_alloc&) {
    return refuse(URMA_ENOMEM, call, "%s", no_memory);
  }
}

// Runs a call that returns an object. The function returns null with errno set if it fails.
template <class Function>
auto make(Call call, Function&& function) -> decltype(function()) {
  try {
    const int before = errno;
    auto* const made = function();
    if (made != nullptr) errno = before;
    return made;
  } catch (const std::bad_alloc&) {
    return null(refuse(URMA_ENOMEM, call, "%s", no_memory));
  }
}

// Writes what the library said, and returns the status of the C API that means the same. An error
// for which there was no memory says nothing.
inline urma_status_t refuse(Call call, const Error& error) {
  return refuse(call_status(error.status), call, "%s",
                error.message.empty() ? no_memory : error.message.c_str());
}

// A signal came while the call waited.
inline urma_status_t refuse_interrupted(Call call) {
  return refuse(URMA_FAIL, call, "a signal interrupted the wait. Fix: call it again");
}

inline urma_status_t refuse_null(Call call, const char* what) {
  return refuse(URMA_EINVAL, call,
                "%s is null, deleted, or not made by this library. Fix: give one that a call "
                "returned",
                what);
}

// Returns whether an object belongs to the parent of this process (Context::is_inherited). No call
// waits for a lock of such an object.
inline bool is_inherited(const Context& context) { return context.is_inherited(); }
template <class Object>
bool is_inherited(const Object& object) {
  return static_cast<const Context*>(object.urma_ctx)->is_inherited();
}
inline urma_status_t refuse_inherited(Call call) {
  return refuse(URMA_FAIL, call,
                "the object belongs to the parent of this process, which fork() made. Fix: create "
                "a context in this process");
}

// A call on an object that exists: finds it, and runs the function with it.
template <class Object, class Public, class Function>
urma_status_t with(Call call, const char* what, Public* given, Function&& function) {
  Object* const object = find<Object>(given);
  if (object == nullptr) return refuse_null(call, what);
  if (is_inherited(*object)) return refuse_inherited(call);
  return run(call, [&] { return function(*object); });
}

// A call that changes the state of an object: as `with`, but other threads that do the same wait.
template <class Object, class Public, class Function>
urma_status_t alone_with(Call call, const char* what, Public* given, Function&& function) {
  const Claim<Object> claim(given);
  if (claim.object() == nullptr) return refuse_null(call, what);
  if (is_inherited(*claim.object())) return refuse_inherited(call);
  return run(call, [&] { return function(*claim.object()); });
}

// A call that ends an object: the function has destroyed it if it returns URMA_SUCCESS. One of
// several threads ends it; the others are refused as for a deleted object.
template <class Object, class Public, class Function>
urma_status_t end_object(Call call, const char* what, Public* given, Function&& function) {
  Claim<Object> claim(given);
  if (claim.object() == nullptr) return refuse_null(call, what);
  if (is_inherited(*claim.object())) return refuse_inherited(call);
  const urma_status_t status = run(call, [&] { return function(*claim.object()); });
  if (status == URMA_SUCCESS) claim.drop();
  return status;
}

// A call on a context that makes something of it. Returns null with errno set if it does not exist,
// or belongs to the parent of this process.
inline Context* context_of(Call call, urma_context_t* given) {
  auto* const context = find<Context>(given);
  if (context == nullptr) return null(refuse_null(call, "ctx"));
  return context->is_inherited() ? null(refuse_inherited(call)) : context;
}

// Begins to post a list of works or receives: finds the queue, which has to be active.
template <class Object, class Public, class Item>
urma_status_t begin_post(Call call, Public* given, Item* list, Item** bad, Object*& queue) {
  queue = find<Object>(given);
  if (queue == nullptr || !queue->active() || list == nullptr || bad == nullptr) [[unlikely]] {
    return refuse_null(call, "the queue, its list or bad_wr");
  }
  if (is_inherited(*queue)) [[unlikely]] {
    *bad = list;
    return refuse_inherited(call);
  }
  return URMA_SUCCESS;
}

// Deletes objects until one fails, which `*bad` is then.
template <class Public, class Delete>
urma_status_t delete_all(Call call, Public** all, int count, Public** bad, Delete&& delete_one) {
  if (all == nullptr || count <= 0 || bad == nullptr) {
    return refuse(URMA_EINVAL, call,
                  "there is no array. Fix: give 1 object or more, and a place "
                  "for the one that fails");
  }
  for (int i = 0; i < count; ++i) {
    *bad = all[i];
    if (const urma_status_t status = delete_one(all[i]); status != URMA_SUCCESS) return status;
  }
  return URMA_SUCCESS;
}

}  // namespace urma::umdk
