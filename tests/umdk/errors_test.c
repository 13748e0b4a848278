// SPDX-License-Identifier: Apache-2.0
// Calls with arguments that are wrong: each returns the status that the headers say, and logs why.
#include <errno.h>
#include <string.h>
#include <urma_perf.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

static int reasons = 0;
static char last_reason[512];

static void count_reason(int level, char* message) {
  if (level == URMA_VLOG_LEVEL_ERR && strstr(message, "Fix: ") != NULL) ++reasons;
  snprintf(last_reason, sizeof last_reason, "%s", message);
}

#define REFUSES(expected, call)                                                                   \
  do {                                                                                            \
    const int before_call = reasons;                                                              \
    const int got_status = (call);                                                                \
    if (got_status != (expected) || reasons == before_call) {                                     \
      ++failures;                                                                                 \
      fprintf(stderr, "%s:%d: %s returned %d and logged %d reasons\n", __FILE__, __LINE__, #call, \
              got_status, reasons - before_call);                                                 \
    }                                                                                             \
  } while (0)

#define NULLS(expected, call)                                                                  \
  do {                                                                                         \
    const int before_call = reasons;                                                           \
    errno = 0;                                                                                 \
    const void* const got_object = (call);                                                     \
    const int got_errno = errno;                                                               \
    if (got_object != NULL || got_errno != (expected) || reasons == before_call) {             \
      ++failures;                                                                              \
      fprintf(stderr, "%s:%d: %s returned %p with errno %d and logged %d reasons\n", __FILE__, \
              __LINE__, #call, got_object, got_errno, reasons - before_call);                  \
    }                                                                                          \
  } while (0)

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

static urma_jfs_cfg_t jfs_cfg_of(urma_jfc_t* jfc) {
  return (urma_jfs_cfg_t){
      .depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = jfc};
}

static urma_jfr_cfg_t jfr_cfg_of(urma_jfc_t* jfc) {
  return (urma_jfr_cfg_t){.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
}

static urma_jetty_cfg_t jetty_cfg_of(urma_jfc_t* jfc, urma_jfr_t* jfr) {
  urma_jetty_cfg_t cfg = {.jfs_cfg = jfs_cfg_of(jfc)};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  return cfg;
}

static urma_seg_cfg_t seg_cfg_of(void* memory, uint32_t access) {
  urma_seg_cfg_t cfg = {.va = (uint64_t)memory, .len = 4096, .token_value = secret};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access & 0x3f;
  return cfg;
}

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

// ---- configurations

static void wrong_jfc_cfg(struct end* a, const urma_device_cap_t* cap) {
  urma_jfc_cfg_t cfg = {.depth = 0};
  NULLS(EINVAL, urma_create_jfc(a->ctx, &cfg));
  cfg.depth = cap->max_jfc_depth + 1;
  NULLS(EINVAL, urma_create_jfc(a->ctx, &cfg));
  cfg.depth = UINT32_MAX;
  NULLS(EINVAL, urma_create_jfc(a->ctx, &cfg));
}

static void wrong_jfs_cfg(struct end* a, const urma_device_cap_t* cap) {
  const urma_jfs_cfg_t good = jfs_cfg_of(a->jfc);
  urma_jfs_cfg_t all[12];
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; ++i) all[i] = good;
  all[0].depth = 0;
  all[1].depth = cap->max_jfs_depth + 1;
  all[2].max_sge = (uint8_t)(cap->max_jfs_sge + 1);
  all[3].max_rsge = (uint8_t)(cap->max_jfs_rsge + 1);
  all[4].max_inline_data = cap->max_jfs_inline_len + 1;
  all[5].priority = URMA_MAX_PRIORITY + 1;
  all[6].trans_mode = (urma_transport_mode_t)0;
  all[7].trans_mode = (urma_transport_mode_t)3;
  all[8].trans_mode = (urma_transport_mode_t)8;
  all[9].jfc = NULL;
  all[10].rnr_retry = 8;
  all[11].err_timeout = 32;
  for (size_t i = 0; i < count; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_create_jfs(a->ctx, &all[i]));
    if (failures != before) fprintf(stderr, "in the JFS configuration %zu\n", i);
  }
}

