// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "umdk/jfc.h"
#include "umdk/jfce.h"
#include "umdk/options.h"
#include "umdk/perf.h"
#include "umdk/two_steps.h"

using namespace urma::umdk;

namespace urma::umdk {
namespace {

constexpr size_t jfc_cfg_at = offsetof(urma_jfc_t, jfc_cfg);
constexpr size_t jfc_opt_at = offsetof(urma_jfc_t, urma_jfc_opt);
constexpr std::array<OptionField, 12> jfc_fields = {{
    {URMA_JFC_DEPTH, jfc_cfg_at + offsetof(urma_jfc_cfg_t, depth), 4},
    {URMA_JFC_CEQN, jfc_cfg_at + offsetof(urma_jfc_cfg_t, ceqn), 4},
    {URMA_JFC_FLAG, jfc_cfg_at + offsetof(urma_jfc_cfg_t, flag), 4},
    {URMA_JFC_BIND_JFCE, jfc_cfg_at + offsetof(urma_jfc_cfg_t, jfce), 8},
    {URMA_JFC_USER_CTX, jfc_cfg_at + offsetof(urma_jfc_cfg_t, user_ctx), 8},
    {URMA_JFC_CQE_BASE_ADDR, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_cqe_base_addr), 8,
     URMA_JFC_CQE_BASE_ADDR_MASK},
    {URMA_JFC_ID, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_id), 4, URMA_JFC_ID_MASK},
    {URMA_JFC_DB_ADDR, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_db_addr), 8,
     URMA_JFC_DB_ADDR_MASK},
    {URMA_JFC_DB_STATUS, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_db_status), 1,
     URMA_JFC_DB_STATUS_MASK},
    {URMA_JFC_PI, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_pi), 2, URMA_JFC_PI_MASK},
    {URMA_JFC_PI_TYPE, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_pi_type), 2,
     URMA_JFC_PI_TYPE_MASK},
    {URMA_JFC_CI, jfc_opt_at + offsetof(urma_jfc_opt_t, urma_jfc_ci), 2, URMA_JFC_CI_MASK},
}};

}  // namespace

urma_status_t begin(const char*, urma_jfc_cfg_t&) { return URMA_SUCCESS; }
urma_status_t settle(const char* call, Jfc& jfc) { return check(call, jfc.jfc_cfg, jfc.context()); }
urma_status_t may_end(const char* call, Jfc& jfc) {
  if (!jfc.is_used()) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call, "queues complete there. Fix: delete them first");
}

}  // namespace urma::umdk

