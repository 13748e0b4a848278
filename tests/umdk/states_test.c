// SPDX-License-Identifier: Apache-2.0
// The states of queues: which changes are valid, what becomes of works and receives in each state,
// and that a queue works again after it was reset.
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"
#include "tests/umdk/refusals.h"

enum { reset = URMA_JETTY_STATE_RESET, ready, suspended, error, state_count };

// ---- the whole table

// Which changes UMDK's driver has. The state that a queue is in is accepted without effect.
static const bool valid[state_count][state_count] = {
    [reset] = {[reset] = true, [ready] = true},
    [ready] = {[ready] = true, [suspended] = true, [error] = true},
    [suspended] = {[suspended] = true, [error] = true},
    [error] = {[error] = true, [reset] = true},
};

// A queue of any kind, by its calls. A JFR has the same states, but is never suspended.
struct kind {
  urma_status_t (*set)(struct end* end, int state);
  int (*get)(struct end* end);
  bool suspends;
};

static urma_jfs_t* jfs_of_table;

static urma_status_t set_jfs(struct end* end, int state) {
  (void)end;
  return set_jfs_state(jfs_of_table, (urma_jetty_state_t)state);
}

static int get_jfs(struct end* end) {
  (void)end;
  urma_jfs_cfg_t cfg;
  urma_jfs_attr_t attr;
  CHECK(urma_query_jfs(jfs_of_table, &cfg, &attr) == URMA_SUCCESS);
  return (int)attr.state;
}

static urma_status_t set_jetty(struct end* end, int state) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = (urma_jetty_state_t)state};
  return urma_modify_jetty(end->jetty, &attr);
}

static int get_jetty(struct end* end) {
  urma_jetty_cfg_t cfg;
  urma_jetty_attr_t attr;
  CHECK(urma_query_jetty(end->jetty, &cfg, &attr) == URMA_SUCCESS);
  return (int)attr.state;
}

static const int jfr_states[state_count] = {URMA_JFR_STATE_RESET, URMA_JFR_STATE_READY, -1,
                                            URMA_JFR_STATE_ERROR};

static urma_status_t set_jfr(struct end* end, int state) {
  return set_jfr_state(end->jfr, (urma_jfr_state_t)jfr_states[state]);
}

static int get_jfr(struct end* end) {
  urma_jfr_cfg_t cfg;
  urma_jfr_attr_t attr;
  CHECK(urma_query_jfr(end->jfr, &cfg, &attr) == URMA_SUCCESS);
  for (int state = 0; state < state_count; ++state) {
    if (jfr_states[state] == (int)attr.state) return state;
  }
  return -1;
}

// Brings a queue from the state READY into another one, or back.
static void lead(struct end* end, const struct kind* kind, int to) {
  static const int ways[state_count][4] = {{error, reset, -1}, {-1}, {suspended, -1}, {error, -1}};
  for (const int* step = ways[to]; *step >= 0; ++step) CHECK(kind->set(end, *step) == 0);
}

static void lead_back(struct end* end, const struct kind* kind) {
  if (kind->get(end) == suspended) CHECK(kind->set(end, error) == 0);
  if (kind->get(end) == error) CHECK(kind->set(end, reset) == 0);
  if (kind->get(end) == reset) CHECK(kind->set(end, ready) == 0);
}

static void each_change(struct end* end, const struct kind* kind, const char* name) {
  for (int from = 0; from < state_count; ++from) {
    for (int to = 0; to < state_count; ++to) {
      if (from == suspended && !kind->suspends) continue;
      const int before = failures;
      const bool accepted = valid[from][to] && (to != suspended || kind->suspends);
      lead(end, kind, from);
      CHECK(kind->get(end) == from);
      if (accepted) {
        CHECK(kind->set(end, to) == URMA_SUCCESS);
      } else {
        REFUSES(EINVAL, kind->set(end, to));
      }
      CHECK(kind->get(end) == (accepted ? to : from));
      lead_back(end, kind);
      if (failures != before) fprintf(stderr, "%s: from state %d to %d\n", name, from, to);
    }
  }
  settle_down(end);
}