static void wrong_jfr_cfg(struct end* a, const urma_device_cap_t* cap) {
  const urma_jfr_cfg_t good = jfr_cfg_of(a->jfc);
  urma_jfr_cfg_t all[8];
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; ++i) all[i] = good;
  all[0].depth = 0;
  all[1].depth = cap->max_jfr_depth + 1;
  all[2].max_sge = (uint8_t)(cap->max_jfr_sge + 1);
  all[3].trans_mode = (urma_transport_mode_t)0;
  all[4].jfc = NULL;
  all[5].flag.bs.token_policy = URMA_TOKEN_SIGNED;
  all[6].id = 1 << 20;
  all[7].flag.bs.token_policy = URMA_TOKEN_ALL_ENCRYPTED;
  for (size_t i = 0; i < count; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_create_jfr(a->ctx, &all[i]));
    if (failures != before) fprintf(stderr, "in the JFR configuration %zu\n", i);
  }
}

static void wrong_jetty_cfg(struct end* a, const urma_device_cap_t* cap) {
  urma_jfr_cfg_t of_rc = jfr_cfg_of(a->jfc);
  of_rc.trans_mode = URMA_TM_RC;
  urma_jfr_t* const jfr = urma_create_jfr(a->ctx, &of_rc);
  urma_jfr_cfg_t not_shared = jfr_cfg_of(a->jfc);
  urma_jfc_cfg_t other = {.depth = 4};
  urma_jfc_t* const jfc = urma_create_jfc(a->ctx, &other);
  const urma_jetty_cfg_t good = jetty_cfg_of(a->jfc, a->jfr);
  urma_jetty_cfg_t all[9];
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; ++i) all[i] = good;
  all[0].flag.bs.share_jfr = URMA_NO_SHARE_JFR;
  all[0].jfr_cfg = &not_shared;
  all[1].shared.jfr = NULL;
  all[2].shared.jfr = jfr;
  all[3].jfs_cfg.jfc = NULL;
  all[4].jfs_cfg.depth = cap->max_jfs_depth + 1;
  all[5].jfs_cfg.trans_mode = URMA_TM_RC;
  all[6].id = 1 << 20;
  all[7].shared.jfc = jfc;
  all[8].jetty_grp = (urma_jetty_grp_t*)(void*)a->jfr;
  for (size_t i = 0; i < count; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_create_jetty(a->ctx, &all[i]));
    if (failures != before) fprintf(stderr, "in the Jetty configuration %zu\n", i);
  }
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
}

// The numbers that a program may choose.
static void chosen_numbers(struct end* a) {
  static const uint32_t valid[] = {2, 3, 1023};
  static const uint32_t wrong[] = {1, 1024, 5000};
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  for (int i = 0; i < 3; ++i) {
    cfg.id = valid[i];
    urma_jetty_t* const jetty = urma_create_jetty(a->ctx, &cfg);
    REQUIRE(jetty != NULL);
    CHECK(jetty->jetty_id.id == valid[i]);
    NULLS(EEXIST, urma_create_jetty(a->ctx, &cfg));
    CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
    cfg.id = wrong[i];
    NULLS(EINVAL, urma_create_jetty(a->ctx, &cfg));
  }
}

// Which orders exist in each mode, and which one is the default.
static void orders(struct end* a) {
  static const struct {
    urma_transport_mode_t mode;
    uint32_t is_default;
    uint32_t valid;  // a set
  } rules[] = {
      {URMA_TM_RM, URMA_OI, 1 << URMA_DEF_ORDER | 1 << URMA_OI},
      {URMA_TM_RC, URMA_OL, 1 << URMA_DEF_ORDER | 1 << URMA_OT | 1 << URMA_OL | 1 << URMA_NO},
      {URMA_TM_UM, URMA_NO, 1 << URMA_DEF_ORDER | 1 << URMA_NO}};
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; ++i) {
    for (uint32_t order = 0; order <= URMA_NO + 1; ++order) {
      urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
      cfg.trans_mode = rules[i].mode;
      cfg.flag.bs.order_type = order & 0xff;
      if ((rules[i].valid >> order & 1) == 0) {
        NULLS(EINVAL, urma_create_jfs(a->ctx, &cfg));
        continue;
      }
      const uint32_t expected = order == URMA_DEF_ORDER ? rules[i].is_default : order;
      urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
      REQUIRE(jfs != NULL);
      CHECK(cfg.flag.bs.order_type == expected);
      CHECK(jfs->jfs_cfg.flag.bs.order_type == expected);
      CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
    }
  }
}

