// SPDX-License-Identifier: Apache-2.0
#include "umdk/jfr.h"
#include "umdk/options.h"
#include "umdk/perf.h"
#include "umdk/target.h"
#include "umdk/two_steps.h"

using namespace urma::umdk;

namespace urma::umdk {
namespace {

constexpr size_t jfr_cfg_at = offsetof(urma_jfr_t, jfr_cfg);
constexpr size_t jfr_opt_at = offsetof(urma_jfr_t, urma_jfr_opt);
constexpr std::array<OptionField, 15> jfr_fields = {{
    {URMA_JFR_DEPTH, jfr_cfg_at + offsetof(urma_jfr_cfg_t, depth), 4},
    {URMA_JFR_FLAG, jfr_cfg_at + offsetof(urma_jfr_cfg_t, flag), 4},
    {URMA_JFR_TRANS_MODE, jfr_cfg_at + offsetof(urma_jfr_cfg_t, trans_mode), 4},
    {URMA_JFR_MAX_SGE, jfr_cfg_at + offsetof(urma_jfr_cfg_t, max_sge), 1},
    {URMA_JFR_MIN_RNR_TIMER, jfr_cfg_at + offsetof(urma_jfr_cfg_t, min_rnr_timer), 1},
    {URMA_JFR_BIND_JFC, jfr_cfg_at + offsetof(urma_jfr_cfg_t, jfc), 8},
    {URMA_JFR_TOKEN_VALUE, jfr_cfg_at + offsetof(urma_jfr_cfg_t, token_value), 4},
    {URMA_JFR_USER_CTX, jfr_cfg_at + offsetof(urma_jfr_cfg_t, user_ctx), 8},
    {URMA_JFR_RQE_BASE_ADDR, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_rqe_base_addr), 8,
     URMA_JFR_RQE_BASE_ADDR_MASK},
    {URMA_JFR_ID, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_id), 4, URMA_JFR_ID_MASK},
    {URMA_JFR_DB_ADDR, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_db_addr), 8,
     URMA_JFR_DB_ADDR_MASK},
    {URMA_JFR_DB_STATUS, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_db_status), 1,
     URMA_JFR_DB_STATUS_MASK},
    {URMA_JFR_PI, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_pi), 2, URMA_JFR_PI_MASK},
    {URMA_JFR_PI_TYPE, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_pi_type), 2,
     URMA_JFR_PI_TYPE_MASK},
    {URMA_JFR_CI, jfr_opt_at + offsetof(urma_jfr_opt_t, urma_jfr_ci), 2, URMA_JFR_CI_MASK},
}};

}  // namespace

urma_status_t begin(const char* call, urma_jfr_cfg_t& cfg) {
  if (cfg.jfc == nullptr) return refuse_null(call, "cfg.jfc");
  uint32_t order = cfg.flag.bs.order_type;
  const urma_status_t status = settle_target_order(call, cfg.trans_mode, order);
  cfg.flag.bs.order_type = order & 0xff;
  return status;
}
urma_status_t settle(const char* call, Jfr& jfr) {
  uint32_t order = jfr.jfr_cfg.flag.bs.order_type;
  if (const auto status = settle_target_order(call, jfr.jfr_cfg.trans_mode, order)) return status;
  jfr.jfr_cfg.flag.bs.order_type = order & 0xff;
  return check(call, jfr.jfr_cfg, jfr.context());
}
urma_status_t may_end(const char* call, Jfr& jfr) {
  if (!jfr.is_used()) return URMA_SUCCESS;
  return refuse(URMA_EINVAL, call, "Jetties use it. Fix: delete these first");
}

namespace {

urma_status_t change(const char* call, Jfr& jfr, const urma_jfr_attr_t& attr) {
  if (const auto status = check(call, attr, jfr.jfr_cfg)) return status;
  const bool changes_state = (attr.mask & JFR_STATE) != 0;
  if (changes_state && !jfr.active()) return wrong_state(call, false);
  if (changes_state) {
    if (const auto status = jfr.change(call, attr.state)) return status;
  }
  if ((attr.mask & JFR_RX_THRESHOLD) != 0) jfr.warn_below(attr.rx_threshold);
  return URMA_SUCCESS;
}

urma_target_jetty_t* import(const char* call, urma_context_t* ctx, urma_rjfr_t* rjfr,
                            const urma_token_t* token) {
  return make(call, [&]() -> urma_target_jetty_t* {
    Context* const context = context_of(call, ctx);
    if (context == nullptr) return nullptr;
    if (rjfr == nullptr) return null(refuse_null(call, "rjfr"));
    if (rjfr->flag.bs.token_policy != URMA_TOKEN_NONE && token == nullptr) {
      return null(refuse_null(call, "token_value"));
    }
    if (const auto status = check_policy(call, rjfr->flag.bs.token_policy)) return null(status);
    if (const auto status = check(call, *rjfr)) return null(status);
    uint32_t order = rjfr->flag.bs.order_type;
    if (const auto status = settle_target_order(call, rjfr->trans_mode, order)) return null(status);
    rjfr->flag.bs.order_type = order & 0xff;
    urma_target_jetty_t described{};
    described.id = rjfr->jfr_id;
    described.trans_mode = rjfr->trans_mode;
    described.type = URMA_JFR;
    described.flag = rjfr->flag;
    described.tp_type = rjfr->tp_type;
    const auto target = import_target(*context, described, token);
    return target ? *target : null(refuse(call, target.error()));
  });
}

}  // namespace
}  // namespace urma::umdk