static void whole_table(struct end* end) {
  static const struct kind jfs = {set_jfs, get_jfs, true};
  static const struct kind jetty = {set_jetty, get_jetty, true};
  static const struct kind jfr = {set_jfr, get_jfr, false};
  jfs_of_table = deep_jfs(end, 8);
  each_change(end, &jfs, "JFS");
  each_change(end, &jetty, "Jetty");
  each_change(end, &jfr, "JFR");
  CHECK(urma_delete_jfs(jfs_of_table) == URMA_SUCCESS);
}

// ---- cycles, with traffic afterwards

// Sends a message from one end to the other.
static void exchange(struct end* from, struct end* to) {
  urma_cr_t record;
  receive(to, 0, 64, 7);
  post_send(from, 8, false);
  REQUIRE(collect(to->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 7 && record.flag.bs.s_r == 1);
  REQUIRE(collect(from->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 8 && record.flag.bs.s_r == 0);
}

static void write_there(struct end* end) {
  urma_cr_t record;
  post_write(end, 9);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 9);
}

static void check_record(struct end* end, urma_cr_status_t status, uint64_t user_ctx) {
  urma_cr_t record;
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == status && record.user_ctx == user_ctx);
}

static void check_end_record(struct end* end, urma_cr_status_t status) {
  urma_cr_t record;
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == status && record.local_id == end->jetty->jetty_id.id);
  CHECK(record.user_data == (uintptr_t)end->jetty);
  CHECK(record.flag.bs.jetty == 1 && record.flag.bs.s_r == 0);
}

static urma_status_t try_send(struct end* end) {
  urma_sge_t from = here(end, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = end->to};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  const urma_status_t status = urma_post_jetty_send_wr(end->jetty, &wr, &bad);
  CHECK(bad == (status == URMA_SUCCESS ? NULL : &wr));
  return status;
}

static urma_status_t try_receive(struct end* end, uint64_t user_ctx) {
  urma_sge_t into = here(end, 0, 64);
  urma_jfr_wr_t wr = {.src = {&into, 1}, .user_ctx = user_ctx};
  urma_jfr_wr_t* bad = NULL;
  const urma_status_t status = urma_post_jfr_wr(end->jfr, &wr, &bad);
  CHECK(bad == (status == URMA_SUCCESS ? NULL : &wr));
  return status;
}

static void jetty_cycle(struct ends* ends) {
  struct end* a = &ends->a;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) post_send(a, (uint64_t)i, false);  // without receives
    set_state(a, URMA_JETTY_STATE_ERROR);
    check_flushed(a, 4);
    set_state(a, URMA_JETTY_STATE_RESET);
    REFUSES(EINVAL, try_send(a));
    no_record(a);
    set_state(a, URMA_JETTY_STATE_READY);
    write_there(a);
    exchange(a, &ends->b);
    exchange(&ends->b, a);
  }
  // Neither records that were not polled before, nor the end of the flush, are lost.
  for (int i = 0; i < 4; ++i) post_send(a, (uint64_t)i, false);
  set_state(a, URMA_JETTY_STATE_ERROR);
  restart(a);
  check_flushed(a, 4);
  write_there(a);
}

// Messages to a Jetty that is reset fail, and wait in no queue.
static void messages_to_a_reset_jetty(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  receive(b, 0, 64, 7);
  set_state(b, URMA_JETTY_STATE_ERROR);
  set_state(b, URMA_JETTY_STATE_RESET);
  post_send(a, 1, false);
  check_record(a, URMA_CR_REM_ACCESS_ABORT_ERR, 1);
  set_state(b, URMA_JETTY_STATE_READY);
  settle_down(b);
  post_send(a, 2, false);
  check_record(b, URMA_CR_SUCCESS, 7);
  check_record(a, URMA_CR_SUCCESS, 2);
}

static void deleted_in_reset(struct end* end) {
  urma_jetty_t* const jetty = another_jetty(end, 0);
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
  attr.state = URMA_JETTY_STATE_RESET;
  CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
}