static void default_orders(struct end* a) {
  urma_jfr_cfg_t jfr_cfg = jfr_cfg_of(a->jfc);
  jfr_cfg.trans_mode = URMA_TM_RC;
  urma_jfr_t* const jfr = urma_create_jfr(a->ctx, &jfr_cfg);
  REQUIRE(jfr != NULL);
  CHECK(jfr_cfg.flag.bs.order_type == URMA_OL);
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, jfr);
  cfg.jfs_cfg.trans_mode = URMA_TM_RC;
  urma_jetty_t* const jetty = urma_create_jetty(a->ctx, &cfg);
  REQUIRE(jetty != NULL);
  CHECK(cfg.jfs_cfg.flag.bs.order_type == URMA_OL);
  cfg.jfs_cfg.flag.bs.order_type = URMA_OT;  // not that of the JFR
  NULLS(EINVAL, urma_create_jetty(a->ctx, &cfg));
  urma_jetty_t* allocated = NULL;
  cfg.jfs_cfg.flag.bs.order_type = URMA_DEF_ORDER;
  CHECK(urma_alloc_jetty(a->ctx, &cfg, &allocated) == URMA_SUCCESS);
  CHECK(cfg.jfs_cfg.flag.bs.order_type == URMA_OL);
  CHECK(urma_free_jetty(allocated) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
}

static void descriptions(struct ends* ends) {
  struct end* a = &ends->a;
  urma_rjetty_t* good = NULL;
  urma_token_t token = secret;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(ends->b.jetty, &good, &bytes) == URMA_SUCCESS);
  urma_rjetty_t all[9];
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; ++i) all[i] = *good;
  all[0].tp_type = URMA_UTP;
  all[1].trans_mode = (urma_transport_mode_t)0;
  all[2].trans_mode = URMA_TM_UM;
  all[2].flag.bs.order_type = URMA_NO;
  all[2].tp_type = URMA_RTP;
  all[3].type = URMA_JETTY_GROUP;
  all[3].trans_mode = URMA_TM_RC;
  all[4].flag.bs.order_type = URMA_OL;
  all[5].flag.bs.order_type = URMA_NO + 1;
  all[6].jetty_id.uasid = 0;
  all[7].jetty_id = (urma_jetty_id_t){.id = 1};
  all[8].flag.bs.token_policy = URMA_TOKEN_SIGNED;
  for (size_t i = 0; i < count; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_import_jetty(a->ctx, &all[i], &token));
    if (failures != before) fprintf(stderr, "in the description %zu\n", i);
  }
  NULLS(EINVAL, urma_import_jetty(a->ctx, good, NULL));
  NULLS(EINVAL, urma_import_jetty_ex(a->ctx, good, &token, NULL));
  good->tp_type = URMA_CTP;
  good->flag.bs.order_type = URMA_DEF_ORDER;
  urma_target_jetty_t* const target = urma_import_jetty(a->ctx, good, &token);
  REQUIRE(target != NULL);
  CHECK(good->flag.bs.order_type == URMA_OI);
  CHECK(target->tp_type == URMA_CTP);
  CHECK(memcmp(&target->id, &good->jetty_id, sizeof target->id) == 0);
  CHECK(urma_unimport_jetty(target) == URMA_SUCCESS);
  urma_put_rjetty(good);
}

static void wrong_seg_cfg(struct end* a) {
  enum { local = 1, reads = 2, writes = 4, changes = 8 };
  static const uint32_t refused[] = {local | reads, local | writes,  local | changes,  writes,
                                     changes,       reads | changes, writes | changes, 15};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; ++i) {
    urma_seg_cfg_t cfg = seg_cfg_of(a->memory, refused[i]);
    NULLS(EINVAL, urma_register_seg(a->ctx, &cfg));
  }
  static const uint32_t accepted[] = {local, reads, reads | writes, reads | writes | changes};
  for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; ++i) {
    urma_seg_cfg_t cfg = seg_cfg_of(a->memory, accepted[i]);
    urma_target_seg_t* const seg = urma_register_seg(a->ctx, &cfg);
    REQUIRE(seg != NULL);
    CHECK(seg->seg.attr.bs.access == accepted[i]);
    CHECK(seg->seg.attr.bs.user_token_id == 0);
    CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  }
}

