// SPDX-License-Identifier: Apache-2.0
// Works that fail at the target, and what both sides see.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

enum { short_timeout = 1, bound_ms = 4000 };  // 1 s

static urma_jfs_t* make_jfs(struct end* end, uint8_t rnr_retry, uint8_t err_timeout) {
  urma_jfs_cfg_t cfg = {.depth = 8,
                        .trans_mode = URMA_TM_RM,
                        .max_sge = 1,
                        .rnr_retry = rnr_retry,
                        .err_timeout = err_timeout,
                        .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  return jfs;
}

static urma_cr_status_t write_within(struct end* end, urma_target_seg_t* seg, uint64_t address,
                                     uint32_t bytes, uint8_t err_timeout) {
  urma_jfs_t* const jfs = make_jfs(end, 7, err_timeout);
  urma_cr_t record = {.status = URMA_CR_WR_UNHANDLED};
  CHECK(urma_write(jfs, end->to, seg, end->seg, address, (uint64_t)end->memory, bytes, signalled,
                   1) == URMA_SUCCESS);
  CHECK(collect(end->jfc, &record, 1) == 1);
  CHECK(record.user_ctx == 1);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  return record.status;
}

static urma_cr_status_t write_to(struct end* end, urma_target_seg_t* seg, uint64_t address,
                                 uint32_t bytes) {
  return write_within(end, seg, address, bytes, 0);
}

// ---- messages

static void too_long(struct ends* ends) {
  urma_sge_t from = here(&ends->a, 0, 50);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .user_ctx = 2};
  urma_cr_t arrived;
  wr.send.src = (urma_sg_t){&from, 1};
  memset(ends->b.memory, 0, 64);
  receive(&ends->b, 0, 10, 1);
  CHECK(run(&ends->a, &wr).status == URMA_CR_REM_OPERATION_ERR);
  REQUIRE(collect(ends->b.jfc, &arrived, 1) == 1);
  CHECK(arrived.status == URMA_CR_LOC_LEN_ERR && arrived.user_ctx == 1);
  CHECK(arrived.flag.bs.s_r == 1 && ends->b.memory[10] == 0);
  receive(&ends->b, 0, 50, 3);  // the queues work on
  CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
  REQUIRE(collect(ends->b.jfc, &arrived, 1) == 1);
  CHECK(arrived.status == URMA_CR_SUCCESS && arrived.user_ctx == 3);
}

static void receiver_not_ready(struct ends* ends) {
  struct end* a = &ends->a;
  urma_cr_t record;
  urma_jfs_t* const impatient = make_jfs(a, 0, 0);
  const double begin = now_ms();
  CHECK(urma_send(impatient, a->to, a->seg, (uint64_t)a->memory, 8, signalled, 1) == 0);
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_RNR_RETRY_CNT_EXC_ERR);
  CHECK(now_ms() - begin < bound_ms);
  CHECK(urma_delete_jfs(impatient) == URMA_SUCCESS);
  urma_jfs_t* const patient = make_jfs(a, 7, 0);
  CHECK(urma_send(patient, a->to, a->seg, (uint64_t)a->memory, 8, signalled, 2) == 0);
  usleep(100 * 1000);
  CHECK(urma_poll_jfc(a->jfc, 1, &record) == 0);
  receive(&ends->b, 0, 64, 5);
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 2);
  REQUIRE(collect(ends->b.jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 5);
  CHECK(urma_delete_jfs(patient) == URMA_SUCCESS);
}

static void wrong_jetty(struct ends* ends, uint32_t id, uint32_t token_value) {
  struct end* a = &ends->a;
  urma_rjetty_t described = {
      .jetty_id = ends->b.jetty->jetty_id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  if (id != 0) described.jetty_id.id = id;
  described.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_token_t token = {token_value};
  urma_target_jetty_t* const target = urma_import_jetty(a->ctx, &described, &token);
  urma_jfs_t* const jfs = make_jfs(a, 7, short_timeout);
  urma_cr_t record;
  REQUIRE(target != NULL);
  CHECK(urma_send(jfs, target, a->seg, (uint64_t)a->memory, 8, signalled, 1) == 0);
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status != URMA_CR_SUCCESS && record.user_ctx == 1);
  CHECK(urma_poll_jfc(ends->b.jfc, 1, &record) == 0);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  CHECK(urma_unimport_jetty(target) == URMA_SUCCESS);
}

// ---- segments

static urma_target_seg_t* register_at(struct end* end, uint64_t offset, uint32_t access) {
  urma_seg_cfg_t cfg = {.va = (uint64_t)end->memory + offset, .len = 4096, .token_value = secret};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = access & 0x3f;
  urma_target_seg_t* const seg = urma_register_seg(end->ctx, &cfg);
  REQUIRE(seg != NULL);
  return seg;
}

static urma_target_seg_t* import_it(struct end* end, const urma_target_seg_t* seg,
                                    uint32_t token_value) {
  urma_token_t token = {token_value};
  urma_seg_t described = seg->seg;
  urma_target_seg_t* const target =
      urma_import_seg(end->ctx, &described, &token, 0, (urma_import_seg_flag_t){0});
  REQUIRE(target != NULL);
  return target;
}

static void wrong_token(struct ends* ends) {
  urma_target_seg_t* const seg = import_it(&ends->a, ends->b.seg, secret.token + 1);
  memset(ends->a.memory, 1, 8);
  memset(ends->b.memory, 0, 8);
  CHECK(write_to(&ends->a, seg, (uint64_t)ends->b.memory, 8) == URMA_CR_REM_ACCESS_ABORT_ERR);
  CHECK(ends->b.memory[0] == 0);
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS);
}

