// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "umdk/jetty.h"
#include "umdk/jfr.h"
#include "umdk/perf.h"
#include "umdk/send_options.h"
#include "umdk/target.h"
#include "umdk/two_steps.h"

using namespace urma::umdk;

namespace urma::umdk {
namespace {

constexpr size_t jetty_cfg_at = offsetof(urma_jetty_t, jetty_cfg);
constexpr auto send_fields =
    send_options(jetty_cfg_at + offsetof(urma_jetty_cfg_t, jfs_cfg),
                 offsetof(urma_jetty_t, urma_jetty_opt) + offsetof(urma_jetty_opt_t, jfs_opt));
constexpr std::array<OptionField, 6> own_fields = {{
    {URMA_JETTY_ID, jetty_cfg_at + offsetof(urma_jetty_cfg_t, id), 4},
    {URMA_JETTY_FLAG, jetty_cfg_at + offsetof(urma_jetty_cfg_t, flag), 4},
    {URMA_JETTY_BIND_JFR, jetty_cfg_at + offsetof(urma_jetty_cfg_t, shared.jfr), 8},
    {URMA_JETTY_BIND_RX_JFC, jetty_cfg_at + offsetof(urma_jetty_cfg_t, shared.jfc), 8},
    {URMA_JETTY_BIND_JTG, jetty_cfg_at + offsetof(urma_jetty_cfg_t, jetty_grp), 8},
    {URMA_JETTY_USER_CTX, jetty_cfg_at + offsetof(urma_jetty_cfg_t, user_ctx), 8},
}};
std::span<const OptionField> fields_with(uint64_t option) {
  if (field_of(own_fields, option) != nullptr) return own_fields;
  return send_fields;
}

}  // namespace

urma_status_t begin(const char* call, urma_jetty_cfg_t& cfg) {
  uint32_t order = cfg.jfs_cfg.flag.bs.order_type;
  const urma_status_t status = settle_target_order(call, cfg.jfs_cfg.trans_mode, order);
  cfg.jfs_cfg.flag.bs.order_type = order & 0xff;
  return status;
}
urma_status_t settle(const char* call, Jetty& jetty) {
  urma_jfs_cfg_t& jfs = jetty.jetty_cfg.jfs_cfg;
  uint32_t order = jfs.flag.bs.order_type;
  if (const auto status = settle_order(call, jfs.trans_mode, order)) return status;
  jfs.flag.bs.order_type = order & 0xff;
  return check(call, jetty.jetty_cfg, jetty.context());
}
urma_status_t may_end(const char* call, Jetty& jetty) {
  if (jetty.remote_jetty == nullptr) return URMA_SUCCESS;
  return refuse(URMA_ENOPERM, call, "the Jetty is bound. Fix: call urma_unbind_jetty first");
}

namespace {

urma_target_jetty_t* import(const char* call, urma_context_t* ctx, urma_rjetty_t* rjetty,
                            const urma_token_t* token) {
  return make(call, [&]() -> urma_target_jetty_t* {
    Context* const context = context_of(call, ctx);
    if (context == nullptr) return nullptr;
    if (rjetty == nullptr) return null(refuse_null(call, "rjetty"));
    if (rjetty->flag.bs.token_policy != URMA_TOKEN_NONE && token == nullptr) {
      return null(refuse_null(call, "token_value"));
    }
    if (const auto s = check_policy(call, rjetty->flag.bs.token_policy)) return null(s);
    if (const auto s = check(call, *rjetty)) return null(s);
    uint32_t order = rjetty->flag.bs.order_type;
    if (const auto s = settle_order(call, rjetty->trans_mode, order)) return null(s);
    rjetty->flag.bs.order_type = order & 0xff;
    urma_target_jetty_t described{};
    described.id = rjetty->jetty_id;
    described.trans_mode = rjetty->trans_mode;
    described.type = rjetty->type;
    described.flag = rjetty->flag;
    described.policy = rjetty->policy;
    described.tp_type = rjetty->tp_type;
    const auto target = import_target(*context, described, token);
    return target ? *target : null(refuse(call, target.error()));
  });
}

urma_status_t bind(const char* call, urma_jetty_t* given, urma_target_jetty_t* to) {
  Target* const target = find<Target>(to);
  if (target == nullptr) return refuse_null(call, "tjetty");
  return alone_with<Jetty>(call, "jetty", given, [&](Jetty& jetty) {
    if (target->urma_ctx != jetty.urma_ctx) {
      return refuse(URMA_EINVAL, call,
                    "the target was imported into another context. Fix: import it into that of the "
                    "Jetty");
    }
    const urma_jfs_cfg_t& jfs = jetty.jetty_cfg.jfs_cfg;
    if (jfs.trans_mode != URMA_TM_RC || target->trans_mode != URMA_TM_RC) {
      return refuse(URMA_ENOPERM, call,
                    "only Jetties of URMA_TM_RC are bound. Fix: choose that mode on both sides");
    }
    if (jfs.flag.bs.order_type != target->flag.bs.order_type) {
      return refuse(URMA_ENOPERM, call,
                    "the order_type of the two differs. Fix: choose the same on both sides");
    }
    if (jetty.remote_jetty != nullptr) {
      if (jetty.remote_jetty == target) return URMA_SUCCESS;
      return refuse(URMA_EEXIST, call,
                    "the Jetty is bound to another target. Fix: call urma_unbind_jetty first");
    }
    jetty.remote_jetty = target;
    target->bound.fetch_add(1);
    return URMA_SUCCESS;
  });
}

urma_status_t unbind(const char* call, urma_jetty_t* given) {
  return alone_with<Jetty>(call, "jetty", given, [&](Jetty& jetty) {
    if (jetty.jetty_cfg.jfs_cfg.trans_mode != URMA_TM_RC || jetty.remote_jetty == nullptr) {
      return refuse(jetty.remote_jetty == nullptr ? URMA_EINVAL : URMA_ENOPERM, call,
                    "the Jetty is not bound. Fix: leave the call out");
    }
    if (Target* const target = find<Target>(jetty.remote_jetty)) target->bound.fetch_sub(1);
    jetty.remote_jetty = nullptr;
    return URMA_SUCCESS;
  });
}

}  // namespace
}  // namespace urma::umdk