static void wrong_seg_fields(struct ends* ends) {
  struct end* a = &ends->a;
  urma_token_id_t* const token = urma_alloc_token_id(a->ctx);
  urma_token_id_t* const foreign = urma_alloc_token_id(ends->b.ctx);
  const urma_seg_cfg_t good = seg_cfg_of(a->memory, URMA_ACCESS_READ);
  urma_seg_cfg_t all[9];
  const size_t count = sizeof all / sizeof all[0];
  for (size_t i = 0; i < count; ++i) all[i] = good;
  all[0].va = 0;
  all[1].len = 0;
  all[2].len = UINT64_MAX;
  all[3].flag.bs.token_policy = URMA_TOKEN_SIGNED;
  all[4].flag.bs.user_iova = 1;
  all[5].token_id = token;
  all[6].flag.bs.token_id_valid = 1;
  all[7].flag.bs.token_id_valid = 1;
  all[7].token_id = foreign;
  all[8].va = UINT64_MAX - 100;
  for (size_t i = 0; i < count; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_register_seg(a->ctx, &all[i]));
    if (failures != before) fprintf(stderr, "in the segment configuration %zu\n", i);
  }
  CHECK(urma_free_token_id(token) == URMA_SUCCESS);
  CHECK(urma_free_token_id(foreign) == URMA_SUCCESS);
}

// ---- objects of another context

static void foreign_objects(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_jfc_cfg_t jfc = {.depth = 4, .jfce = b->jfce};
  NULLS(EINVAL, urma_create_jfc(a->ctx, &jfc));
  urma_jfs_cfg_t jfs = jfs_cfg_of(b->jfc);
  NULLS(EINVAL, urma_create_jfs(a->ctx, &jfs));
  urma_jfr_cfg_t jfr = jfr_cfg_of(b->jfc);
  NULLS(EINVAL, urma_create_jfr(a->ctx, &jfr));
  urma_jetty_cfg_t jetty = jetty_cfg_of(a->jfc, b->jfr);
  NULLS(EINVAL, urma_create_jetty(a->ctx, &jetty));
  jetty = jetty_cfg_of(b->jfc, a->jfr);
  NULLS(EINVAL, urma_create_jetty(a->ctx, &jetty));
  REFUSES(EINVAL, urma_unregister_seg(a->there));
  REFUSES(EINVAL, urma_unimport_seg(a->seg));
}

