// SPDX-License-Identifier: Apache-2.0
// A deleted queue takes its records with it, and the next one of its number has none of them.
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

// ---- a thread that polls while queues come and go

static int stop;

static void* poll_until_stopped(void* argument) {
  struct end* const end = argument;
  urma_cr_t record;
  while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
    if (urma_poll_jfc(end->jfc, 1, &record) < 0) return NULL;
  }
  return argument;
}

static void poll_while_deleting(struct ends* ends) {
  struct end* a = &ends->a;
  pthread_t thread;
  void* result = NULL;
  __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
  REQUIRE(pthread_create(&thread, NULL, poll_until_stopped, a) == 0);
  for (int i = 0; i < 200; ++i) {
    urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
    urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
    REQUIRE(jfs != NULL);
    for (int j = 0; j < 8; ++j) {
      CHECK(urma_write(jfs, a->to, a->there, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory,
                       8, signalled, 1) == URMA_SUCCESS);
    }
    CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  CHECK(pthread_join(thread, &result) == 0 && result != NULL);
}

// The works of a deleted queue have no records.
static void deleted_queue(struct ends* ends) {
  struct end* a = &ends->a;
  urma_cr_t record;
  urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  for (int j = 0; j < 8; ++j) {
    CHECK(urma_write(jfs, a->to, a->there, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory,
                     8, signalled, 1) == URMA_SUCCESS);
  }
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  post_write(a, 77);
  CHECK(collect(a->jfc, &record, 1) == 1 && record.user_ctx == 77);
  CHECK(urma_poll_jfc(a->jfc, 1, &record) == 0);
}

// ---- a queue that is given the number of a deleted one

static urma_status_t post_fetch_add(struct end* end, urma_jetty_t* jetty, uint64_t offset,
                                    uint64_t user_ctx) {
  urma_sge_t word = there(end, offset, 8);
  urma_sge_t previous = here(end, offset, 8);
  urma_jfs_wr_t wr = {
      .opcode = URMA_OPC_FADD, .flag = signalled, .tjetty = end->to, .user_ctx = user_ctx};
  wr.faa = (urma_faa_wr_t){.dst = &word, .src = &previous, .operand = 1};
  urma_jfs_wr_t* bad = NULL;
  return urma_post_jetty_send_wr(jetty, &wr, &bad);
}

static void atomics_of_a_deleted_jetty(struct ends* ends, uint32_t id) {
  struct end* a = &ends->a;
  urma_cr_t record;
  const uint64_t before = 1111;
  const uint64_t second = 2222;
  memcpy(a->there_memory + 64, &before, 8);
  memcpy(a->there_memory + 128, &second, 8);
  memset(a->memory + 128, 0, 8);
  urma_jetty_t* jetty = another_jetty(a, id);
  CHECK(post_fetch_add(a, jetty, 64, 100) == URMA_SUCCESS);
  usleep(50 * 1000);
  jetty = replace(a, jetty, id);
  no_record(a);
  CHECK(post_fetch_add(a, jetty, 128, 200) == URMA_SUCCESS);
  REQUIRE(collect(a->jfc, &record, 1) == 1);
  CHECK(record.user_ctx == 200 && record.status == URMA_CR_SUCCESS);
  CHECK(record.user_data == (uintptr_t)jetty);
  CHECK(memcmp(a->memory + 128, &second, 8) == 0);
  no_record(a);
  // Neither does the record that ends a flush go to the next Jetty.
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
  jetty = replace(a, jetty, id);
  no_record(a);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
}

// The records of other queues stay, in their order, and an arm finds them.
static void records_beside_a_deleted_jetty(struct ends* ends) {
  enum { rounds = 5, posts = 4, taken = 6 };
  struct end* a = &ends->a;
  urma_cr_t record;
  uint64_t posted = 0;
  uint64_t polled = 0;
  urma_jetty_t* jetty = another_jetty(a, 0);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < posts; ++i) {
      post_write(a, posted++);
      CHECK(post_fetch_add(a, jetty, 64, 1000) == URMA_SUCCESS);
      post_write(a, posted++);
    }
    usleep(20 * 1000);
    jetty = replace(a, jetty, 0);
    CHECK(arm(a) && take_event(a, wait_ms));
    const uint64_t until = round + 1 < rounds ? polled + taken : posted;
    while (polled < until) {
      REQUIRE(collect(a->jfc, &record, 1) == 1);
      CHECK(record.user_ctx == polled++ && record.user_data == (uintptr_t)a->jetty);
    }
  }
  no_record(a);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  settle_down(a);
}

