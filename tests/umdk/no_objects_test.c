// SPDX-License-Identifier: Apache-2.0
// Calls on objects that do not exist, because they are null or deleted, and calls whose other
// arguments are null: each returns the status that the headers say, and logs why.

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

// Objects that do not exist: null, or deleted.
struct objects {
  urma_context_t* ctx;
  urma_jfce_t* jfce;
  urma_jfc_t* jfc;
  urma_jfs_t* jfs;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
  urma_target_jetty_t* target;
  urma_target_seg_t* seg;
  urma_token_id_t* token;
  urma_notifier_t* notifier;
};

// ---- objects that do not exist

static void devices_and_contexts(const struct objects* no) {
  int count = 0;
  uint32_t eids = 0;
  urma_device_attr_t attr;
  urma_async_event_t event;
  urma_eid_t eid = {{0}};
  NULLS(EINVAL, urma_get_device_list(NULL));
  NULLS(EINVAL, urma_get_device_by_name(NULL));
  NULLS(ENODEV, urma_get_device_by_name("no-such-device"));
  NULLS(ENODEV, urma_get_device_by_eid(eid, URMA_TRANSPORT_UB));
  NULLS(EINVAL, urma_get_eid_list(NULL, &eids));
  NULLS(EINVAL, urma_create_context(NULL, 0));
  REFUSES(EINVAL, urma_query_device(NULL, &attr));
  REFUSES(EINVAL, urma_get_uasid(NULL));
  REFUSES(EINVAL, urma_delete_context(no->ctx));
  REFUSES(EINVAL, urma_set_context_opt(no->ctx, URMA_OPT_AGGR_MODE, &count, sizeof count));
  REFUSES(EINVAL, urma_get_async_event(no->ctx, &event));
  REFUSES(EEXIST, urma_init(NULL));
  urma_device_t** const list = urma_get_device_list(&count);
  REQUIRE(list != NULL && count == device_count && list[count] == NULL);
  NULLS(EINVAL, urma_get_eid_list(list[0], NULL));
  NULLS(EINVAL, urma_create_context(list[0], 7));
  REFUSES(EINVAL, urma_query_device(list[0], NULL));
  urma_free_device_list(list);
  urma_free_device_list(NULL);
  urma_free_eid_list(NULL);
  urma_ack_async_event(NULL);
}

