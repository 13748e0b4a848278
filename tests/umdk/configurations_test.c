// SPDX-License-Identifier: Apache-2.0
// Which configurations and descriptions of objects are valid: others are refused, and the log says
// why.
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

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
  urma_jfr_cfg_t all[10];
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
  all[8].min_rnr_timer = 32;
  all[9].flag.bs.order_type = URMA_NO + 1;
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
  static const uint32_t valid[] = {2, 1024, 65535};
  static const uint32_t wrong[] = {1, 65536, 1 << 20};
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
  urma_rjetty_t all[12];
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
  all[6].jetty_id = (urma_jetty_id_t){.id = 1};
  all[7].flag.bs.token_policy = URMA_TOKEN_SIGNED;
  all[8].type = URMA_JFR;
  all[9].type = (urma_target_type_t)3;
  all[10].tp_type = (urma_tp_type_t)3;
  all[11].tp_type = (urma_tp_type_t)-1;
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

// UMDK says less of a JFR than of a Jetty: any order that exists is accepted, and any tp_type.
static void descriptions_of_jfrs(struct ends* ends) {
  struct end* a = &ends->a;
  urma_token_t token = secret;
  urma_rjfr_t good = {.jfr_id = ends->b.jfr->jfr_id, .trans_mode = URMA_TM_RM};
  good.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_rjfr_t all[4] = {good, good, good, good};
  all[0].tp_type = (urma_tp_type_t)3;
  all[1].trans_mode = (urma_transport_mode_t)0;
  all[2].flag.bs.order_type = URMA_NO + 1;
  all[3].flag.bs.token_policy = URMA_TOKEN_ALL_ENCRYPTED;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    const int before = failures;
    NULLS(EINVAL, urma_import_jfr(a->ctx, &all[i], &token));
    if (failures != before) fprintf(stderr, "in the description %zu\n", i);
  }
  for (uint32_t type = URMA_RTP; type <= URMA_UTP; ++type) {
    urma_rjfr_t described = good;
    described.tp_type = (urma_tp_type_t)type;
    described.flag.bs.order_type = URMA_OL;
    urma_target_jetty_t* const target = urma_import_jfr(a->ctx, &described, &token);
    REQUIRE(target != NULL);
    CHECK((uint32_t)target->tp_type == type && target->type == URMA_JFR);
    CHECK(urma_unimport_jfr(target) == URMA_SUCCESS);
  }
}

