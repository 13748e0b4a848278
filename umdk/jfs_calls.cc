// SPDX-License-Identifier: Apache-2.0
#include "umdk/jetty.h"
#include "umdk/perf.h"
#include "umdk/send_options.h"
#include "umdk/target.h"
#include "umdk/two_steps.h"

using namespace urma::umdk;

namespace urma::umdk {
namespace {

constexpr auto jfs_fields =
    send_options(offsetof(urma_jfs_t, jfs_cfg), offsetof(urma_jfs_t, urma_jfs_opt));

}  // namespace

urma_status_t begin(const char* call, urma_jfs_cfg_t& cfg) {
  if (cfg.jfc == nullptr) return refuse_null(call, "cfg.jfc");
  uint32_t order = cfg.flag.bs.order_type;
  const urma_status_t status = settle_target_order(call, cfg.trans_mode, order);
  cfg.flag.bs.order_type = order & 0xff;
  return status;
}
urma_status_t settle(const char* call, Jfs& jfs) {
  uint32_t order = jfs.jfs_cfg.flag.bs.order_type;
  if (const auto status = settle_order(call, jfs.jfs_cfg.trans_mode, order)) return status;
  jfs.jfs_cfg.flag.bs.order_type = order & 0xff;
  return check(call, jfs.jfs_cfg, jfs.context());
}
urma_status_t may_end(const char*, Jfs&) { return URMA_SUCCESS; }

namespace {

// Builds a work of one local and one remote range, and posts it.
struct FlatWork {
  urma_sge_t local{};
  urma_sge_t remote{};
  urma_jfs_wr_t wr{};

  FlatWork(urma_opcode_t opcode, urma_target_jetty_t* target, urma_jfs_wr_flag_t flag,
           uint64_t user_ctx) {
    wr.opcode = opcode;
    wr.flag = flag;
    wr.tjetty = target;
    wr.user_ctx = user_ctx;
  }
  urma_status_t post(urma_jfs_t* jfs) {
    urma_jfs_wr_t* bad = nullptr;
    return urma_post_jfs_wr(jfs, &wr, &bad);
  }
};

urma_sge_t range(uint64_t address, uint32_t bytes, urma_target_seg_t* segment) {
  return {.addr = address, .len = bytes, .tseg = segment, .user_tseg = nullptr};
}

}  // namespace
}  // namespace urma::umdk

extern "C" {

urma_jfs_t* urma_create_jfs(urma_context_t* ctx, urma_jfs_cfg_t* jfs_cfg) {
  return create<Jfs>(__func__, ctx, jfs_cfg);
}

urma_status_t urma_modify_jfs(urma_jfs_t* jfs, urma_jfs_attr_t* attr) {
  if (attr == nullptr) return refuse_null(__func__, "attr");
  return with<Jfs>(__func__, "jfs", jfs, [&](Jfs& queue) {
    if (!queue.active()) return wrong_state("urma_modify_jfs", false);
    if (const auto status = check("urma_modify_jfs", *attr)) return status;
    return queue.sender->change("urma_modify_jfs", attr->state);
  });
}

urma_status_t urma_query_jfs(urma_jfs_t* jfs, urma_jfs_cfg_t* cfg, urma_jfs_attr_t* attr) {
  if (cfg == nullptr || attr == nullptr) return refuse_null(__func__, "cfg or attr");
  return with<Jfs>(__func__, "jfs", jfs, [&](Jfs& queue) {
    *cfg = queue.jfs_cfg;
    *attr = {.mask = JFS_STATE,
             .state = queue.active() ? queue.sender->state() : URMA_JETTY_STATE_RESET};
    return URMA_SUCCESS;
  });
}

urma_status_t urma_delete_jfs(urma_jfs_t* jfs) { return remove<Jfs>(__func__, jfs); }

urma_status_t urma_delete_jfs_batch(urma_jfs_t** jfs_arr, int jfs_num, urma_jfs_t** bad_jfs) {
  return delete_all(__func__, jfs_arr, jfs_num, bad_jfs, urma_delete_jfs);
}

int urma_flush_jfs(urma_jfs_t* jfs, int cr_cnt, urma_cr_t* cr) {
  const Jfs* const queue = find<Jfs>(jfs);
  if (queue == nullptr || cr == nullptr) return -refuse_null(__func__, "jfs or cr");
  return -check_records(__func__, cr_cnt, queue->jfs_cfg.depth);
}

urma_status_t urma_alloc_jfs(urma_context_t* urma_ctx, urma_jfs_cfg_t* cfg, urma_jfs_t** jfs) {
  return allocate<Jfs>(__func__, urma_ctx, cfg, jfs);
}

urma_status_t urma_set_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len) {
  return with<Jfs>(__func__, "jfs", jfs, [&](Jfs& queue) {
    if (queue.active()) return wrong_state("urma_set_jfs_opt", true);
    return set_option("urma_set_jfs_opt", static_cast<urma_jfs_t*>(&queue), jfs_fields, opt, buf,
                      len, &queue.urma_jfs_opt.jfs_opt_mask.value);
  });
}