static void foreign_ranges(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_sge_t from = here(a, 0, 8);
  urma_sge_t to = there(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = b->to};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  urma_jfs_wr_t* bad = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  CHECK(bad == &wr);
  wr.tjetty = a->to;
  to = there(b, 0, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  to = there(a, 0, 8);
  from = here(b, 0, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  urma_jfr_wr_t receive = {.src = {&from, 1}};
  urma_jfr_wr_t* bad_receive = NULL;
  REFUSES(EINVAL, urma_post_jetty_recv_wr(a->jetty, &receive, &bad_receive));
  CHECK(bad_receive == &receive);
}

// ---- works that are not valid

static void wrong_ranges(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from[6];
  for (int i = 0; i < 6; ++i) from[i] = here(a, 0, 8);
  urma_sge_t to[2] = {there(a, 0, 8), there(a, 100, 8)};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  const struct {
    urma_sg_t src;
    urma_sg_t dst;
  } all[] = {{{from, 6000}, {to, 1}}, {{NULL, 1}, {to, 1}}, {{from, 1}, {NULL, 1}},
             {{from, 1}, {to, 0}},    {{from, 1}, {to, 2}}, {{from, 1}, {to, 6000}}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    wr.rw.src = all[i].src;
    wr.rw.dst = all[i].dst;
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  wr.rw.src = (urma_sg_t){from, 1};
  wr.rw.dst = (urma_sg_t){to, 1};
  from[0] = here(a, memory_bytes - 4, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, (uint64_t)-8, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, 0, 8);
  from[0].tseg = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, 0, 4096);
  wr.flag.bs.inline_flag = 1;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
}

static void wrong_opcodes(struct ends* ends) {
  static const int opcodes[] = {0x03, 0x11, 0x27, 0x40 + 2, 0x51, 0x60, 0x80, 0xff};
  struct end* a = &ends->a;
  urma_sge_t from = here(a, 0, 8);
  urma_sge_t to = there(a, 0, 8);
  urma_jfs_wr_t wr = {.tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; ++i) {
    wr.opcode = (urma_opcode_t)opcodes[i];
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  wr.opcode = URMA_OPC_WRITE_NOTIFY;  // which needs a second remote range
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  wr.opcode = URMA_OPC_WRITE;
  wr.tjetty = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
}

static void wrong_atomics(struct ends* ends) {
  static const uint32_t bytes[] = {0, 3, 5, 6, 7, 16, 4096};
  struct end* a = &ends->a;
  urma_sge_t local = here(a, 0, 4096);
  urma_sge_t remote = there(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.faa.dst = &remote;
  wr.faa.src = &local;
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; ++i) {
    remote.len = bytes[i];
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  remote.len = 8;
  local.len = 4;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  wr.faa.src = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  CHECK(strstr(last_reason, "urma_post_jetty_send_wr") != NULL);
}

// ---- the order in which objects are deleted

static void objects_in_use(struct ends* ends) {
  struct end* a = &ends->a;
  REFUSES(EINVAL, urma_delete_jfc(a->jfc));
  REFUSES(EINVAL, urma_deactive_jfc(a->jfc));
  REFUSES(EINVAL, urma_free_jfc(a->jfc));
  REFUSES(EINVAL, urma_delete_jfr(a->jfr));
  REFUSES(EINVAL, urma_deactive_jfr(a->jfr));
  REFUSES(URMA_FAIL, urma_delete_jfce(a->jfce));
  REFUSES(EAGAIN, urma_delete_context(a->ctx));
  urma_jfr_t* two[2] = {a->jfr, a->jfr};
  urma_jfr_t* bad = NULL;
  REFUSES(EINVAL, urma_delete_jfr_batch(two, 2, &bad));
  CHECK(bad == a->jfr);
}

// The memory of a deleted object is not used again at once, so calls refuse the old pointer while
// there are newer objects.
static void deleted_then_made_again(struct end* a) {
  enum { further = 256 };
  urma_jfc_cfg_t cfg = {.depth = 4};
  urma_jfc_t* const old = urma_create_jfc(a->ctx, &cfg);
  REQUIRE(old != NULL);
  CHECK(urma_delete_jfc(old) == URMA_SUCCESS);
  for (int i = 0; i < further; ++i) {
    urma_cr_t record;
    urma_jfc_t* const next = urma_create_jfc(a->ctx, &cfg);
    REQUIRE(next != NULL);
    CHECK(next != old);
    REFUSES(EINVAL, urma_delete_jfc(old));
    CHECK(urma_poll_jfc(old, 1, &record) == -1);
    CHECK(urma_poll_jfc(next, 1, &record) == 0);
    CHECK(urma_delete_jfc(next) == URMA_SUCCESS);
  }
}

static void token_in_use(struct end* a) {
  urma_token_id_t* const token = urma_alloc_token_id(a->ctx);
  urma_seg_cfg_t cfg = seg_cfg_of(a->memory, URMA_ACCESS_READ);
  cfg.flag.bs.token_id_valid = 1;
  cfg.token_id = token;
  urma_target_seg_t* const first = urma_register_seg(a->ctx, &cfg);
  cfg.va += 8192;
  urma_target_seg_t* const second = urma_register_seg(a->ctx, &cfg);
  REQUIRE(first != NULL && second != NULL);
  CHECK(first->seg.attr.bs.user_token_id == 1);
  CHECK(first->token_id == token && first->seg.token_id == token->token_id);
  CHECK(second->seg.token_id == token->token_id);
  REFUSES(EINVAL, urma_free_token_id(token));
  CHECK(urma_unregister_seg(first) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_free_token_id(token));
  CHECK(urma_unregister_seg(second) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_unregister_seg(second));
  CHECK(urma_free_token_id(token) == URMA_SUCCESS);
}

// Peers show one token for all segments of a TokenID.
static void token_of_another_segment(struct end* a) {
  urma_token_id_t* const token = urma_alloc_token_id(a->ctx);
  urma_seg_cfg_t cfg = seg_cfg_of(a->memory, URMA_ACCESS_READ);
  cfg.flag.bs.token_id_valid = 1;
  cfg.token_id = token;
  urma_target_seg_t* const first = urma_register_seg(a->ctx, &cfg);
  REQUIRE(first != NULL);
  cfg.va += 4096;
  urma_seg_cfg_t other_value = cfg;
  other_value.token_value.token += 1;
  NULLS(EINVAL, urma_register_seg(a->ctx, &other_value));
  urma_seg_cfg_t no_token = cfg;
  no_token.flag.bs.token_policy = URMA_TOKEN_NONE;
  NULLS(EINVAL, urma_register_seg(a->ctx, &no_token));
  // No peer may access this one.
  no_token.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  urma_target_seg_t* const local = urma_register_seg(a->ctx, &no_token);
  REQUIRE(local != NULL);
  CHECK(urma_unregister_seg(local) == URMA_SUCCESS);
  // Without segments the TokenID may have any token.
  CHECK(urma_unregister_seg(first) == URMA_SUCCESS);
  urma_target_seg_t* const last = urma_register_seg(a->ctx, &other_value);
  REQUIRE(last != NULL);
  CHECK(urma_unregister_seg(last) == URMA_SUCCESS);
  CHECK(urma_free_token_id(token) == URMA_SUCCESS);
}

static void bound_jetties(struct ends* ends) {
  struct end* a = &ends->a;
  REFUSES(EINVAL, urma_unbind_jetty(a->jetty));
  REFUSES(EINVAL, urma_bind_jetty(a->jetty, ends->b.to));  // a target of another context
  CHECK(urma_bind_jetty(a->jetty, a->to) == URMA_SUCCESS);
  REFUSES(EPERM, urma_delete_jetty(a->jetty));
  REFUSES(EPERM, urma_deactive_jetty(a->jetty));
  REFUSES(EINVAL, urma_unimport_jetty(a->to));
  REFUSES(EINVAL, urma_unimport_jfr(a->to));
  // Another Jetty that is bound to the same target.
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  cfg.jfs_cfg.trans_mode = URMA_TM_RC;
  urma_jetty_t* const other = urma_create_jetty(a->ctx, &cfg);
  REQUIRE(other != NULL);
  CHECK(urma_bind_jetty(other, a->to) == URMA_SUCCESS);
  CHECK(urma_unbind_jetty(other) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_unimport_jetty(a->to));
  CHECK(urma_delete_jetty(other) == URMA_SUCCESS);
}

static void bind_refused(struct ends* ends) {
  struct end* a = &ends->a;
  urma_rjetty_t* described = NULL;
  urma_token_t token = secret;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(ends->b.jetty, &described, &bytes) == URMA_SUCCESS);
  urma_target_jetty_t* const second = urma_import_jetty(a->ctx, described, &token);
  described->flag.bs.order_type = URMA_OT;
  urma_target_jetty_t* const other_order = urma_import_jetty(a->ctx, described, &token);
  REQUIRE(second != NULL && other_order != NULL);
  REFUSES(EEXIST, urma_bind_jetty(a->jetty, second));
  CHECK(urma_unbind_jetty(a->jetty) == URMA_SUCCESS);
  CHECK(a->jetty->remote_jetty == NULL);
  REFUSES(EPERM, urma_bind_jetty(a->jetty, other_order));
  CHECK(urma_unimport_jetty(other_order) == URMA_SUCCESS);
  CHECK(urma_unimport_jetty(second) == URMA_SUCCESS);
  urma_put_rjetty(described);
}

// ---- objects in two steps

static void two_steps_jfc(struct end* a) {
  urma_jfc_cfg_t cfg = {.depth = 0, .jfce = a->jfce};
  urma_jfc_t* jfc = NULL;
  urma_cr_t record;
  uint32_t depth = 16;
  CHECK(urma_alloc_jfc(a->ctx, &cfg, &jfc) == URMA_SUCCESS);
  REQUIRE(jfc != NULL);
  REFUSES(EINVAL, urma_active_jfc(jfc));
  REFUSES(EINVAL, urma_deactive_jfc(jfc));
  REFUSES(-1, urma_poll_jfc(jfc, 1, &record));
  REFUSES(EINVAL, urma_rearm_jfc(jfc, false));
  urma_jfs_cfg_t jfs = jfs_cfg_of(jfc);
  NULLS(EINVAL, urma_create_jfs(a->ctx, &jfs));
  REFUSES(EINVAL, urma_set_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, 8));
  REFUSES(EINVAL, urma_set_jfc_opt(jfc, URMA_JFC_DEPTH, NULL, 4));
  REFUSES(EINVAL, urma_set_jfc_opt(jfc, URMA_JFS_DEPTH, &depth, 4));
  CHECK(urma_set_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, 4) == URMA_SUCCESS);
  CHECK(urma_active_jfc(jfc) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_active_jfc(jfc));
  REFUSES(EINVAL, urma_set_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, 4));
  REFUSES(EINVAL, urma_free_jfc(jfc));
  depth = 0;
  REFUSES(EINVAL, urma_get_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, 2));
  CHECK(urma_get_jfc_opt(jfc, URMA_JFC_DEPTH, &depth, 4) == URMA_SUCCESS && depth == 16);
  CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
  CHECK(urma_deactive_jfc(jfc) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_rearm_jfc(jfc, false));
  CHECK(urma_active_jfc(jfc) == URMA_SUCCESS);
  CHECK(urma_poll_jfc(jfc, 1, &record) == 0);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
}