extern "C" {

urma_jetty_t* urma_create_jetty(urma_context_t* ctx, urma_jetty_cfg_t* jetty_cfg) {
  return create<Jetty>(__func__, ctx, jetty_cfg);
}

urma_status_t urma_modify_jetty(urma_jetty_t* jetty, urma_jetty_attr_t* attr) {
  if (attr == nullptr) return refuse_null(__func__, "attr");
  return with<Jetty>(__func__, "jetty", jetty, [&](Jetty& object) {
    if (!object.active()) return wrong_state("urma_modify_jetty", false);
    Jfr& receives = *find<Jfr>(object.jetty_cfg.shared.jfr);
    if (const auto s = check("urma_modify_jetty", *attr, receives.jfr_cfg)) return s;
    if ((attr->mask & JETTY_STATE) != 0) {
      if (const auto s = object.sender->change("urma_modify_jetty", attr->state)) return s;
    }
    if ((attr->mask & JETTY_RX_THRESHOLD) != 0) receives.warn_below(attr->rx_threshold);
    return URMA_SUCCESS;
  });
}

urma_status_t urma_query_jetty(urma_jetty_t* jetty, urma_jetty_cfg_t* cfg,
                               urma_jetty_attr_t* attr) {
  if (cfg == nullptr || attr == nullptr) return refuse_null(__func__, "cfg or attr");
  return with<Jetty>(__func__, "jetty", jetty, [&](Jetty& object) {
    *cfg = object.jetty_cfg;
    const Jfr* const jfr = object.active() ? find<Jfr>(object.jetty_cfg.shared.jfr) : nullptr;
    *attr = {.mask = JETTY_STATE | JETTY_RX_THRESHOLD,
             .rx_threshold = jfr != nullptr ? jfr->threshold() : 0,
             .state = object.active() ? object.sender->state() : URMA_JETTY_STATE_RESET};
    return URMA_SUCCESS;
  });
}

urma_status_t urma_delete_jetty(urma_jetty_t* jetty) { return remove<Jetty>(__func__, jetty); }

urma_status_t urma_delete_jetty_batch(urma_jetty_t** jetty_arr, int jetty_num,
                                      urma_jetty_t** bad_jetty) {
  return delete_all(__func__, jetty_arr, jetty_num, bad_jetty, urma_delete_jetty);
}

urma_target_jetty_t* urma_import_jetty(urma_context_t* ctx, urma_rjetty_t* rjetty,
                                       urma_token_t* token_value) {
  return import(__func__, ctx, rjetty, token_value);
}

urma_target_jetty_t* urma_import_jetty_ex(urma_context_t* ctx, urma_rjetty_t* rjetty,
                                          urma_token_t* token_value,
                                          urma_import_jetty_ex_cfg_t* cfg) {
  if (cfg == nullptr) return null(refuse_null(__func__, "cfg"));
  return import(__func__, ctx, rjetty, token_value);
}

urma_status_t urma_unimport_jetty(urma_target_jetty_t* tjetty) {
  return unimport_target(__func__, tjetty);
}

urma_status_t urma_advise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty) {
  const Jetty* const from = find<Jetty>(jetty);
  const Target* const to = find<Target>(tjetty);
  if (from == nullptr || to == nullptr) return refuse_null(__func__, "jetty or tjetty");
  return check_advice(__func__, from->jetty_cfg.jfs_cfg.trans_mode, to->trans_mode);
}

urma_status_t urma_unadvise_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty) {
  if (find<Jetty>(jetty) == nullptr || find<Target>(tjetty) == nullptr) {
    return refuse_null(__func__, "jetty or tjetty");
  }
  return URMA_SUCCESS;
}

urma_status_t urma_bind_jetty(urma_jetty_t* jetty, urma_target_jetty_t* tjetty) {
  return bind(__func__, jetty, tjetty);
}

