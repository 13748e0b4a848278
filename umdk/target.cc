// SPDX-License-Identifier: Apache-2.0
#include "umdk/target.h"

#include "umdk/calls.h"

namespace urma::umdk {

Target::Target(Context& context, const urma_target_jetty_t& described)
    : urma_target_jetty_t(described) {
  urma_ctx = &context;
  context.hold();
}

Target::~Target() { context().let_go(); }

namespace {

// Only a ping looks for the process that answers it.
bool is_for_pings(const urma_jetty_id_t& id, urma_target_type_t type) {
  return id.uasid == 0 && type == URMA_JETTY && id.id == number(ping_jetty);
}

}  // namespace

Result<Target*> import_target(Context& context, const urma_target_jetty_t& described,
                              const urma_token_t* token) {
  const uint32_t as_of = context.losses();
  const Place place = place_of(described.id);
  const bool pings = is_for_pings(described.id, described.type);
  const auto peer = pings ? context.pinged_at(described.id.eid) : context.peer_at(place);
  if (!peer) return peer.error();
  auto* const target = Pool<Target>::make(context, described);
  pings ? target->peer.set(*peer) : target->peer.set(place, *peer, as_of);
  target->id = id_of_target(described);
  if (described.flag.bs.token_policy != URMA_TOKEN_NONE && token != nullptr) {
    target->token = TokenValue(token->token);
  }
  target->tp.tpn = channel_number(*peer);
  return target;
}

urma_status_t unimport_target(const char* call, urma_target_jetty_t* given) {
  return end_object<Target>(call, "the target", given, [&](Target& target) {
    if (target.bound.load() > 0) {
      return refuse(URMA_FAIL, call, "a Jetty is bound to it. Fix: call urma_unbind_jetty first");
    }
    Pool<Target>::destroy(&target);
    return URMA_SUCCESS;
  });
}

}  // namespace urma::umdk
