// SPDX-License-Identifier: Apache-2.0
#include "umdk/calls.h"
#include "umdk/checks.h"
#include "umdk/group.h"

using namespace urma::umdk;

namespace urma::umdk {
namespace {

Group* make_group(const char* call, Context& context, const urma_jetty_grp_cfg_t& cfg) {
  if (const auto status = check(call, cfg); status != URMA_SUCCESS) return null(status);
  JettyGroupOptions options{.policy = cfg.policy == URMA_JETTY_GRP_POLICY_RR
                                          ? GroupPolicy::round_robin
                                          : GroupPolicy::hint,
                            .token = token_of(cfg.flag.bs.token_policy, cfg.token_value)};
  const std::lock_guard held(context.numbers());
  auto made = context.with_number(cfg.id, true, [&](std::optional<JettyId> id) {
    options.id = id;
    return context.device.jetty_group(options);
  });
  if (!made) return null(refuse(call, made.error()));
  context.be_found(without_group_bit(made->id()), *made);
  return Pool<Group>::make(context, cfg, std::move(*made));
}

}  // namespace
}  // namespace urma::umdk

extern "C" {

urma_jetty_grp_t* urma_create_jetty_grp(urma_context_t* ctx, urma_jetty_grp_cfg_t* cfg) {
  return make(__func__, [&]() -> Group* {
    const char* const call = "urma_create_jetty_grp";
    Context* const context = context_of(call, ctx);
    if (context == nullptr) return nullptr;
    if (cfg == nullptr) return null(refuse_null(call, "cfg"));
    return make_group(call, *context, *cfg);
  });
}

urma_status_t urma_delete_jetty_grp(urma_jetty_grp_t* jetty_grp) {
  return end_object<Group>(__func__, "jetty_grp", jetty_grp, [&](Group& group) {
    const uint32_t members = group.count();
    if (members > 0) {
      return refuse(URMA_ENOPERM, "urma_delete_jetty_grp",
                    "the group has %u members. Fix: delete these Jetties first", members);
    }
    Pool<Group>::destroy(&group);
    return URMA_SUCCESS;
  });
}

}  // extern "C"