static void completion_queues(const struct objects* no) {
  urma_jfc_cfg_t cfg = {.depth = 4};
  urma_jfc_attr_t attr = {.mask = JFC_MODERATE_COUNT};
  urma_jfc_t* jfc = no->jfc;
  urma_jfc_t* bad = NULL;
  urma_jfc_t* made = NULL;
  urma_cr_t record;
  uint32_t value = 4;
  NULLS(EINVAL, urma_create_jfce(no->ctx));
  REFUSES(EINVAL, urma_delete_jfce(no->jfce));
  NULLS(EINVAL, urma_create_jfc(no->ctx, &cfg));
  REFUSES(EINVAL, urma_modify_jfc(no->jfc, &attr));
  REFUSES(EINVAL, urma_delete_jfc(no->jfc));
  REFUSES(EINVAL, urma_delete_jfc_batch(&jfc, 1, &bad));
  CHECK(bad == no->jfc);
  REFUSES(EINVAL, urma_alloc_jfc(no->ctx, &cfg, &made));
  REFUSES(EINVAL, urma_set_jfc_opt(no->jfc, URMA_JFC_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_get_jfc_opt(no->jfc, URMA_JFC_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_active_jfc(no->jfc));
  REFUSES(EINVAL, urma_deactive_jfc(no->jfc));
  REFUSES(EINVAL, urma_free_jfc(no->jfc));
  REFUSES(-1, urma_poll_jfc(no->jfc, 1, &record));
  REFUSES(EINVAL, urma_rearm_jfc(no->jfc, false));
  REFUSES(-1, urma_wait_jfc(no->jfce, 1, 0, &made));
  urma_ack_jfc(&jfc, &value, 1);
  urma_ack_jfc(NULL, NULL, 1);
}

static void queues_of_works(const struct objects* no) {
  urma_jfs_cfg_t cfg = jfs_cfg_of(no->jfc);
  urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_jfs_t* jfs = no->jfs;
  urma_jfs_t* bad = NULL;
  urma_jfs_t* made = NULL;
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  urma_jfs_wr_t* bad_wr = NULL;
  const urma_jfs_wr_flag_t flag = {.value = 0};
  urma_cr_t record;
  uint32_t value = 4;
  NULLS(EINVAL, urma_create_jfs(no->ctx, &cfg));
  REFUSES(EINVAL, urma_modify_jfs(no->jfs, &attr));
  REFUSES(EINVAL, urma_query_jfs(no->jfs, &cfg, &attr));
  REFUSES(EINVAL, urma_delete_jfs(no->jfs));
  REFUSES(EINVAL, urma_delete_jfs_batch(&jfs, 1, &bad));
  CHECK(bad == no->jfs);
  REFUSES(-EINVAL, urma_flush_jfs(no->jfs, 1, &record));
  REFUSES(EINVAL, urma_alloc_jfs(no->ctx, &cfg, &made));
  REFUSES(EINVAL, urma_set_jfs_opt(no->jfs, URMA_JFS_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_get_jfs_opt(no->jfs, URMA_JFS_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_active_jfs(no->jfs));
  REFUSES(EINVAL, urma_deactive_jfs(no->jfs));
  REFUSES(EINVAL, urma_free_jfs(no->jfs));
  REFUSES(EINVAL, urma_post_jfs_wr(no->jfs, &wr, &bad_wr));
  REFUSES(EINVAL, urma_write(no->jfs, no->target, no->seg, no->seg, 0, 0, 8, flag, 0));
  REFUSES(EINVAL, urma_read(no->jfs, no->target, no->seg, no->seg, 0, 0, 8, flag, 0));
  REFUSES(EINVAL, urma_send(no->jfs, no->target, no->seg, 0, 8, flag, 0));
  REFUSES(EINVAL, urma_advise_jfr(no->jfs, no->target));
  REFUSES(EINVAL, urma_advise_jfr_async(no->jfs, no->target, NULL, NULL));
  REFUSES(EINVAL, urma_unadvise_jfr(no->jfs, no->target));
}

static void queues_of_receives(const struct objects* no) {
  urma_jfr_cfg_t cfg = jfr_cfg_of(no->jfc);
  urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = URMA_JFR_STATE_ERROR};
  urma_rjfr_t rjfr = {.trans_mode = URMA_TM_RM};
  urma_import_jfr_ex_cfg_t ex = {0};
  urma_token_t token = secret;
  urma_jfr_t* jfr = no->jfr;
  urma_jfr_t* bad = NULL;
  urma_jfr_t* made = NULL;
  urma_jfr_wr_t wr = {.src = {NULL, 0}};
  urma_jfr_wr_t* bad_wr = NULL;
  uint32_t value = 4;
  NULLS(EINVAL, urma_create_jfr(no->ctx, &cfg));
  REFUSES(EINVAL, urma_modify_jfr(no->jfr, &attr));
  REFUSES(EINVAL, urma_query_jfr(no->jfr, &cfg, &attr));
  REFUSES(EINVAL, urma_delete_jfr(no->jfr));
  REFUSES(EINVAL, urma_delete_jfr_batch(&jfr, 1, &bad));
  CHECK(bad == no->jfr);
  NULLS(EINVAL, urma_import_jfr(no->ctx, &rjfr, &token));
  NULLS(EINVAL, urma_import_jfr_ex(no->ctx, &rjfr, &token, &ex));
  REFUSES(EINVAL, urma_unimport_jfr(no->target));
  REFUSES(EINVAL, urma_alloc_jfr(no->ctx, &cfg, &made));
  REFUSES(EINVAL, urma_set_jfr_opt(no->jfr, URMA_JFR_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_get_jfr_opt(no->jfr, URMA_JFR_DEPTH, &value, 4));
  REFUSES(EINVAL, urma_active_jfr(no->jfr));
  REFUSES(EINVAL, urma_deactive_jfr(no->jfr));
  REFUSES(EINVAL, urma_free_jfr(no->jfr));
  REFUSES(EINVAL, urma_post_jfr_wr(no->jfr, &wr, &bad_wr));
  REFUSES(EINVAL, urma_recv(no->jfr, no->seg, 0, 8, 0));
}

static void jetties(const struct objects* no) {
  urma_jetty_cfg_t cfg = jetty_cfg_of(no->jfc, no->jfr);
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_jetty_t* jetty = no->jetty;
  urma_jetty_t* bad = NULL;
  urma_jetty_t* made = NULL;
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  urma_jfs_wr_t* bad_wr = NULL;
  urma_jfr_wr_t receive = {.src = {NULL, 0}};
  urma_jfr_wr_t* bad_receive = NULL;
  urma_rjetty_t* rjetty = NULL;
  urma_cr_t record;
  uint32_t value = 4;
  NULLS(EINVAL, urma_create_jetty(no->ctx, &cfg));
  REFUSES(EINVAL, urma_modify_jetty(no->jetty, &attr));
  REFUSES(EINVAL, urma_query_jetty(no->jetty, &cfg, &attr));
  REFUSES(EINVAL, urma_delete_jetty(no->jetty));
  REFUSES(EINVAL, urma_delete_jetty_batch(&jetty, 1, &bad));
  CHECK(bad == no->jetty);
  REFUSES(-EINVAL, urma_flush_jetty(no->jetty, 1, &record));
  REFUSES(EINVAL, urma_get_rjetty(no->jetty, &rjetty, &value));
  REFUSES(EINVAL, urma_alloc_jetty(no->ctx, &cfg, &made));
  REFUSES(EINVAL, urma_set_jetty_opt(no->jetty, URMA_JETTY_ID, &value, 4));
  REFUSES(EINVAL, urma_get_jetty_opt(no->jetty, URMA_JETTY_ID, &value, 4));
  REFUSES(EINVAL, urma_active_jetty(no->jetty));
  REFUSES(EINVAL, urma_deactive_jetty(no->jetty));
  REFUSES(EINVAL, urma_free_jetty(no->jetty));
  REFUSES(EINVAL, urma_post_jetty_send_wr(no->jetty, &wr, &bad_wr));
  REFUSES(EINVAL, urma_post_jetty_recv_wr(no->jetty, &receive, &bad_receive));
  REFUSES(-EINVAL, urma_get_tpn(no->jetty));
  REFUSES(EINVAL, urma_delete_jetty_grp(NULL));
  urma_put_rjetty(NULL);
}

static void targets(const struct objects* no) {
  urma_rjetty_t rjetty = {.trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  urma_bind_jetty_ex_cfg_t ex = {0};
  urma_token_t token = secret;
  urma_notify_t result;
  NULLS(EINVAL, urma_import_jetty(no->ctx, &rjetty, &token));
  NULLS(EINVAL, urma_import_jetty_ex(no->ctx, &rjetty, &token, &ex));
  NULLS(EINVAL, urma_import_jetty_async(no->notifier, &rjetty, &token, 1, 0));
  REFUSES(EINVAL, urma_unimport_jetty(no->target));
  REFUSES(EINVAL, urma_unimport_jetty_async(no->target));
  REFUSES(EINVAL, urma_bind_jetty(no->jetty, no->target));
  REFUSES(EINVAL, urma_bind_jetty_ex(no->jetty, no->target, &ex));
  REFUSES(EINVAL, urma_bind_jetty_async(no->notifier, no->jetty, no->target, 1, 0));
  REFUSES(EINVAL, urma_unbind_jetty(no->jetty));
  REFUSES(EINVAL, urma_unbind_jetty_async(no->jetty));
  REFUSES(EINVAL, urma_advise_jetty(no->jetty, no->target));
  REFUSES(EINVAL, urma_unadvise_jetty(no->jetty, no->target));
  NULLS(EINVAL, urma_create_notifier(no->ctx));
  REFUSES(EINVAL, urma_delete_notifier(no->notifier));
  REFUSES(-1, urma_wait_notify(no->notifier, 1, &result, 0));
  REFUSES(EINVAL, urma_ack_notify(no->ctx, 1, &result));
}

static void segments(const struct objects* no) {
  char memory[64];
  urma_seg_cfg_t cfg = seg_cfg_of(memory, URMA_ACCESS_READ);
  urma_seg_t described = {.len = 64};
  urma_seg_t* seg = NULL;
  urma_token_t token = secret;
  uint32_t bytes = 0;
  NULLS(EINVAL, urma_alloc_token_id(no->ctx));
  NULLS(EINVAL, urma_alloc_token_id_ex(no->ctx, (urma_token_id_flag_t){.value = 0}));
  REFUSES(EINVAL, urma_free_token_id(no->token));
  NULLS(EINVAL, urma_register_seg(no->ctx, &cfg));
  REFUSES(EINVAL, urma_unregister_seg(no->seg));
  NULLS(EINVAL, urma_import_seg(no->ctx, &described, &token, 0, (urma_import_seg_flag_t){0}));
  REFUSES(EINVAL, urma_unimport_seg(no->seg));
  REFUSES(EINVAL, urma_get_seg_ctx(no->seg, &seg, &bytes));
  urma_put_seg_ctx(NULL);
}

static void channels(const struct objects* no) {
  urma_jetty_grp_cfg_t group = {.id = 0};
  urma_get_tp_cfg_t cfg = {.trans_mode = URMA_TM_RM};
  urma_tp_info_t handle;
  uint32_t count = 1;
  urma_user_ctl_in_t in = {0};
  urma_user_ctl_out_t out = {0};
  urma_tp_attr_value_t value = {0};
  uint8_t values = 1;
  uint8_t mac[URMA_MAC_BYTES];
  urma_net_addr_t address = {.sin_family = AF_INET};
  urma_eid_t eid = {{0}};
  NULLS(EINVAL, urma_create_jetty_grp(no->ctx, &group));
  REFUSES(EINVAL, urma_get_tp_list(no->ctx, &cfg, &count, &handle));
  REFUSES(EINVAL, urma_user_ctl(no->ctx, &in, &out));
  REFUSES(EINVAL, urma_modify_tp(no->ctx, 1, NULL, NULL, (urma_tp_attr_mask_t){.value = 0}));
  REFUSES(EINVAL, urma_set_tp_attr(no->ctx, 1, 1, 1, &value));
  REFUSES(EINVAL, urma_get_tp_attr(no->ctx, 1, &values, &count, &value));
  REFUSES(EINVAL, urma_get_smac(no->ctx, mac));
  REFUSES(EINVAL, urma_get_dmac(no->ctx, &address, mac));
  REFUSES(EINVAL, urma_get_eid_by_ip(no->ctx, &address, &eid));
  REFUSES(EINVAL, urma_get_ip_by_eid(no->ctx, &eid, &address));
  NULLS(EINVAL, urma_get_net_addr_list(no->ctx, &count));
  urma_free_net_addr_list(NULL);
}

static void without_objects(const struct objects* no) {
  devices_and_contexts(no);
  completion_queues(no);
  queues_of_works(no);
  queues_of_receives(no);
  jetties(no);
  targets(no);
  segments(no);
  channels(no);
}

static struct objects deleted_objects(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  struct end* a = &ends.a;
  urma_jfs_cfg_t jfs = jfs_cfg_of(a->jfc);
  struct objects gone = {.ctx = a->ctx,
                         .jfce = a->jfce,
                         .jfc = a->jfc,
                         .jfs = urma_create_jfs(a->ctx, &jfs),
                         .jfr = a->jfr,
                         .jetty = a->jetty,
                         .target = a->to,
                         .seg = a->seg,
                         .token = urma_alloc_token_id(a->ctx),
                         .notifier = urma_create_notifier(a->ctx)};
  CHECK(urma_delete_jfs(gone.jfs) == URMA_SUCCESS);
  CHECK(urma_free_token_id(gone.token) == URMA_SUCCESS);
  CHECK(urma_delete_notifier(gone.notifier) == URMA_SUCCESS);
  end_ends(&ends);
  return gone;
}

// ---- arguments beside the object

static void null_results(struct ends* ends) {
  struct end* a = &ends->a;
  uint32_t bytes = 0;
  urma_jetty_cfg_t jetty_cfg;
  urma_jetty_attr_t jetty_attr;
  urma_jfr_cfg_t jfr_cfg;
  urma_jfr_attr_t jfr_attr;
  urma_rjetty_t* rjetty = NULL;
  urma_seg_t* seg = NULL;
  urma_token_t token = secret;
  NULLS(EINVAL, urma_create_jfc(a->ctx, NULL));
  NULLS(EINVAL, urma_create_jfs(a->ctx, NULL));
  NULLS(EINVAL, urma_create_jfr(a->ctx, NULL));
  NULLS(EINVAL, urma_create_jetty(a->ctx, NULL));
  NULLS(EINVAL, urma_create_jetty_grp(a->ctx, NULL));
  NULLS(EINVAL, urma_register_seg(a->ctx, NULL));
  NULLS(EINVAL, urma_import_jetty(a->ctx, NULL, &token));
  NULLS(EINVAL, urma_import_jfr(a->ctx, NULL, &token));
  NULLS(EINVAL, urma_import_seg(a->ctx, NULL, &token, 0, (urma_import_seg_flag_t){0}));
  REFUSES(EINVAL, urma_modify_jfc(a->jfc, NULL));
  REFUSES(EINVAL, urma_modify_jfr(a->jfr, NULL));
  REFUSES(EINVAL, urma_modify_jetty(a->jetty, NULL));
  REFUSES(EINVAL, urma_query_jfr(a->jfr, NULL, &jfr_attr));
  REFUSES(EINVAL, urma_query_jfr(a->jfr, &jfr_cfg, NULL));
  REFUSES(EINVAL, urma_query_jetty(a->jetty, NULL, &jetty_attr));
  REFUSES(EINVAL, urma_query_jetty(a->jetty, &jetty_cfg, NULL));
  REFUSES(EINVAL, urma_get_rjetty(a->jetty, NULL, &bytes));
  REFUSES(EINVAL, urma_get_rjetty(a->jetty, &rjetty, NULL));
  REFUSES(EINVAL, urma_get_seg_ctx(a->seg, NULL, &bytes));
  REFUSES(EINVAL, urma_get_seg_ctx(a->seg, &seg, NULL));
  REFUSES(EINVAL, urma_get_async_event(a->ctx, NULL));
  REFUSES(EINVAL, urma_alloc_jfc(a->ctx, &(urma_jfc_cfg_t){.depth = 4}, NULL));
  REFUSES(EINVAL, urma_delete_jfc_batch(NULL, 1, &a->jfc));
  REFUSES(EINVAL, urma_delete_jfc_batch(&a->jfc, 0, &a->jfc));
  REFUSES(EINVAL, urma_delete_jfc_batch(&a->jfc, 1, NULL));
  REFUSES(EINVAL, urma_register_log_func(NULL));
  REFUSES(EINVAL, urma_register_loc_log_func(NULL));
}

static void null_works(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  urma_jfs_wr_t* bad = NULL;
  urma_jfr_wr_t receive = {.src = {NULL, 0}};
  urma_jfr_wr_t* bad_receive = NULL;
  urma_cr_t record;
  urma_jfc_t* jfc = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, NULL, &bad));
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, NULL));
  REFUSES(EINVAL, urma_post_jetty_recv_wr(a->jetty, NULL, &bad_receive));
  REFUSES(EINVAL, urma_post_jetty_recv_wr(a->jetty, &receive, NULL));
  REFUSES(EINVAL, urma_post_jfr_wr(a->jfr, NULL, &bad_receive));
  REFUSES(-1, urma_poll_jfc(a->jfc, 1, NULL));
  REFUSES(-1, urma_poll_jfc(a->jfc, -1, &record));
  CHECK(urma_poll_jfc(a->jfc, 0, &record) == 0);
  REFUSES(-1, urma_wait_jfc(a->jfce, 0, 0, &jfc));
  REFUSES(-1, urma_wait_jfc(a->jfce, 1, 0, NULL));
  REFUSES(-EINVAL, urma_flush_jetty(a->jetty, 0, &record));
  REFUSES(-EINVAL, urma_flush_jetty(a->jetty, 1, NULL));
  REFUSES(-EINVAL, urma_flush_jetty(a->jetty, queue_depth + 1, &record));
  CHECK(urma_flush_jetty(a->jetty, 1, &record) == 0);
}

int main(void) {
  const struct objects null = {0};
  name_devices();
  count_reasons();
  without_objects(&null);
  for (int i = 0; i < device_count; ++i) {
    const struct objects gone = deleted_objects(devices[i]);
    without_objects(&gone);
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    null_results(&ends);
    null_works(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