static void two_steps_jfs(struct end* a) {
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  urma_jfs_t* jfs = NULL;
  urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_ERROR};
  const urma_jfs_wr_flag_t flag = {.value = 0};
  uint32_t depth = 8;
  CHECK(urma_alloc_jfs(a->ctx, &cfg, &jfs) == URMA_SUCCESS);
  CHECK(cfg.flag.bs.order_type == URMA_OI);
  REFUSES(EINVAL, urma_modify_jfs(jfs, &attr));
  CHECK(urma_query_jfs(jfs, &cfg, &attr) == URMA_SUCCESS);
  CHECK(attr.state == URMA_JETTY_STATE_RESET);
  REFUSES(EINVAL, urma_write(jfs, a->to, a->there, a->seg, (uint64_t)a->there_memory,
                             (uint64_t)a->memory, 8, flag, 0));
  CHECK(urma_set_jfs_opt(jfs, URMA_JFS_DEPTH, &depth, 4) == URMA_SUCCESS);
  CHECK(urma_active_jfs(jfs) == URMA_SUCCESS);
  CHECK(urma_query_jfs(jfs, &cfg, &attr) == URMA_SUCCESS);
  CHECK(attr.state == URMA_JETTY_STATE_READY && cfg.depth == 8);
  REFUSES(EINVAL, urma_active_jfs(jfs));
  REFUSES(EINVAL, urma_free_jfs(jfs));
  REFUSES(EINVAL, urma_set_jfs_opt(jfs, URMA_JFS_DEPTH, &depth, 4));
  attr = (urma_jfs_attr_t){.mask = JFS_STATE, .state = URMA_JETTY_STATE_RESET};
  REFUSES(EINVAL, urma_modify_jfs(jfs, &attr));
  CHECK(urma_deactive_jfs(jfs) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_deactive_jfs(jfs));
  CHECK(urma_free_jfs(jfs) == URMA_SUCCESS);
  cfg.jfc = NULL;
  REFUSES(EINVAL, urma_alloc_jfs(a->ctx, &cfg, &jfs));
}