// Sends one message to a target in the other end, and to the Jetty there.
static void send_to_both(struct ends* ends, urma_target_jetty_t* target) {
  urma_cr_t records[2];
  urma_sge_t from = here(&ends->a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = target};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(ends->a.jetty, &wr, &bad) == URMA_SUCCESS);
  post_send(&ends->a, 1, false);
  REQUIRE(collect(ends->a.jfc, records, 2) == 2);
  CHECK(records[0].status == URMA_CR_SUCCESS && records[1].status == URMA_CR_SUCCESS);
  usleep(10 * 1000);
}

static void one_receive_is_left(struct end* end) {
  urma_cr_t record;
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.flag.bs.s_r == 1 && record.status == URMA_CR_SUCCESS);
  CHECK(record.local_id == end->jetty->jetty_id.id && record.user_data == (uintptr_t)end->jetty);
  no_record(end);
}

static void receives_of_a_deleted_queue(struct ends* ends) {
  struct end* b = &ends->b;
  settle_down(b);
  urma_jetty_t* jetty = another_jetty(b, 0);
  urma_target_jetty_t* to = import_number(ends, jetty->jetty_id, URMA_JETTY);
  receive(b, 0, 64, 1);
  receive(b, 0, 64, 2);
  send_to_both(ends, to);
  jetty = replace(b, jetty, 0);
  one_receive_is_left(b);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);

  urma_jfr_t* jfr = urma_create_jfr(b->ctx, &b->jfr->jfr_cfg);
  REQUIRE(jfr != NULL);
  to = import_number(ends, jfr->jfr_id, URMA_JFR);
  urma_sge_t place = here(b, 0, 64);
  urma_jfr_wr_t wr = {.src = {&place, 1}, .user_ctx = 3};
  urma_jfr_wr_t* bad = NULL;
  CHECK(urma_post_jfr_wr(jfr, &wr, &bad) == URMA_SUCCESS);
  receive(b, 0, 64, 4);
  send_to_both(ends, to);
  const uint32_t number = jfr->jfr_id.id;
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
  jfr = urma_create_jfr(b->ctx, &b->jfr->jfr_cfg);
  REQUIRE(jfr != NULL);
  CHECK(jfr->jfr_id.id == number);
  one_receive_is_left(b);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
}

static void* make_and_delete(void* argument) {
  struct end* const end = argument;
  while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
    urma_jfs_t* const jfs = deep_jfs(end, 8);
    for (int i = 0; i < 4; ++i) post_to(end, jfs, 1);
    CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  }
  return argument;
}

// Two threads take turns with the same numbers. Each queue has its own records, all of them.
static void numbers_between_threads(struct ends* ends) {
  struct end* a = &ends->a;
  pthread_t thread;
  void* result = NULL;
  __atomic_store_n(&stop, 0, __ATOMIC_RELEASE);
  REQUIRE(pthread_create(&thread, NULL, make_and_delete, a) == 0);
  for (int i = 0; i < 300; ++i) {
    urma_jfs_t* const jfs = deep_jfs(a, 8);
    post_to(a, jfs, 7);
    urma_cr_t record = {0};
    while (record.user_ctx != 7) {
      REQUIRE(collect(a->jfc, &record, 1) == 1);
      CHECK((record.user_ctx == 7) == (record.user_data == (uintptr_t)jfs));
    }
    CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  CHECK(pthread_join(thread, &result) == 0 && result != NULL);
  no_record(a);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    poll_while_deleting(&ends);
    deleted_queue(&ends);
    atomics_of_a_deleted_jetty(&ends, 0);
    atomics_of_a_deleted_jetty(&ends, 9);
    records_beside_a_deleted_jetty(&ends);
    receives_of_a_deleted_queue(&ends);
    numbers_between_threads(&ends);
    end_ends(&ends);
    // One thread polls, and another one ends queues meanwhile.
    lock_free = true;
    ends = make_ends(devices[i], URMA_TM_RM);
    poll_while_deleting(&ends);
    end_ends(&ends);
    lock_free = false;
  }
  remove_devices();
  return failures != 0;
}