static void wrong_seg_cfg(struct end* a) {
  enum { local = 1, reads = 2, writes = 4, changes = 8, unknown = 16, top = 32 };
  static const uint32_t refused[] = {local | reads, local | writes,  local | changes,  writes,
                                     changes,       reads | changes, writes | changes, 15,
                                     unknown,       reads | unknown, local | top,      63};
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

// ---- attributes

static const uint32_t unknown_bits[] = {0, 4, 8, 1u << 31, UINT32_MAX, 5};

// Nothing changes if the mask names no attribute, or names unknown ones.
static void masks(struct end* a) {
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  REQUIRE(jfs != NULL);
  for (size_t i = 0; i < sizeof unknown_bits / sizeof unknown_bits[0]; ++i) {
    const uint32_t mask = unknown_bits[i];
    urma_jfc_attr_t of_jfc = {.mask = mask, .moderate_count = 1};
    urma_jfs_attr_t of_jfs = {.mask = mask, .state = URMA_JETTY_STATE_ERROR};
    urma_jfr_attr_t of_jfr = {.mask = mask, .rx_threshold = 7, .state = URMA_JFR_STATE_ERROR};
    urma_jetty_attr_t of_jetty = {.mask = mask, .rx_threshold = 7, .state = URMA_JETTY_STATE_ERROR};
    REFUSES(EINVAL, urma_modify_jfc(a->jfc, &of_jfc));
    REFUSES(EINVAL, urma_modify_jfs(jfs, &of_jfs));
    REFUSES(EINVAL, urma_modify_jfr(a->jfr, &of_jfr));
    REFUSES(EINVAL, urma_modify_jetty(a->jetty, &of_jetty));
  }
  urma_jfs_attr_t of_jfs = {.mask = JFS_STATE | 2, .state = URMA_JETTY_STATE_ERROR};
  REFUSES(EINVAL, urma_modify_jfs(jfs, &of_jfs));
  CHECK(urma_query_jfs(jfs, &cfg, &of_jfs) == 0 && of_jfs.state == URMA_JETTY_STATE_READY);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

static void check_unchanged(struct end* a) {
  urma_jfr_cfg_t jfr_cfg;
  urma_jfr_attr_t of_jfr;
  urma_jetty_cfg_t cfg;
  urma_jetty_attr_t of_jetty;
  CHECK(urma_query_jfr(a->jfr, &jfr_cfg, &of_jfr) == URMA_SUCCESS);
  CHECK(of_jfr.rx_threshold == 0 && of_jfr.state == URMA_JFR_STATE_READY);
  CHECK(urma_query_jetty(a->jetty, &cfg, &of_jetty) == URMA_SUCCESS);
  CHECK(of_jetty.rx_threshold == 0 && of_jetty.state == URMA_JETTY_STATE_READY);
}

// A call that has one wrong value changes none of its attributes.
static void wrong_states(struct end* a) {
  enum { queue_deeper = 65 };  // than the 64 receives that a JFR of UMDK has at least
  static const int states[] = {URMA_JETTY_STATE_RESET, 4, 77, -1};
  for (size_t i = 0; i < sizeof states / sizeof states[0]; ++i) {
    urma_jetty_attr_t attr = {.mask = JETTY_STATE | JETTY_RX_THRESHOLD,
                              .rx_threshold = 7,
                              .state = (urma_jetty_state_t)states[i]};
    REFUSES(EINVAL, urma_modify_jetty(a->jetty, &attr));
  }
  static const int jfr_states[] = {URMA_JFR_STATE_RESET, 3, 77, -1};
  for (size_t i = 0; i < sizeof jfr_states / sizeof jfr_states[0]; ++i) {
    urma_jfr_attr_t attr = {.mask = JFR_STATE | JFR_RX_THRESHOLD,
                            .rx_threshold = 7,
                            .state = (urma_jfr_state_t)jfr_states[i]};
    REFUSES(EINVAL, urma_modify_jfr(a->jfr, &attr));
  }
  urma_jfr_attr_t deep = {.mask = JFR_STATE | JFR_RX_THRESHOLD,
                          .rx_threshold = queue_deeper,
                          .state = URMA_JFR_STATE_ERROR};
  REFUSES(EINVAL, urma_modify_jfr(a->jfr, &deep));
  urma_jetty_attr_t deep_jetty = {.mask = JETTY_RX_THRESHOLD, .rx_threshold = queue_deeper};
  REFUSES(EINVAL, urma_modify_jetty(a->jetty, &deep_jetty));
  check_unchanged(a);
}

// Advice is for connections of URMA_TM_RM, and needs nothing here.
static void advice(const char* device) {
  for (int mode = URMA_TM_RM; mode <= URMA_TM_RC; mode <<= 1) {
    struct ends ends = make_ends(device, (urma_transport_mode_t)mode);
    struct end* a = &ends.a;
    urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
    cfg.trans_mode = (urma_transport_mode_t)mode;
    urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
    REQUIRE(jfs != NULL);
    if (mode == URMA_TM_RM) {
      CHECK(urma_advise_jetty(a->jetty, a->to) == 0 && urma_advise_jfr(jfs, a->to) == 0);
    } else {
      REFUSES(EINVAL, urma_advise_jetty(a->jetty, a->to));
      REFUSES(EINVAL, urma_advise_jfr(jfs, a->to));
    }
    CHECK(urma_unadvise_jetty(a->jetty, a->to) == 0 && urma_unadvise_jfr(jfs, a->to) == 0);
    CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
    end_ends(&ends);
  }
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  urma_device_attr_t attr;
  CHECK(urma_query_device(ends.a.ctx->dev, &attr) == URMA_SUCCESS);
  wrong_jfc_cfg(&ends.a, &attr.dev_cap);
  wrong_jfs_cfg(&ends.a, &attr.dev_cap);
  wrong_jfr_cfg(&ends.a, &attr.dev_cap);
  wrong_jetty_cfg(&ends.a, &attr.dev_cap);
  orders(&ends.a);
  default_orders(&ends.a);
  descriptions(&ends);
  descriptions_of_jfrs(&ends);
  wrong_seg_cfg(&ends.a);
  wrong_seg_fields(&ends);
  chosen_numbers(&ends.a);
  masks(&ends.a);
  wrong_states(&ends.a);
  end_ends(&ends);
  advice(device);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
