// SPDX-License-Identifier: Apache-2.0
// Objects that are made in two steps, alloc and active: which calls each of them accepts.

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

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

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  two_steps_jfc(&ends.a);
  two_steps_jfs(&ends.a);
  two_steps_jetty(&ends.a);
  two_steps_jfce(&ends.a);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
