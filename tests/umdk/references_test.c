// SPDX-License-Identifier: Apache-2.0
// Objects that refer to each other: in which order they may be deleted, whose they are, and what is
// left of a deleted one.

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

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

// The token of a TokenID is that of the first segment that peers may access.
static void token_after_a_local_segment(struct end* a) {
  urma_token_id_t* const token = urma_alloc_token_id(a->ctx);
  urma_seg_cfg_t cfg = seg_cfg_of(a->memory, URMA_ACCESS_READ);
  cfg.flag.bs.token_id_valid = 1;
  cfg.token_id = token;
  urma_seg_cfg_t no_token = cfg;
  no_token.flag.bs.token_policy = URMA_TOKEN_NONE;
  no_token.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  urma_target_seg_t* const local = urma_register_seg(a->ctx, &no_token);
  REQUIRE(local != NULL);
  cfg.va += 4096;
  urma_target_seg_t* const shown = urma_register_seg(a->ctx, &cfg);
  REQUIRE(shown != NULL);
  CHECK(shown->seg.token_id == token->token_id);
  no_token.va += 8192;
  urma_target_seg_t* const second_local = urma_register_seg(a->ctx, &no_token);
  REQUIRE(second_local != NULL);
  CHECK(shown->seg.token_id == token->token_id);
  cfg.va += 8192;
  cfg.token_value.token += 1;
  NULLS(EINVAL, urma_register_seg(a->ctx, &cfg));
  cfg.token_value.token -= 1;
  urma_target_seg_t* const last = urma_register_seg(a->ctx, &cfg);
  REQUIRE(last != NULL);
  CHECK(last->seg.token_id == shown->seg.token_id);
  CHECK(urma_unregister_seg(local) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(shown) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(second_local) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(last) == URMA_SUCCESS);
  CHECK(urma_free_token_id(token) == URMA_SUCCESS);
}

// ---- bound Jetties

static void bound_jetties(struct ends* ends) {
  struct end* a = &ends->a;
  REFUSES(EINVAL, urma_unbind_jetty(a->jetty));
  REFUSES(EINVAL, urma_bind_jetty(a->jetty, ends->b.to));  // a target of another context
  CHECK(urma_bind_jetty(a->jetty, a->to) == URMA_SUCCESS);
  REFUSES(EPERM, urma_delete_jetty(a->jetty));
  REFUSES(EPERM, urma_deactive_jetty(a->jetty));
  REFUSES(URMA_FAIL, urma_unimport_jetty(a->to));
  REFUSES(URMA_FAIL, urma_unimport_jfr(a->to));
  // Another Jetty that is bound to the same target.
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  cfg.jfs_cfg.trans_mode = URMA_TM_RC;
  urma_jetty_t* const other = urma_create_jetty(a->ctx, &cfg);
  REQUIRE(other != NULL);
  CHECK(urma_bind_jetty(other, a->to) == URMA_SUCCESS);
  CHECK(urma_unbind_jetty(other) == URMA_SUCCESS);
  REFUSES(URMA_FAIL, urma_unimport_jetty(a->to));
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

// Works and receives whose segment exists go on when another one that has their memory, too, ends.
static void segments_of_the_same_memory(struct ends* ends) {
  struct end* a = &ends->a;
  urma_seg_cfg_t cfg = seg_cfg_of(a->memory, URMA_ACCESS_LOCAL_ONLY);
  urma_target_seg_t* const second = urma_register_seg(a->ctx, &cfg);
  REQUIRE(second != NULL);
  urma_cr_t records[2];
  receive(a, 0, 8, 5);
  urma_sge_t from = here(a, 16, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = a->to, .user_ctx = 6};
  wr.flag.bs.complete_enable = 1;
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_SUCCESS);  // waits for a receive
  CHECK(urma_unregister_seg(second) == URMA_SUCCESS);
  CHECK(urma_poll_jfc(a->jfc, 2, records) == 0);
  receive(&ends->b, 0, 8, 7);
  REQUIRE(collect(a->jfc, records, 1) == 1);
  CHECK(records[0].user_ctx == 6 && records[0].status == URMA_CR_SUCCESS);
  REQUIRE(collect(ends->b.jfc, records, 1) == 1);
  wr.tjetty = ends->b.to;
  from = here(&ends->b, 16, 8);
  CHECK(urma_post_jetty_send_wr(ends->b.jetty, &wr, &bad) == URMA_SUCCESS);
  REQUIRE(collect(a->jfc, records, 1) == 1);
  CHECK(records[0].user_ctx == 5 && records[0].status == URMA_CR_SUCCESS);
  REQUIRE(collect(ends->b.jfc, records, 1) == 1);
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  segments_of_the_same_memory(&ends);
  objects_in_use(&ends);
  foreign_objects(&ends);
  deleted_then_made_again(&ends.a);
  token_in_use(&ends.a);
  token_of_another_segment(&ends.a);
  token_after_a_local_segment(&ends.a);
  REFUSES(EPERM, urma_bind_jetty(ends.a.jetty, ends.a.to));
  end_ends(&ends);
  ends = make_ends(device, URMA_TM_RC);
  bound_jetties(&ends);
  bind_refused(&ends);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