static void two_steps_jetty(struct end* a) {
  urma_jfr_cfg_t jfr_cfg = jfr_cfg_of(a->jfc);
  urma_jfr_t* jfr = NULL;
  CHECK(urma_alloc_jfr(a->ctx, &jfr_cfg, &jfr) == URMA_SUCCESS);
  CHECK(jfr_cfg.flag.bs.order_type == URMA_OI);
  REFUSES(EINVAL, urma_recv(jfr, a->seg, (uint64_t)a->memory, 8, 0));
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, NULL);
  urma_jetty_t* jetty = NULL;
  urma_rjetty_t* described = NULL;
  uint32_t bytes = 0;
  CHECK(urma_alloc_jetty(a->ctx, &cfg, &jetty) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_get_rjetty(jetty, &described, &bytes));
  REFUSES(EINVAL, urma_active_jetty(jetty));
  CHECK(urma_set_jetty_opt(jetty, URMA_JETTY_BIND_JFR, &jfr, 8) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_active_jetty(jetty));  // the JFR is not active
  CHECK(urma_active_jfr(jfr) == URMA_SUCCESS);
  CHECK(urma_active_jetty(jetty) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_deactive_jfr(jfr));
  CHECK(urma_get_rjetty(jetty, &described, &bytes) == URMA_SUCCESS);
  urma_put_rjetty(described);
  REFUSES(EINVAL, urma_free_jetty(jetty));
  CHECK(urma_deactive_jetty(jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_get_rjetty(jetty, &described, &bytes));
  REFUSES(EINVAL, urma_active_jetty(jetty));
  CHECK(urma_free_jetty(jetty) == URMA_SUCCESS);
}

