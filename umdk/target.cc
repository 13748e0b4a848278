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

Result<RemoteJetty> find_target(Context& context, const urma_target_jetty_t& described,
                                const urma_token_t* token) {
  const bool by_eid = described.id.uasid == 0 && described.type == URMA_JETTY;
  const auto peer = by_eid && described.id.id == number(ping_jetty)
                        ? context.pinged_at(described.id.eid)
                        : context.peer_at(place_of(described.id));
  if (!peer) return peer.error();
  const bool none = described.flag.bs.token_policy == URMA_TOKEN_NONE || token == nullptr;
  return RemoteJetty{
      .peer = *peer, .id = id_of_target(described), .token = TokenValue(none ? 0 : token->token)};
}

}  // namespace

Result<Target*> import_target(Context& context, const urma_target_jetty_t& described,
                              const urma_token_t* token) {
  const auto remote = find_target(context, described, token);
  if (!remote) return remote.error();
  auto* const target = Pool<Target>::make(context, described);
  target->remote = *remote;
  target->tp.tpn = channel_number(remote->peer);
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
