// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "umdk/calls.h"
#include "umdk/checks.h"
#include "umdk/context.h"

namespace urma::umdk {

// The life of JFC, JFS, JFR and Jetty, which is the same: alloc makes an object, active its queue;
// deactive and free end them. create and delete do two of these at once.

// The rules of each kind, defined beside its calls: `begin` replaces URMA_DEF_ORDER in the caller's
// configuration; `settle` checks the configuration of an object that becomes active, and replaces
// defaults in it; `may_end` refuses to end an object that others use.
struct Jfc;
struct Jfs;
struct Jfr;
struct Jetty;
urma_status_t begin(const char* call, urma_jfc_cfg_t& cfg);
urma_status_t begin(const char* call, urma_jfs_cfg_t& cfg);
urma_status_t begin(const char* call, urma_jfr_cfg_t& cfg);
urma_status_t begin(const char* call, urma_jetty_cfg_t& cfg);
urma_status_t settle(const char* call, Jfc& jfc);
urma_status_t settle(const char* call, Jfs& jfs);
urma_status_t settle(const char* call, Jfr& jfr);
urma_status_t settle(const char* call, Jetty& jetty);
urma_status_t may_end(const char* call, Jfc& jfc);
urma_status_t may_end(const char* call, Jfs& jfs);
urma_status_t may_end(const char* call, Jfr& jfr);
urma_status_t may_end(const char* call, Jetty& jetty);

inline urma_status_t wrong_state(Call call, bool active) {
  return refuse(URMA_EINVAL, call, "the object is %s. Fix: %s it first",
                active ? "active" : "not active", active ? "deactivate" : "activate");
}

// Returns null with errno set if the context does not exist, or the configuration cannot be valid.
template <class Object, class Config>
Object* allocate(Call call, urma_context_t* ctx, Config* cfg) {
  Context* const context = context_of(call, ctx);
  if (context == nullptr) return nullptr;
  if (cfg == nullptr) return null(refuse_null(call, "cfg"));
  if (const auto status = begin(call, *cfg); status != URMA_SUCCESS) return null(status);
  return Pool<Object>::make(*context, *cfg);
}

template <class Object, class Config, class Public>
urma_status_t allocate(Call call, urma_context_t* ctx, Config* cfg, Public** out) {
  if (out == nullptr) return refuse_null(call, "the place for the object");
  return run(call, [&] {
    *out = allocate<Object>(call, ctx, cfg);
    return *out != nullptr ? URMA_SUCCESS : static_cast<urma_status_t>(errno);
  });
}

template <class Object>
urma_status_t activate(Call call, Object& object) {
  if (object.active()) return wrong_state(call, true);
  if (const auto status = settle(call, object); status != URMA_SUCCESS) return status;
  const auto made = object.activate();
  return made ? URMA_SUCCESS : refuse(call, made.error());
}

template <class Object>
urma_status_t deactivate(Call call, Object& object) {
  if (!object.active()) return wrong_state(call, false);
  if (const auto status = may_end(call, object); status != URMA_SUCCESS) return status;
  object.deactivate();
  return URMA_SUCCESS;
}

template <class Object, class Config>
Object* create(Call call, urma_context_t* ctx, Config* cfg) {
  return make(call, [&]() -> Object* {
    typename Pool<Object>::Owner object(allocate<Object>(call, ctx, cfg));
    if (object == nullptr) return nullptr;
    const urma_status_t status = activate(call, *object);
    return status == URMA_SUCCESS ? object.release() : null(status);
  });
}

template <class Object, class Public>
urma_status_t remove(Call call, Public* given) {
  return end_object<Object>(call, "the object", given, [&](Object& object) {
    const urma_status_t status = deactivate(call, object);
    if (status == URMA_SUCCESS) Pool<Object>::destroy(&object);
    return status;
  });
}

template <class Object, class Public>
urma_status_t release(Call call, Public* given) {
  return end_object<Object>(call, "the object", given, [&](Object& object) {
    if (object.active()) return wrong_state(call, true);
    if (const auto status = may_end(call, object); status != URMA_SUCCESS) return status;
    Pool<Object>::destroy(&object);
    return URMA_SUCCESS;
  });
}

}  // namespace urma::umdk