urma_status_t urma_bind_jetty_ex(urma_jetty_t* jetty, urma_target_jetty_t* tjetty,
                                 urma_bind_jetty_ex_cfg_t* cfg) {
  if (cfg == nullptr) return refuse_null(__func__, "cfg");
  return bind(__func__, jetty, tjetty);
}

urma_status_t urma_unbind_jetty(urma_jetty_t* jetty) { return unbind(__func__, jetty); }

int urma_flush_jetty(urma_jetty_t* jetty, int cr_cnt, urma_cr_t* cr) {
  const Jetty* const object = find<Jetty>(jetty);
  if (object == nullptr || cr == nullptr) return -refuse_null(__func__, "jetty or cr");
  return -check_records(__func__, cr_cnt, object->jetty_cfg.jfs_cfg.depth);
}

urma_status_t urma_get_rjetty(urma_jetty_t* jetty, urma_rjetty_t** rjetty, uint32_t* length) {
  if (rjetty == nullptr || length == nullptr) return refuse_null(__func__, "rjetty or length");
  return with<Jetty>(__func__, "jetty", jetty, [&](Jetty& object) {
    if (!object.active()) return wrong_state("urma_get_rjetty", false);
    auto* const made = static_cast<urma_rjetty_t*>(std::calloc(1, sizeof(urma_rjetty_t)));
    if (made == nullptr) throw std::bad_alloc();
    made->jetty_id = object.jetty_id;
    made->trans_mode = object.jetty_cfg.jfs_cfg.trans_mode;
    made->type = URMA_JETTY;
    made->flag.bs.token_policy = object.jetty_cfg.shared.jfr->jfr_cfg.flag.bs.token_policy & 7;
    made->flag.bs.order_type = object.jetty_cfg.jfs_cfg.flag.bs.order_type & 0xff;
    made->tp_type = made->trans_mode == URMA_TM_UM ? URMA_UTP : URMA_RTP;
    *rjetty = made;
    *length = sizeof(urma_rjetty_t);
    return URMA_SUCCESS;
  });
}

void urma_put_rjetty(urma_rjetty_t* rjetty) { std::free(rjetty); }

urma_status_t urma_alloc_jetty(urma_context_t* urma_ctx, urma_jetty_cfg_t* cfg,
                               urma_jetty_t** jetty) {
  return allocate<Jetty>(__func__, urma_ctx, cfg, jetty);
}

urma_status_t urma_set_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len) {
  return with<Jetty>(__func__, "jetty", jetty, [&](Jetty& object) {
    if (object.active()) return wrong_state("urma_set_jetty_opt", true);
    return set_option("urma_set_jetty_opt", static_cast<urma_jetty_t*>(&object), fields_with(opt),
                      opt, buf, len, &object.urma_jetty_opt.jfs_opt.jfs_opt_mask.value);
  });
}

urma_status_t urma_get_jetty_opt(urma_jetty_t* jetty, uint64_t opt, void* buf, uint32_t len) {
  return with<Jetty>(__func__, "jetty", jetty, [&](Jetty& object) {
    return get_option("urma_get_jetty_opt", static_cast<urma_jetty_t*>(&object), fields_with(opt),
                      opt, buf, len);
  });
}

urma_status_t urma_active_jetty(urma_jetty_t* jetty) {
  return alone_with<Jetty>(__func__, "jetty", jetty,
                           [](Jetty& object) { return activate("urma_active_jetty", object); });
}

urma_status_t urma_deactive_jetty(urma_jetty_t* jetty) {
  return alone_with<Jetty>(__func__, "jetty", jetty,
                           [](Jetty& object) { return deactivate("urma_deactive_jetty", object); });
}

urma_status_t urma_free_jetty(urma_jetty_t* jetty) { return release<Jetty>(__func__, jetty); }

urma_status_t urma_post_jetty_send_wr(urma_jetty_t* jetty, urma_jfs_wr_t* wr,
                                      urma_jfs_wr_t** bad_wr) {
  const Measured call(UB_JETTY_POST_SEND);
  const KeptErrno kept;
  Jetty* object = nullptr;
  if (const auto status = begin_post(often(__func__), jetty, wr, bad_wr, object)) return status;
  return object->sender->post(__func__, wr, object->remote_jetty, bad_wr);
}

urma_status_t urma_post_jetty_recv_wr(urma_jetty_t* jetty, urma_jfr_wr_t* wr,
                                      urma_jfr_wr_t** bad_wr) {
  const Measured call(UB_JETTY_POST_RECV);
  const KeptErrno kept;
  Jetty* object = nullptr;
  if (const auto status = begin_post(often(__func__), jetty, wr, bad_wr, object)) return status;
  return find<Jfr>(object->jetty_cfg.shared.jfr)->post(__func__, wr, bad_wr);
}

urma_status_t urma_unimport_jetty_async(urma_target_jetty_t* tjetty) {
  return unimport_target(__func__, tjetty);
}

urma_status_t urma_unbind_jetty_async(urma_jetty_t* jetty) { return unbind(__func__, jetty); }

}  // extern "C"
