// SPDX-License-Identifier: Apache-2.0
// Queues in the error state: their works end, and one further record says so.

#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

// Works that wait for a receive end when their Jetty enters the error state.
static void flushed_works(struct ends* ends) {
  struct end* a = &ends->a;
  urma_cr_t record;
  settle_down(a);
  CHECK(arm(a));
  for (int i = 0; i < 5; ++i) post_send(a, (uint64_t)i, false);
  CHECK(!take_event(a, no_event_ms));
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(take_event(a, wait_ms));
  CHECK(urma_flush_jetty(a->jetty, 1, &record) == 0);
  check_flushed(a, 5);
  // It is in the error state already: nothing ends a second time.
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(urma_poll_jfc(a->jfc, 1, &record) == 0);
  // Works that are posted now end at once.
  post_write(a, 9);
  CHECK(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_WR_FLUSH_ERR && record.user_ctx == 9);
  restart(a);
  post_write(a, 10);
  CHECK(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 10);
  set_state(a, URMA_JETTY_STATE_ERROR);
  check_flushed(a, 0);
  restart(a);
}

static void flushed_atomics(struct ends* ends) {
  struct end* a = &ends->a;
  urma_cr_t record;
  for (int round = 0; round < 2 * queue_depth; ++round) {
    post_send(a, 0, false);  // without a receive for it
    urma_sge_t word = there(a, 0, 8);
    urma_sge_t previous = here(a, 0, 8);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .flag = signalled, .tjetty = a->to, .user_ctx = 1};
    wr.faa = (urma_faa_wr_t){.dst = &word, .src = &previous, .operand = 1};
    urma_jfs_wr_t* bad = NULL;
    CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_SUCCESS);
    set_state(a, URMA_JETTY_STATE_ERROR);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(collect(a->jfc, &record, 1) == 1);
      CHECK((record.status == URMA_CR_WR_FLUSH_ERR_DONE) == (i == 2));
      if (i < 2) CHECK(record.user_ctx == (uint64_t)i);
      if (i == 0) CHECK(record.status == URMA_CR_WR_FLUSH_ERR);
    }
    restart(a);
  }
}

static void flushed_receives(struct ends* ends) {
  struct end* b = &ends->b;
  urma_cr_t records[4];
  urma_jfr_attr_t attr = {.mask = JFR_STATE, .state = URMA_JFR_STATE_ERROR};
  urma_jfr_cfg_t cfg;
  for (int i = 0; i < 3; ++i) receive(b, 0, 64, (uint64_t)i);
  CHECK(urma_modify_jfr(b->jfr, &attr) == URMA_SUCCESS);
  CHECK(urma_query_jfr(b->jfr, &cfg, &attr) == URMA_SUCCESS);
  CHECK(attr.state == URMA_JFR_STATE_ERROR);
  REQUIRE(collect(b->jfc, records, 3) == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(records[i].status == URMA_CR_WR_FLUSH_ERR && records[i].flag.bs.s_r == 1);
    CHECK(records[i].user_ctx == (uint64_t)i);
  }
  CHECK(urma_poll_jfc(b->jfc, 1, records) == 0);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_RESET) == URMA_SUCCESS);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_READY) == URMA_SUCCESS);
  receive(b, 0, 64, 7);
  post_send(&ends->a, 8, false);
  CHECK(collect(b->jfc, records, 1) == 1);
  CHECK(records[0].status == URMA_CR_SUCCESS && records[0].user_ctx == 7);
  CHECK(collect(ends->a.jfc, records, 1) == 1 && records[0].status == URMA_CR_SUCCESS);
}

static void flushed_jfs(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfs_cfg_t cfg = {.depth = 4,
                        .trans_mode = URMA_TM_RM,
                        .max_sge = 1,
                        .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                        .jfc = a->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  urma_jfs_attr_t attr = {.mask = JFS_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_cr_t records[3];
  CHECK(urma_send(jfs, a->to, a->seg, (uint64_t)a->memory, 8, signalled, 5) == URMA_SUCCESS);
  CHECK(urma_modify_jfs(jfs, &attr) == URMA_SUCCESS);
  CHECK(urma_flush_jfs(jfs, 1, records) == 0);
  REQUIRE(collect(a->jfc, records, 2) == 2);
  CHECK(records[0].status == URMA_CR_WR_FLUSH_ERR && records[0].user_ctx == 5);
  CHECK(records[1].status == URMA_CR_WR_FLUSH_ERR_DONE && records[1].flag.bs.jetty == 0);
  CHECK(records[1].local_id == jfs->jfs_id.id && records[1].user_data == (uintptr_t)jfs);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// A work that fails suspends a queue that asks for it.
static void suspended(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_jfs_attr_t attr;
  urma_token_t wrong = {secret.token + 1};
  urma_cr_t records[4];
  cfg.flag.bs.error_suspend = 1;
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  urma_target_seg_t* const seg =
      urma_import_seg(a->ctx, &ends->b.seg->seg, &wrong, 0, (urma_import_seg_flag_t){0});
  const uint64_t mine = (uint64_t)a->memory;
  const uint64_t theirs = (uint64_t)a->there_memory;
  for (int i = 0; i < 2; ++i) {
    CHECK(urma_write(jfs, a->to, seg, a->seg, theirs, mine, 8, signalled, 1) == URMA_SUCCESS);
    REQUIRE(collect(a->jfc, records, 2) == 2);
    CHECK(records[0].status == URMA_CR_REM_ACCESS_ABORT_ERR && records[0].user_ctx == 1);
    CHECK(records[1].status == URMA_CR_WR_SUSPEND_DONE);
    CHECK(records[1].local_id == jfs->jfs_id.id && records[1].user_data == (uintptr_t)jfs);
    CHECK(urma_query_jfs(jfs, &cfg, &attr) == URMA_SUCCESS);
    CHECK(attr.state == URMA_JETTY_STATE_SUSPENDED);
    CHECK(urma_write(jfs, a->to, a->there, a->seg, theirs, mine, 8, signalled, 2) == URMA_SUCCESS);
    REQUIRE(collect(a->jfc, records, 1) == 1);
    CHECK(records[0].status == URMA_CR_WR_FLUSH_ERR && records[0].user_ctx == 2);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_READY) == URMA_EINVAL);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_ERROR) == URMA_SUCCESS);
    REQUIRE(collect(a->jfc, records, 1) == 1);
    CHECK(records[0].status == URMA_CR_WR_FLUSH_ERR_DONE);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_RESET) == URMA_SUCCESS);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_READY) == URMA_SUCCESS);
    CHECK(urma_write(jfs, a->to, a->there, a->seg, theirs, mine, 8, signalled, 3) == URMA_SUCCESS);
    REQUIRE(collect(a->jfc, records, 1) == 1);
    CHECK(records[0].status == URMA_CR_SUCCESS && records[0].user_ctx == 3);
  }
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// ---- another queue is busy