// An event channel that was deleted between the two steps.
static void two_steps_jfce(struct end* a) {
  urma_jfce_t* const jfce = urma_create_jfce(a->ctx);
  urma_jfc_cfg_t cfg = {.depth = 4, .jfce = jfce};
  urma_jfc_t* jfc = NULL;
  CHECK(urma_alloc_jfc(a->ctx, &cfg, &jfc) == URMA_SUCCESS);
  CHECK(urma_delete_jfce(jfce) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_active_jfc(jfc));
  CHECK(urma_free_jfc(jfc) == URMA_SUCCESS);
}

// ---- calls that are not supported

static void not_supported(struct end* a) {
  urma_user_ctl_in_t in = {0};
  urma_user_ctl_out_t out = {0};
  urma_tp_attr_value_t value = {0};
  uint8_t mac[URMA_MAC_BYTES];
  REFUSES(EPERM, urma_user_ctl(a->ctx, &in, &out));
  REFUSES(EINVAL, urma_user_ctl(a->ctx, NULL, &out));
  REFUSES(-EPERM, urma_get_tpn(a->jetty));
  REFUSES(EPERM, urma_set_tp_attr(a->ctx, 1, 1, 1, &value));
  REFUSES(EPERM, urma_get_smac(a->ctx, mac));
  REFUSES(EINVAL, urma_set_context_opt(a->ctx, URMA_OPT_AGGR_MODE, mac, 1));
}

static void addresses(void) {
  urma_eid_t eid;
  char text[URMA_EID_STR_LEN + 1];
  CHECK(urma_str_to_eid(NULL, &eid) == -EINVAL);
  CHECK(urma_str_to_eid("1.2.3.4", NULL) == -EINVAL);
  static const char* const wrong[] = {"",   "x",  "1.2.3", "1.2.3.4.5",
                                      "0x", "-1", "::g",   "4294967296"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    CHECK(urma_str_to_eid(wrong[i], &eid) == -EINVAL);
  }
  static const char* const same[] = {"1.2.3.4", "0x01020304", "16909060", "::ffff:1.2.3.4"};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; ++i) {
    CHECK(urma_str_to_eid(same[i], &eid) == 0);
    snprintf(text, sizeof text, EID_FMT, EID_ARGS(eid));
    CHECK(strcmp(text, "0000:0000:0000:0000:0000:ffff:0102:0304") == 0);
  }
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  urma_device_attr_t attr;
  CHECK(urma_query_device(ends.a.ctx->dev, &attr) == URMA_SUCCESS);
  null_results(&ends);
  null_works(&ends);
  wrong_jfc_cfg(&ends.a, &attr.dev_cap);
  wrong_jfs_cfg(&ends.a, &attr.dev_cap);
  wrong_jfr_cfg(&ends.a, &attr.dev_cap);
  wrong_jetty_cfg(&ends.a, &attr.dev_cap);
  orders(&ends.a);
  default_orders(&ends.a);
  descriptions(&ends);
  wrong_seg_cfg(&ends.a);
  wrong_seg_fields(&ends);
  foreign_objects(&ends);
  foreign_ranges(&ends);
  wrong_ranges(&ends);
  wrong_opcodes(&ends);
  wrong_atomics(&ends);
  objects_in_use(&ends);
  deleted_then_made_again(&ends.a);
  token_in_use(&ends.a);
  token_of_another_segment(&ends.a);
  chosen_numbers(&ends.a);
  two_steps_jfc(&ends.a);
  two_steps_jfs(&ends.a);
  two_steps_jetty(&ends.a);
  two_steps_jfce(&ends.a);
  not_supported(&ends.a);
  REFUSES(EPERM, urma_bind_jetty(ends.a.jetty, ends.a.to));
  end_ends(&ends);
  ends = make_ends(device, URMA_TM_RC);
  bound_jetties(&ends);
  bind_refused(&ends);
  end_ends(&ends);
}

int main(void) {
  const struct objects null = {0};
  name_devices();
  CHECK(urma_register_log_func(count_reason) == URMA_SUCCESS);
  without_objects(&null);
  for (int i = 0; i < device_count; ++i) {
    const struct objects gone = deleted_objects(devices[i]);
    without_objects(&gone);
    one_device(devices[i]);
  }
  addresses();
  remove_devices();
  return failures != 0;
}
