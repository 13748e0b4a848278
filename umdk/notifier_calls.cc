// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include "umdk/calls.h"
#include "umdk/notifier.h"

namespace urma::umdk {

Notifier::Notifier(Context& context) : urma_notifier_t{}, ready_(OwnDescriptor::event()) {
  if (!ready_) throw std::bad_alloc();
  urma_ctx = &context;
  fd = ready_.number();
  context.hold();
}

Notifier::~Notifier() { context().let_go(); }

void Notifier::add(const urma_notify_t& result) {
  const std::lock_guard held(mutex_);
  results_.push_back(result);
  ready_.ring();
}

int Notifier::wait(std::span<urma_notify_t> out, int limit_ms) {
  pollfd readable{ready_.number(), POLLIN, 0};
  if (::poll(&readable, 1, limit_ms) < 0) {
    refuse_interrupted("urma_wait_notify");
    return -1;
  }
  const std::lock_guard held(mutex_);
  size_t count = 0;
  while (count < out.size() && !results_.empty()) {
    out[count++] = results_.front();
    results_.pop_front();
  }
  if (results_.empty()) ready_.quiet();
  return static_cast<int>(count);
}

}  // namespace urma::umdk

using namespace urma::umdk;

extern "C" {

urma_notifier_t* urma_create_notifier(urma_context_t* ctx) {
  return make("urma_create_notifier", [&]() -> urma_notifier_t* {
    Context* const context = context_of("urma_create_notifier", ctx);
    return context != nullptr ? Pool<Notifier>::make(*context) : nullptr;
  });
}

urma_status_t urma_delete_notifier(urma_notifier_t* notifier) {
  return end_object<Notifier>(__func__, "notifier", notifier, [](Notifier& object) {
    Pool<Notifier>::destroy(&object);
    return URMA_SUCCESS;
  });
}

urma_target_jetty_t* urma_import_jetty_async(urma_notifier_t* notifier, const urma_rjetty_t* rjetty,
                                             const urma_token_t* token_value, uint64_t user_ctx,
                                             int) {
  return make("urma_import_jetty_async", [&]() -> urma_target_jetty_t* {
    auto* const results = find<Notifier>(notifier);
    if (results == nullptr || rjetty == nullptr) {
      return null(refuse_null("urma_import_jetty_async", "notifier or rjetty"));
    }
    urma_rjetty_t described = *rjetty;
    urma_token_t token = token_value != nullptr ? *token_value : urma_token_t{};
    urma_target_jetty_t* const target =
        urma_import_jetty(results->urma_ctx, &described, token_value != nullptr ? &token : nullptr);
    if (target == nullptr) return nullptr;
    urma_notify_t result{};
    result.type = URMA_IMPORT_JETTY_NOTIFY;
    result.user_ctx = user_ctx;
    result.tjetty = target;
    results->add(result);
    return target;
  });
}

urma_status_t urma_bind_jetty_async(urma_notifier_t* notifier, urma_jetty_t* jetty,
                                    urma_target_jetty_t* tjetty, uint64_t user_ctx, int) {
  return with<Notifier>(__func__, "notifier", notifier, [&](Notifier& results) {
    const urma_status_t status = urma_bind_jetty(jetty, tjetty);
    if (status != URMA_SUCCESS) return status;
    urma_notify_t result{};
    result.type = URMA_BIND_JETTY_NOTIFY;
    result.user_ctx = user_ctx;
    result.jetty = jetty;
    results.add(result);
    return URMA_SUCCESS;
  });
}

int urma_wait_notify(urma_notifier_t* notifier, uint32_t cnt, urma_notify_t* notify, int timeout) {
  auto* const results = find<Notifier>(notifier);
  if (results == nullptr || (cnt > 0 && notify == nullptr)) {
    errno = refuse_null(__func__, "notifier or notify");
    return -1;
  }
  if (is_inherited(*results)) {
    errno = refuse_inherited(__func__);
    return -1;
  }
  if (cnt == 0) return 0;
  return results->wait(std::span(notify, cnt), timeout);
}

urma_status_t urma_ack_notify(urma_context_t* ctx, uint32_t cnt, urma_notify_t* notify) {
  if (find<Context>(ctx) == nullptr || (cnt > 0 && notify == nullptr)) {
    return refuse_null(__func__, "ctx or notify");
  }
  return URMA_SUCCESS;
}

}  // extern "C"
