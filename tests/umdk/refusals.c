// SPDX-License-Identifier: Apache-2.0
#include "tests/umdk/refusals.h"

#include <string.h>

int reasons = 0;
char last_reason[512];

static void count_reason(int level, char* message) {
  if (level == URMA_VLOG_LEVEL_ERR && strstr(message, "Fix: ") != NULL) ++reasons;
  snprintf(last_reason, sizeof last_reason, "%s", message);
}

void count_reasons(void) { CHECK(urma_register_log_func(count_reason) == URMA_SUCCESS); }

urma_jfs_cfg_t jfs_cfg_of(urma_jfc_t* jfc) {
  return (urma_jfs_cfg_t){
      .depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = jfc};
}

urma_jfr_cfg_t jfr_cfg_of(urma_jfc_t* jfc) {
  return (urma_jfr_cfg_t){.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
}

urma_jetty_cfg_t jetty_cfg_of(urma_jfc_t* jfc, urma_jfr_t* jfr) {
  urma_jetty_cfg_t cfg = {.jfs_cfg = jfs_cfg_of(jfc)};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  return cfg;
}

urma_seg_cfg_t seg_cfg_of(void* memory, uint32_t access) {
  urma_seg_cfg_t cfg = {.va = (uint64_t)memory, .len = 4096, .token_value = secret};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access & 0x3f;
  return cfg;
}