// As programs that repair a JFR do: through all of its states, with what it had flushed.
static void jfr_cycle(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jfr_t* const jfr = b->jfr;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 3; ++i) CHECK(try_receive(b, (uint64_t)i) == URMA_SUCCESS);
    CHECK(set_jfr_state(jfr, URMA_JFR_STATE_ERROR) == URMA_SUCCESS);
    for (int i = 0; i < 3; ++i) check_record(b, URMA_CR_WR_FLUSH_ERR, (uint64_t)i);
    no_record(b);
    CHECK(set_jfr_state(jfr, URMA_JFR_STATE_RESET) == URMA_SUCCESS);
    REFUSES(EINVAL, try_receive(b, 4));
    CHECK(set_jfr_state(jfr, URMA_JFR_STATE_READY) == URMA_SUCCESS);
    exchange(&ends->a, b);
  }
  // Messages to the JFR itself arrive again, too.
  urma_target_jetty_t* const to = import_number(ends, jfr->jfr_id, URMA_JFR);
  urma_target_jetty_t* const before = ends->a.to;
  ends->a.to = to;
  exchange(&ends->a, b);
  ends->a.to = before;
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
}

// ---- receives that are posted in the error state

// They end at once, even if messages wait for receives.
static void receives_in_error(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_cr_t record;
  post_send(a, 8, false);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_ERROR) == URMA_SUCCESS);
  CHECK(arm(b));
  CHECK(try_receive(b, 5) == URMA_SUCCESS);
  CHECK(take_event(b, wait_ms));
  REQUIRE(collect(b->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_WR_FLUSH_ERR && record.user_ctx == 5);
  CHECK(record.flag.bs.s_r == 1 && record.flag.bs.jetty == 0 && record.completion_len == 0);
  CHECK(record.local_id == b->jfr->jfr_id.id && record.user_data == (uintptr_t)b->jfr);
  // As many as the JFR has, until they are polled.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < (int)b->jfr->jfr_cfg.depth; ++i) {
      CHECK(try_receive(b, (uint64_t)i) == URMA_SUCCESS);
    }
    CHECK(try_receive(b, 99) == URMA_ENOMEM);
    for (int i = 0; i < (int)b->jfr->jfr_cfg.depth; ++i) {
      check_record(b, URMA_CR_WR_FLUSH_ERR, (uint64_t)i);
    }
    no_record(b);
  }
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_RESET) == URMA_SUCCESS);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_READY) == URMA_SUCCESS);
  for (int i = 0; i < (int)b->jfr->jfr_cfg.depth; ++i) {
    CHECK(try_receive(b, (uint64_t)i) == URMA_SUCCESS);
  }
  check_record(b, URMA_CR_SUCCESS, 0);
  check_record(a, URMA_CR_SUCCESS, 8);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_ERROR) == URMA_SUCCESS);
  for (int i = 1; i < (int)b->jfr->jfr_cfg.depth; ++i) {
    check_record(b, URMA_CR_WR_FLUSH_ERR, (uint64_t)i);
  }
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_RESET) == URMA_SUCCESS);
  CHECK(set_jfr_state(b->jfr, URMA_JFR_STATE_READY) == URMA_SUCCESS);
}

// Their records go with the JFR.
static void records_of_a_deleted_jfr(struct end* end) {
  urma_jfr_t* const before = end->jfr;
  end->jfr = urma_create_jfr(end->ctx, &before->jfr_cfg);
  REQUIRE(end->jfr != NULL);
  CHECK(set_jfr_state(end->jfr, URMA_JFR_STATE_ERROR) == URMA_SUCCESS);
  CHECK(try_receive(end, 5) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(end->jfr) == URMA_SUCCESS);
  end->jfr = before;
  no_record(end);
}

// ---- suspended queues

// Works end, one record follows them, and messages still arrive.
static void suspended_jetty(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  settle_down(a);
  CHECK(arm(a));
  for (int i = 0; i < 3; ++i) post_send(a, (uint64_t)i, false);  // without receives
  CHECK(!take_event(a, no_event_ms));
  set_state(a, URMA_JETTY_STATE_SUSPENDED);
  CHECK(take_event(a, wait_ms));
  for (int i = 0; i < 3; ++i) check_record(a, URMA_CR_WR_FLUSH_ERR, (uint64_t)i);
  check_end_record(a, URMA_CR_WR_SUSPEND_DONE);
  set_state(a, URMA_JETTY_STATE_SUSPENDED);  // has no effect
  no_record(a);
  post_write(a, 4);
  check_record(a, URMA_CR_WR_FLUSH_ERR, 4);
  exchange(b, a);
  set_state(a, URMA_JETTY_STATE_ERROR);
  check_end_record(a, URMA_CR_WR_FLUSH_ERR_DONE);
  post_write(a, 5);
  check_record(a, URMA_CR_WR_FLUSH_ERR, 5);
  no_record(a);
  post_send(b, 6, false);
  check_record(b, URMA_CR_REM_ACCESS_ABORT_ERR, 6);
  restart(a);
  exchange(a, b);
  exchange(b, a);
}