enum { backlog = 32 };

// Gives the JFC of this end many records of another queue.
static urma_jfs_t* make_busy(struct end* end, uint32_t depth) {
  urma_jfs_t* const busy = deep_jfs(end, depth);
  for (int i = 0; i < backlog; ++i) post_to(end, busy, 100);
  usleep(50 * 1000);
  return busy;
}

// Polls single records, and posts a work for each of the busy queue, so that the JFC is never
// empty. Returns how many records came between the last of the Jetty `id` and one with this status,
// and counts those of the Jetty.
static int records_between(struct end* end, urma_jfs_t* busy, uint32_t id, urma_cr_status_t status,
                           int* of_id) {
  enum { most = 4 * backlog };
  urma_cr_t record;
  int since = 0;
  *of_id = 0;
  for (; since < most; ++since) {
    REQUIRE(collect(end->jfc, &record, 1) == 1);
    if (record.status == status) {
      CHECK(record.local_id == id);
      break;
    }
    if (record.local_id == id) {
      ++*of_id;
      since = -1;
    } else {
      post_to(end, busy, 100);
      usleep(1000);
    }
  }
  return since;
}

static void end_busy(struct end* end, urma_jfs_t* busy) {
  usleep(50 * 1000);
  settle_down(end);
  CHECK(urma_delete_jfs(busy) == URMA_SUCCESS);
}

// The record that ends a flush comes behind those that were there, and before later ones.
static void flushed_beside_a_busy_queue(struct ends* ends, uint32_t depth) {
  enum { works = 3 };
  struct end* a = &ends->a;
  int flushed = 0;
  settle_down(a);
  for (int i = 0; i < works; ++i) post_send(a, (uint64_t)i, false);  // without receives
  urma_jfs_t* const busy = make_busy(a, depth);
  set_state(a, URMA_JETTY_STATE_ERROR);
  const uint32_t id = a->jetty->jetty_id.id;
  CHECK(records_between(a, busy, id, URMA_CR_WR_FLUSH_ERR_DONE, &flushed) <= backlog);
  CHECK(flushed == works);
  end_busy(a, busy);
  restart(a);
}

// So does the record that ends a suspension: behind those that are there when the failure is
// polled.
static void suspended_beside_a_busy_queue(struct ends* ends, uint32_t depth) {
  struct end* a = &ends->a;
  urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_token_t wrong = {secret.token + 1};
  int failed = 0;
  cfg.flag.bs.error_suspend = 1;
  settle_down(a);
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  urma_target_seg_t* const seg =
      urma_import_seg(a->ctx, &ends->b.seg->seg, &wrong, 0, (urma_import_seg_flag_t){0});
  REQUIRE(jfs != NULL && seg != NULL);
  urma_jfs_t* const busy = make_busy(a, depth);
  CHECK(urma_write(jfs, a->to, seg, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory, 8,
                   signalled, 1) == URMA_SUCCESS);
  usleep(50 * 1000);
  const uint32_t id = jfs->jfs_id.id;
  CHECK(records_between(a, busy, id, URMA_CR_WR_SUSPEND_DONE, &failed) <= backlog);
  CHECK(failed == 1);
  end_busy(a, busy);
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS && urma_delete_jfs(jfs) == URMA_SUCCESS);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    flushed_works(&ends);
    flushed_atomics(&ends);
    flushed_receives(&ends);
    flushed_jfs(&ends);
    suspended(&ends);
    flushed_beside_a_busy_queue(&ends, 64);
    flushed_beside_a_busy_queue(&ends, 2000);
    suspended_beside_a_busy_queue(&ends, 64);
    suspended_beside_a_busy_queue(&ends, 2000);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
