// SPDX-License-Identifier: Apache-2.0
#include "tests/umdk/exchanges.h"

#include <poll.h>
#include <unistd.h>

#include "tests/umdk/check.h"

const urma_jfs_wr_flag_t signalled = {.bs = {.complete_enable = 1}};

bool arm(struct end* end) { return urma_rearm_jfc(end->jfc, false) == URMA_SUCCESS; }

bool readable(int fd, int limit_ms) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  return poll(&one, 1, limit_ms) == 1;
}

bool take_event(struct end* end, int limit_ms) {
  urma_jfc_t* ready[4] = {NULL};
  uint32_t one = 1;
  const int count = urma_wait_jfc(end->jfce, 4, limit_ms, ready);
  CHECK(count == 0 || (count == 1 && ready[0] == end->jfc));
  if (count == 1) urma_ack_jfc(ready, &one, 1);
  return count == 1;
}

void post_write(struct end* end, uint64_t user_ctx) {
  urma_sge_t from = here(end, 0, 8);
  urma_sge_t to = there(end, 0, 8);
  urma_jfs_wr_t wr = {
      .opcode = URMA_OPC_WRITE, .flag = signalled, .tjetty = end->to, .user_ctx = user_ctx};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

void post_send(struct end* end, uint64_t user_ctx, bool solicits) {
  urma_sge_t from = here(end, 0, 8);
  urma_jfs_wr_t wr = {
      .opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = end->to, .user_ctx = user_ctx};
  wr.flag.bs.solicited_enable = solicits;
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

void settle_down(struct end* end) {
  urma_cr_t records[8];
  while (take_event(end, 0)) continue;
  while (urma_poll_jfc(end->jfc, 8, records) > 0) continue;
}

urma_status_t set_jfs_state(urma_jfs_t* jfs, urma_jetty_state_t state) {
  urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = state};
  return urma_modify_jfs(jfs, &attr);
}

urma_status_t set_jfr_state(urma_jfr_t* jfr, urma_jfr_state_t state) {
  urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = state};
  return urma_modify_jfr(jfr, &attr);
}

void set_state(struct end* end, urma_jetty_state_t state) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};
  urma_jetty_cfg_t cfg;
  CHECK(urma_modify_jetty(end->jetty, &attr) == URMA_SUCCESS);
  CHECK(urma_query_jetty(end->jetty, &cfg, &attr) == URMA_SUCCESS);
  CHECK(attr.state == state);
}

void restart(struct end* end) {
  set_state(end, URMA_JETTY_STATE_RESET);
  set_state(end, URMA_JETTY_STATE_READY);
}

void check_flushed(struct end* end, int works) {
  urma_cr_t records[queue_depth + 1];
  CHECK(collect(end->jfc, records, works + 1) == works + 1);
  for (int i = 0; i < works; ++i) {
    CHECK(records[i].status == URMA_CR_WR_FLUSH_ERR);
    CHECK(records[i].user_ctx == (uint64_t)i);
    CHECK(records[i].local_id == end->jetty->jetty_id.id);
  }
  CHECK(records[works].status == URMA_CR_WR_FLUSH_ERR_DONE);
  CHECK(records[works].local_id == end->jetty->jetty_id.id);
  CHECK(records[works].user_data == (uintptr_t)end->jetty);
  CHECK(records[works].flag.bs.jetty == 1 && records[works].flag.bs.s_r == 0);
  CHECK(urma_poll_jfc(end->jfc, 1, records) == 0);
}

void no_record(struct end* end) {
  urma_cr_t record;
  usleep(10 * 1000);
  CHECK(urma_poll_jfc(end->jfc, 1, &record) == 0);
}

void take_records(struct end* end, int count) {
  urma_cr_t records[8];
  CHECK(collect(end->jfc, records, count) == count);
}

urma_jetty_t* another_jetty(struct end* end, uint32_t id) {
  urma_jetty_cfg_t cfg = end->jetty->jetty_cfg;
  cfg.id = id;
  urma_jetty_t* const jetty = urma_create_jetty(end->ctx, &cfg);
  REQUIRE(jetty != NULL);
  return jetty;
}

urma_jetty_t* replace(struct end* end, urma_jetty_t* jetty, uint32_t id) {
  const uint32_t number = jetty->jetty_id.id;
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  urma_jetty_t* const next = another_jetty(end, id);
  CHECK(next->jetty_id.id == number);
  return next;
}

urma_target_jetty_t* import_number(struct ends* ends, urma_jetty_id_t id, urma_target_type_t type) {
  urma_token_t token = secret;
  urma_rjetty_t jetty = {.jetty_id = id, .trans_mode = URMA_TM_RM, .type = type};
  urma_rjfr_t jfr = {.jfr_id = id, .trans_mode = URMA_TM_RM};
  jetty.flag.bs.token_policy = jfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_target_jetty_t* const target = type == URMA_JFR
                                          ? urma_import_jfr(ends->a.ctx, &jfr, &token)
                                          : urma_import_jetty(ends->a.ctx, &jetty, &token);
  REQUIRE(target != NULL);
  return target;
}

urma_jfs_t* deep_jfs(struct end* end, uint32_t depth) {
  urma_jfs_cfg_t cfg = {.depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  return jfs;
}

void post_to(struct end* end, urma_jfs_t* jfs, uint64_t user_ctx) {
  CHECK(urma_write(jfs, end->to, end->there, end->seg, (uint64_t)end->there_memory,
                   (uint64_t)end->memory, 8, signalled, user_ctx) == URMA_SUCCESS);
}