urma_status_t urma_get_jfs_opt(urma_jfs_t* jfs, uint64_t opt, void* buf, uint32_t len) {
  return with<Jfs>(__func__, "jfs", jfs, [&](Jfs& queue) {
    return get_option("urma_get_jfs_opt", static_cast<urma_jfs_t*>(&queue), jfs_fields, opt, buf,
                      len);
  });
}

urma_status_t urma_active_jfs(urma_jfs_t* jfs) {
  return alone_with<Jfs>(__func__, "jfs", jfs,
                         [](Jfs& queue) { return activate("urma_active_jfs", queue); });
}

urma_status_t urma_deactive_jfs(urma_jfs_t* jfs) {
  return alone_with<Jfs>(__func__, "jfs", jfs,
                         [](Jfs& queue) { return deactivate("urma_deactive_jfs", queue); });
}

urma_status_t urma_free_jfs(urma_jfs_t* jfs) { return release<Jfs>(__func__, jfs); }

urma_status_t urma_post_jfs_wr(urma_jfs_t* jfs, urma_jfs_wr_t* wr, urma_jfs_wr_t** bad_wr) {
  const Measured call(UB_JFS_POST_SEND);
  const KeptErrno kept;
  Jfs* queue = nullptr;
  if (const auto status = begin_post(often(__func__), jfs, wr, bad_wr, queue)) return status;
  return queue->sender->post(__func__, wr, nullptr, bad_wr);
}

urma_status_t urma_write(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                         urma_target_seg_t* dst_tseg, urma_target_seg_t* src_tseg, uint64_t dst,
                         uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx) {
  FlatWork work(URMA_OPC_WRITE, target_jfr, flag, user_ctx);
  work.local = range(src, len, src_tseg);
  work.remote = range(dst, len, dst_tseg);
  work.wr.rw.src = {&work.local, 1};
  work.wr.rw.dst = {&work.remote, 1};
  return work.post(jfs);
}

urma_status_t urma_read(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                        urma_target_seg_t* dst_tseg, urma_target_seg_t* src_tseg, uint64_t dst,
                        uint64_t src, uint32_t len, urma_jfs_wr_flag_t flag, uint64_t user_ctx) {
  FlatWork work(URMA_OPC_READ, target_jfr, flag, user_ctx);
  work.local = range(dst, len, dst_tseg);
  work.remote = range(src, len, src_tseg);
  work.wr.rw.src = {&work.remote, 1};
  work.wr.rw.dst = {&work.local, 1};
  return work.post(jfs);
}

urma_status_t urma_send(urma_jfs_t* jfs, urma_target_jetty_t* target_jfr,
                        urma_target_seg_t* src_tseg, uint64_t src, uint32_t len,
                        urma_jfs_wr_flag_t flag, uint64_t user_ctx) {
  FlatWork work(URMA_OPC_SEND, target_jfr, flag, user_ctx);
  work.local = range(src, len, src_tseg);
  work.wr.send.src = {&work.local, 1};
  return work.post(jfs);
}

// ---- advice, which UB does not need

urma_status_t urma_advise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr) {
  const Jfs* const from = find<Jfs>(jfs);
  const Target* const to = find<Target>(tjfr);
  if (from == nullptr || to == nullptr) return refuse_null(__func__, "jfs or tjfr");
  return check_advice(__func__, from->jfs_cfg.trans_mode, to->trans_mode);
}

urma_status_t urma_advise_jfr_async(urma_jfs_t* jfs, urma_target_jetty_t* tjfr,
                                    urma_advise_async_cb_func cb_fun, void* cb_arg) {
  const urma_status_t status = urma_advise_jfr(jfs, tjfr);
  if (status == URMA_SUCCESS && cb_fun != nullptr) cb_fun(URMA_SUCCESS, cb_arg);
  return status;
}

urma_status_t urma_unadvise_jfr(urma_jfs_t* jfs, urma_target_jetty_t* tjfr) {
  if (find<Jfs>(jfs) == nullptr || find<Target>(tjfr) == nullptr) {
    return refuse_null(__func__, "jfs or tjfr");
  }
  return URMA_SUCCESS;
}

}  // extern "C"