// With a policy, 0 is a token as any other.
static void token_of_0(struct ends* ends) {
  urma_seg_cfg_t cfg = {.va = (uint64_t)ends->b.memory + 8192, .len = 4096};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  urma_target_seg_t* const seg = urma_register_seg(ends->b.ctx, &cfg);
  REQUIRE(seg != NULL);
  urma_target_seg_t* const right = import_it(&ends->a, seg, 0);
  urma_target_seg_t* const wrong = import_it(&ends->a, seg, 1);
  memset(ends->a.memory, 1, 8);
  memset(ends->b.memory + 8192, 0, 8);
  CHECK(write_to(&ends->a, wrong, cfg.va, 8) == URMA_CR_REM_ACCESS_ABORT_ERR);
  CHECK(ends->b.memory[8192] == 0);
  CHECK(write_to(&ends->a, right, cfg.va, 8) == URMA_CR_SUCCESS);
  CHECK(ends->b.memory[8192] == 1);
  CHECK(urma_unimport_seg(wrong) == URMA_SUCCESS);
  CHECK(urma_unimport_seg(right) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
}

// Ranges that are not, or not entirely, in the segment. An importer that believes that the segment
// is larger is refused by its owner.
static void outside(struct ends* ends) {
  struct end* a = &ends->a;
  urma_target_seg_t* const seg = register_at(&ends->b, 8192, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  urma_target_seg_t* const target = import_it(a, seg, secret.token);
  urma_target_seg_t larger = *seg;
  larger.seg.len = 1 << 20;
  urma_target_seg_t* const claimed = import_it(a, &larger, secret.token);
  const uint64_t base = (uint64_t)ends->b.memory + 8192;
  const uint64_t wrong[] = {base - 8, base - 4, base + 4092, base + 4096, 0, UINT64_MAX - 3};
  memset(a->memory, 1, 8);
  memset(ends->b.memory, 0, 32768);
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    CHECK(write_to(a, target, wrong[i], 8) != URMA_CR_SUCCESS);
    CHECK(write_to(a, claimed, wrong[i], 8) != URMA_CR_SUCCESS);
  }
  for (int i = 0; i < 32768; ++i) CHECK(ends->b.memory[i] == 0);
  CHECK(write_to(a, target, base + 4088, 8) == URMA_CR_SUCCESS);
  CHECK(urma_unimport_seg(claimed) == URMA_SUCCESS);
  CHECK(urma_unimport_seg(target) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
}

static void missing_rights(struct ends* ends) {
  static const uint32_t rights[] = {URMA_ACCESS_LOCAL_ONLY, URMA_ACCESS_READ};
  for (int i = 0; i < 2; ++i) {
    urma_target_seg_t* const seg = register_at(&ends->b, 8192, rights[i]);
    urma_target_seg_t* const target = import_it(&ends->a, seg, secret.token);
    ends->b.memory[8192] = 0;
    CHECK(write_to(&ends->a, target, seg->seg.ubva.va, 8) == URMA_CR_REM_ACCESS_ABORT_ERR);
    CHECK(ends->b.memory[8192] == 0);
    CHECK(urma_unimport_seg(target) == URMA_SUCCESS);
    CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  }
}

static void unregistered(struct ends* ends) {
  urma_target_seg_t* const seg = register_at(&ends->b, 8192, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  urma_target_seg_t* const target = import_it(&ends->a, seg, secret.token);
  const uint64_t va = seg->seg.ubva.va;
  CHECK(write_to(&ends->a, target, va, 8) == URMA_CR_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  ends->b.memory[8192] = 0;
  CHECK(write_to(&ends->a, target, va, 8) == URMA_CR_REM_ACCESS_ABORT_ERR);
  urma_target_seg_t* const again =
      register_at(&ends->b, 8192, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  CHECK(write_to(&ends->a, target, va, 8) == URMA_CR_REM_ACCESS_ABORT_ERR);
  CHECK(ends->b.memory[8192] == 0);
  CHECK(urma_unimport_seg(target) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(again) == URMA_SUCCESS);
}

// ---- a peer that has closed

static void closed_peer(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  struct end* a = &ends.a;
  CHECK(write_to(a, a->there, (uint64_t)ends.b.memory, 8) == URMA_CR_SUCCESS);
  urma_jfs_t* const jfs = make_jfs(a, 7, short_timeout);
  urma_cr_t record;
  CHECK(urma_send(jfs, a->to, a->seg, (uint64_t)a->memory, 8, signalled, 1) == 0);  // waits
  const uint64_t address = (uint64_t)ends.b.memory;
  end_end(&ends.b);
  const double begin = now_ms();
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status != URMA_CR_SUCCESS && record.user_ctx == 1);
  CHECK(write_within(a, a->there, address, 8, short_timeout) != URMA_CR_SUCCESS);
  CHECK(urma_send(jfs, a->to, a->seg, (uint64_t)a->memory, 8, signalled, 2) == 0);
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status != URMA_CR_SUCCESS && record.user_ctx == 2);
  CHECK(now_ms() - begin < bound_ms);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  end_end(a);
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  too_long(&ends);
  receiver_not_ready(&ends);
  wrong_jetty(&ends, 0, secret.token + 1);
  wrong_jetty(&ends, 900, secret.token);
  wrong_jetty(&ends, 70000, secret.token);
  wrong_token(&ends);
  token_of_0(&ends);
  outside(&ends);
  missing_rights(&ends);
  unregistered(&ends);
  end_ends(&ends);
  closed_peer(device);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