extern "C" {

urma_jfr_t* urma_create_jfr(urma_context_t* ctx, urma_jfr_cfg_t* jfr_cfg) {
  return create<Jfr>(__func__, ctx, jfr_cfg);
}

urma_status_t urma_modify_jfr(urma_jfr_t* jfr, urma_jfr_attr_t* attr) {
  if (attr == nullptr) return refuse_null(__func__, "attr");
  return with<Jfr>(__func__, "jfr", jfr,
                   [&](Jfr& queue) { return change("urma_modify_jfr", queue, *attr); });
}

urma_status_t urma_query_jfr(urma_jfr_t* jfr, urma_jfr_cfg_t* cfg, urma_jfr_attr_t* attr) {
  if (cfg == nullptr || attr == nullptr) return refuse_null(__func__, "cfg or attr");
  return with<Jfr>(__func__, "jfr", jfr, [&](Jfr& queue) {
    *cfg = queue.jfr_cfg;
    *attr = {.mask = JFR_STATE | JFR_RX_THRESHOLD,
             .rx_threshold = queue.threshold(),
             .state = queue.state()};
    return URMA_SUCCESS;
  });
}

urma_status_t urma_delete_jfr(urma_jfr_t* jfr) { return remove<Jfr>(__func__, jfr); }

urma_status_t urma_delete_jfr_batch(urma_jfr_t** jfr_arr, int jfr_num, urma_jfr_t** bad_jfr) {
  return delete_all(__func__, jfr_arr, jfr_num, bad_jfr, urma_delete_jfr);
}

urma_target_jetty_t* urma_import_jfr(urma_context_t* ctx, urma_rjfr_t* rjfr,
                                     urma_token_t* token_value) {
  return import(__func__, ctx, rjfr, token_value);
}

urma_target_jetty_t* urma_import_jfr_ex(urma_context_t* ctx, urma_rjfr_t* rjfr,
                                        urma_token_t* token_value, urma_import_jfr_ex_cfg_t* cfg) {
  if (cfg == nullptr) return null(refuse_null(__func__, "cfg"));
  return import(__func__, ctx, rjfr, token_value);
}

urma_status_t urma_unimport_jfr(urma_target_jetty_t* target_jfr) {
  return unimport_target(__func__, target_jfr);
}

urma_status_t urma_alloc_jfr(urma_context_t* urma_ctx, urma_jfr_cfg_t* cfg, urma_jfr_t** jfr) {
  return allocate<Jfr>(__func__, urma_ctx, cfg, jfr);
}

urma_status_t urma_set_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len) {
  return with<Jfr>(__func__, "jfr", jfr, [&](Jfr& queue) {
    if (queue.active()) return wrong_state("urma_set_jfr_opt", true);
    return set_option("urma_set_jfr_opt", static_cast<urma_jfr_t*>(&queue), jfr_fields, opt, buf,
                      len, &queue.urma_jfr_opt.jfr_opt_mask.value);
  });
}

urma_status_t urma_get_jfr_opt(urma_jfr_t* jfr, uint64_t opt, void* buf, uint32_t len) {
  return with<Jfr>(__func__, "jfr", jfr, [&](Jfr& queue) {
    return get_option("urma_get_jfr_opt", static_cast<urma_jfr_t*>(&queue), jfr_fields, opt, buf,
                      len);
  });
}

urma_status_t urma_active_jfr(urma_jfr_t* jfr) {
  return alone_with<Jfr>(__func__, "jfr", jfr,
                         [](Jfr& queue) { return activate("urma_active_jfr", queue); });
}

urma_status_t urma_deactive_jfr(urma_jfr_t* jfr) {
  return alone_with<Jfr>(__func__, "jfr", jfr,
                         [](Jfr& queue) { return deactivate("urma_deactive_jfr", queue); });
}

urma_status_t urma_free_jfr(urma_jfr_t* jfr) { return release<Jfr>(__func__, jfr); }

urma_status_t urma_post_jfr_wr(urma_jfr_t* jfr, urma_jfr_wr_t* wr, urma_jfr_wr_t** bad_wr) {
  const Measured call(UB_POST_JFR_RECV);
  const KeptErrno kept;
  Jfr* queue = nullptr;
  if (const auto status = begin_post(often(__func__), jfr, wr, bad_wr, queue)) return status;
  return queue->post(__func__, wr, bad_wr);
}

urma_status_t urma_recv(urma_jfr_t* jfr, urma_target_seg_t* recv_tseg, uint64_t buf, uint32_t len,
                        uint64_t user_ctx) {
  urma_sge_t range{.addr = buf, .len = len, .tseg = recv_tseg, .user_tseg = nullptr};
  urma_jfr_wr_t wr{.src = {&range, 1}, .user_ctx = user_ctx, .next = nullptr};
  urma_jfr_wr_t* bad = nullptr;
  return urma_post_jfr_wr(jfr, &wr, &bad);
}

}  // extern "C"