extern "C" {

urma_jfce_t* urma_create_jfce(urma_context_t* ctx) {
  return make("urma_create_jfce", [&]() -> urma_jfce_t* {
    Context* const context = context_of("urma_create_jfce", ctx);
    if (context == nullptr) return nullptr;
    auto made = context->device.jfce();
    if (!made) return null(refuse("urma_create_jfce", made.error()));
    auto* const jfce = Pool<Jfce>::make(*context, std::move(*made));
    context->hold();
    return jfce;
  });
}

urma_status_t urma_delete_jfce(urma_jfce_t* jfce) {
  return end_object<Jfce>(__func__, "jfce", jfce, [](Jfce& events) {
    if (events.ref.atomic_cnt.load() > 1) {
      return refuse(URMA_FAIL, "urma_delete_jfce", "JFCs use it. Fix: delete these first");
    }
    auto* const context = static_cast<Context*>(events.urma_ctx);
    Pool<Jfce>::destroy(&events);
    context->let_go();
    return URMA_SUCCESS;
  });
}

urma_jfc_t* urma_create_jfc(urma_context_t* ctx, urma_jfc_cfg_t* jfc_cfg) {
  return create<Jfc>(__func__, ctx, jfc_cfg);
}

urma_status_t urma_modify_jfc(urma_jfc_t* jfc, urma_jfc_attr_t* attr) {
  if (attr == nullptr) return refuse_null(__func__, "attr");
  // An armed JFC raises one event, at its first record. URPC asks for exactly that (a count of 1),
  // and programs that ask for fewer events get it, too: each waits again only after it has rearmed.
  return with<Jfc>(__func__, "jfc", jfc, [&](Jfc&) { return check("urma_modify_jfc", *attr); });
}

urma_status_t urma_delete_jfc(urma_jfc_t* jfc) { return remove<Jfc>(__func__, jfc); }

urma_status_t urma_delete_jfc_batch(urma_jfc_t** jfc_arr, int jfc_num, urma_jfc_t** bad_jfc) {
  return delete_all(__func__, jfc_arr, jfc_num, bad_jfc, urma_delete_jfc);
}

urma_status_t urma_alloc_jfc(urma_context_t* urma_ctx, urma_jfc_cfg_t* config, urma_jfc_t** jfc) {
  return allocate<Jfc>(__func__, urma_ctx, config, jfc);
}

urma_status_t urma_set_jfc_opt(urma_jfc_t* jfc, uint64_t option, void* buf, uint32_t len) {
  return with<Jfc>(__func__, "jfc", jfc, [&](Jfc& queue) {
    if (queue.active()) return wrong_state("urma_set_jfc_opt", true);
    return set_option("urma_set_jfc_opt", static_cast<urma_jfc_t*>(&queue), jfc_fields, option, buf,
                      len, &queue.urma_jfc_opt.jfc_opt_mask.value);
  });
}

urma_status_t urma_get_jfc_opt(urma_jfc_t* jfc, uint64_t option, void* buf, uint32_t len) {
  return with<Jfc>(__func__, "jfc", jfc, [&](Jfc& queue) {
    return get_option("urma_get_jfc_opt", static_cast<urma_jfc_t*>(&queue), jfc_fields, option, buf,
                      len);
  });
}

urma_status_t urma_active_jfc(urma_jfc_t* jfc) {
  return alone_with<Jfc>(__func__, "jfc", jfc,
                         [](Jfc& queue) { return activate("urma_active_jfc", queue); });
}

urma_status_t urma_deactive_jfc(urma_jfc_t* jfc) {
  return alone_with<Jfc>(__func__, "jfc", jfc,
                         [](Jfc& queue) { return deactivate("urma_deactive_jfc", queue); });
}

urma_status_t urma_free_jfc(urma_jfc_t* jfc) { return release<Jfc>(__func__, jfc); }

int urma_poll_jfc(urma_jfc_t* jfc, int cr_cnt, urma_cr_t* cr) {
  const Measured call(UB_POLL_JFC);
  const KeptErrno kept;
  Jfc* const queue = find<Jfc>(jfc);
  if (queue == nullptr || cr_cnt < 0 || cr == nullptr || !queue->active()) {
    refuse_null(often(__func__), "jfc or cr");
    return -1;
  }
  if (is_inherited(*queue)) [[unlikely]] {
    refuse_inherited(often(__func__));
    return -1;
  }
  return queue->poll(std::span(cr, static_cast<size_t>(cr_cnt)));
}

urma_status_t urma_rearm_jfc(urma_jfc_t* jfc, bool solicited_only) {
  const Measured call(UB_REARM_JFC);
  return with<Jfc>(often(__func__), "jfc", jfc, [&](Jfc& queue) {
    if (!queue.active()) return wrong_state(often("urma_rearm_jfc"), false);
    const auto armed = queue.arm(solicited_only);
    return armed ? URMA_SUCCESS : refuse(often("urma_rearm_jfc"), armed.error());
  });
}

int urma_wait_jfc(urma_jfce_t* jfce, uint32_t jfc_cnt, int time_out, urma_jfc_t* jfc[]) {
  const Measured call(UB_WAIT_JFC);
  Jfce* const events = find<Jfce>(jfce);
  if (events == nullptr || jfc_cnt == 0 || jfc == nullptr) {
    refuse_null(often(__func__), "jfce or jfc");
    return -1;
  }
  if (is_inherited(*events)) {
    refuse_inherited(often(__func__));
    return -1;
  }
  return events->wait(jfc, jfc_cnt, time_out);
}

void urma_ack_jfc(urma_jfc_t* jfc[], uint32_t nevents[], uint32_t jfc_cnt) {
  const Measured call(UB_ACK_JFC);
  if (jfc == nullptr || nevents == nullptr) return;
  for (uint32_t i = 0; i < jfc_cnt; ++i) {
    Jfc* const queue = find<Jfc>(jfc[i]);
    if (queue != nullptr) std::atomic_ref(queue->comp_events_acked).fetch_add(nevents[i]);
  }
}

}  // extern "C"