static void suspended_jfs(struct end* end) {
  urma_cr_t record;
  urma_jfs_t* const jfs = deep_jfs(end, 8);
  CHECK(urma_send(jfs, end->to, end->seg, (uint64_t)end->memory, 8, signalled, 3) == 0);
  CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_SUSPENDED) == URMA_SUCCESS);
  check_record(end, URMA_CR_WR_FLUSH_ERR, 3);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_WR_SUSPEND_DONE && record.local_id == jfs->jfs_id.id);
  CHECK(record.user_data == (uintptr_t)jfs && record.flag.bs.jetty == 0);
  CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_ERROR) == URMA_SUCCESS);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_WR_FLUSH_ERR_DONE && record.local_id == jfs->jfs_id.id);
  CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_RESET) == URMA_SUCCESS);
  REFUSES(EINVAL, urma_send(jfs, end->to, end->seg, (uint64_t)end->memory, 8, signalled, 3));
  CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_READY) == URMA_SUCCESS);
  post_to(end, jfs, 4);
  check_record(end, URMA_CR_SUCCESS, 4);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// A failure that is polled after the queue was flushed and is ready again does not suspend it.
static void old_failure(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_token_t wrong = {secret.token + 1};
  cfg.flag.bs.error_suspend = 1;
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  urma_target_seg_t* const seg =
      urma_import_seg(a->ctx, &ends->b.seg->seg, &wrong, 0, (urma_import_seg_flag_t){0});
  REQUIRE(jfs != NULL && seg != NULL);
  for (int round = 0; round < 2; ++round) {
    CHECK(urma_write(jfs, a->to, seg, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory, 8,
                     signalled, 1) == URMA_SUCCESS);
    usleep(50 * 1000);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_ERROR) == URMA_SUCCESS);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_RESET) == URMA_SUCCESS);
    CHECK(set_jfs_state(jfs, URMA_JETTY_STATE_READY) == URMA_SUCCESS);
    check_record(a, URMA_CR_REM_ACCESS_ABORT_ERR, 1);
    check_record(a, URMA_CR_WR_FLUSH_ERR_DONE, 0);
    no_record(a);
    post_to(a, jfs, 2);
    check_record(a, URMA_CR_SUCCESS, 2);
  }
  // A later one does.
  CHECK(urma_write(jfs, a->to, seg, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory, 8,
                   signalled, 3) == URMA_SUCCESS);
  check_record(a, URMA_CR_REM_ACCESS_ABORT_ERR, 3);
  check_record(a, URMA_CR_WR_SUSPEND_DONE, 0);
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS && urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// ---- bound Jetties

static void bound_jetties(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RC);
  CHECK(urma_bind_jetty(ends.a.jetty, ends.a.to) == URMA_SUCCESS);
  CHECK(urma_bind_jetty(ends.b.jetty, ends.b.to) == URMA_SUCCESS);
  whole_table(&ends.a);
  jetty_cycle(&ends);
  suspended_jetty(&ends);
  CHECK(urma_unbind_jetty(ends.a.jetty) == URMA_SUCCESS);
  CHECK(urma_unbind_jetty(ends.b.jetty) == URMA_SUCCESS);
  end_ends(&ends);
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  whole_table(&ends.a);
  jetty_cycle(&ends);
  messages_to_a_reset_jetty(&ends);
  deleted_in_reset(&ends.a);
  jfr_cycle(&ends);
  receives_in_error(&ends);
  records_of_a_deleted_jfr(&ends.b);
  suspended_jetty(&ends);
  suspended_jfs(&ends.a);
  old_failure(&ends);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) {
    one_device(devices[i]);
    bound_jetties(devices[i]);
  }
  remove_devices();
  return failures != 0;
}
