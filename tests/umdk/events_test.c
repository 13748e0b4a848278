// SPDX-License-Identifier: Apache-2.0
// Event channels, asynchronous events, and queues in the error state.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { wait_ms = 5000, no_event_ms = 30, messages = 3000 };

static const urma_jfs_wr_flag_t signalled = {.bs = {.complete_enable = 1}};

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static bool readable(int fd, int limit_ms) {
  struct pollfd one = {.fd = fd, .events = POLLIN};
  return poll(&one, 1, limit_ms) == 1;
}

// Waits for one event of the JFC of this end, and acknowledges it.
static bool take_event(struct end* end, int limit_ms) {
  urma_jfc_t* ready[4] = {NULL};
  uint32_t one = 1;
  const int count = urma_wait_jfc(end->jfce, 4, limit_ms, ready);
  CHECK(count == 0 || (count == 1 && ready[0] == end->jfc));
  if (count == 1) urma_ack_jfc(ready, &one, 1);
  return count == 1;
}

static bool arm(struct end* end) { return urma_rearm_jfc(end->jfc, false) == URMA_SUCCESS; }

static void post_write(struct end* end, uint64_t user_ctx) {
  urma_sge_t from = here(end, 0, 8);
  urma_sge_t to = there(end, 0, 8);
  urma_jfs_wr_t wr = {
      .opcode = URMA_OPC_WRITE, .flag = signalled, .tjetty = end->to, .user_ctx = user_ctx};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

static void post_send(struct end* end, uint64_t user_ctx, bool solicits) {
  urma_sge_t from = here(end, 0, 8);
  urma_jfs_wr_t wr = {
      .opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = end->to, .user_ctx = user_ctx};
  wr.flag.bs.solicited_enable = solicits;
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

// ---- no event is lost

static struct end* producer_end;
static int consumed;

// Posts works in bursts of 1 to 8, and waits until a burst is consumed before the next one.
static void* produce(void* argument) {
  int posted = 0;
  for (int burst = 1; posted < messages; burst = burst % 8 + 1) {
    for (int i = 0; i < burst && posted < messages; ++i)
      post_write(producer_end, (uint64_t)posted++);
    const double until = now_ms() + wait_ms;
    while (__atomic_load_n(&consumed, __ATOMIC_ACQUIRE) < posted && now_ms() < until) {
      usleep(0);
    }
    if (__atomic_load_n(&consumed, __ATOMIC_ACQUIRE) < posted) return NULL;
  }
  return argument;
}

static void poll_all(struct end* end) {
  urma_cr_t records[4];
  int got = 0;
  while ((got = urma_poll_jfc(end->jfc, 4, records)) > 0) {
    for (int i = 0; i < got; ++i) CHECK(records[i].status == URMA_CR_SUCCESS);
    __atomic_fetch_add(&consumed, got, __ATOMIC_RELEASE);
  }
}

static void no_event_is_lost(struct ends* ends, bool arms_before_polling) {
  pthread_t thread;
  void* result = NULL;
  producer_end = &ends->a;
  __atomic_store_n(&consumed, 0, __ATOMIC_RELAXED);
  CHECK(arm(&ends->a));
  REQUIRE(pthread_create(&thread, NULL, produce, &ends->a) == 0);
  while (__atomic_load_n(&consumed, __ATOMIC_ACQUIRE) < messages) {
    const bool event = take_event(&ends->a, wait_ms);
    CHECK(event);
    if (!event) break;
    if (arms_before_polling) CHECK(arm(&ends->a));
    poll_all(&ends->a);
    if (!arms_before_polling) CHECK(arm(&ends->a));
  }
  CHECK(pthread_join(thread, &result) == 0 && result != NULL);
  while (take_event(&ends->a, 0)) continue;
  poll_all(&ends->a);
}

// ---- one event

static void settle_down(struct end* end) {
  urma_cr_t records[8];
  while (take_event(end, 0)) continue;
  while (urma_poll_jfc(end->jfc, 8, records) > 0) continue;
}

// Programs look at errno after several calls (UMQ's performance test does), so those that succeed
// leave it as it was.
static void errno_is_kept(struct ends* ends) {
  enum { mine = 12345 };
  urma_cr_t record;
  settle_down(&ends->a);
  errno = mine;
  CHECK(urma_poll_jfc(ends->a.jfc, 1, &record) == 0 && errno == mine);
  CHECK(arm(&ends->a) && errno == mine);
  CHECK(!take_event(&ends->a, 1) && errno == mine);
  receive(&ends->a, 0, 64, 1);
  CHECK(errno == mine);
  post_write(&ends->a, 1);
  CHECK(errno == mine);
  CHECK(take_event(&ends->a, wait_ms) && errno == mine);
  while (urma_poll_jfc(ends->a.jfc, 1, &record) == 0) CHECK(errno == mine);
  CHECK(errno == mine);
  urma_jfr_t* const jfr = urma_create_jfr(ends->a.ctx, &ends->a.jfr->jfr_cfg);
  CHECK(jfr != NULL && errno == mine);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS && errno == mine);
  post_send(&ends->b, 2, false);  // takes the receive, so that later tests find none
  CHECK(collect(ends->a.jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
  settle_down(&ends->b);
}

static void arm_with_records(struct ends* ends) {
  urma_cr_t record;
  settle_down(&ends->a);
  post_write(&ends->a, 1);
  usleep(10 * 1000);
  while (take_event(&ends->a, 0)) continue;  // of an earlier arm
  CHECK(arm(&ends->a));
  CHECK(take_event(&ends->a, wait_ms));
  // One event for each arm.
  post_write(&ends->a, 2);
  CHECK(!take_event(&ends->a, no_event_ms));
  CHECK(arm(&ends->a) && arm(&ends->a));
  CHECK(take_event(&ends->a, wait_ms));
  CHECK(!take_event(&ends->a, no_event_ms));
  CHECK(collect(ends->a.jfc, &record, 1) == 1 && record.user_ctx == 1);
  CHECK(collect(ends->a.jfc, &record, 1) == 1 && record.user_ctx == 2);
  CHECK(arm(&ends->a));
  CHECK(!take_event(&ends->a, no_event_ms));
  post_write(&ends->a, 3);
  CHECK(take_event(&ends->a, wait_ms));
  settle_down(&ends->a);
}

static void time_outs(struct end* end) {
  settle_down(end);
  double begin = now_ms();
  CHECK(!take_event(end, 0));
  CHECK(now_ms() - begin < 1000);
  begin = now_ms();
  CHECK(!take_event(end, 50));
  CHECK(now_ms() - begin >= 49);
}

static void descriptors(struct ends* ends) {
  const int set = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data = {.fd = 7}};
  struct epoll_event got;
  settle_down(&ends->a);
  REQUIRE(set >= 0);
  CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends->a.jfce->fd, &event) == 0);
  CHECK(arm(&ends->a));
  CHECK(epoll_wait(set, &got, 1, no_event_ms) == 0);
  post_write(&ends->a, 1);
  CHECK(epoll_wait(set, &got, 1, wait_ms) == 1 && got.data.fd == 7);
  CHECK(take_event(&ends->a, 0));
  CHECK(epoll_wait(set, &got, 1, 0) == 0);
  close(set);
  settle_down(&ends->a);
}

static void solicited(struct ends* ends) {
  struct end* b = &ends->b;
  urma_cr_t records[8];
  settle_down(b);
  for (int i = 0; i < 4; ++i) receive(b, 0, 64, 1);
  CHECK(urma_rearm_jfc(b->jfc, true) == URMA_SUCCESS);
  post_send(&ends->a, 1, false);
  CHECK(!take_event(b, no_event_ms));
  post_send(&ends->a, 2, true);
  CHECK(take_event(b, wait_ms));
  CHECK(collect(b->jfc, records, 2) == 2);
  CHECK(urma_rearm_jfc(b->jfc, true) == URMA_SUCCESS);
  CHECK(!take_event(b, no_event_ms));
  post_send(&ends->a, 3, false);
  CHECK(collect(ends->a.jfc, records, 3) == 3);
  CHECK(!take_event(b, no_event_ms));
  CHECK(urma_rearm_jfc(b->jfc, false) == URMA_SUCCESS);
  CHECK(take_event(b, wait_ms));
  post_send(&ends->a, 4, false);
  CHECK(collect(b->jfc, records, 2) == 2);
  CHECK(collect(ends->a.jfc, records, 1) == 1);
  settle_down(b);
}

// Each of several JFCs of one channel has its event, however few a call takes.
static void several_jfcs(struct ends* ends) {
  enum { count = 8 };
  struct end* a = &ends->a;
  urma_jfc_t* jfcs[count];
  urma_jfs_t* all[count];
  int events[count] = {0};
  settle_down(a);
  for (int i = 0; i < count; ++i) {
    urma_jfc_cfg_t cfg = {.depth = 16, .jfce = a->jfce};
    jfcs[i] = urma_create_jfc(a->ctx, &cfg);
    REQUIRE(jfcs[i] != NULL);
    CHECK(jfcs[i]->jfc_id.id > (i > 0 ? jfcs[i - 1]->jfc_id.id : a->jfc->jfc_id.id));
    urma_jfs_cfg_t jfs_cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfcs[i]};
    all[i] = urma_create_jfs(a->ctx, &jfs_cfg);
    REQUIRE(all[i] != NULL);
    if (i % 2 == 0) CHECK(urma_rearm_jfc(jfcs[i], false) == URMA_SUCCESS);
    CHECK(urma_write(all[i], a->to, a->there, a->seg, (uint64_t)a->there_memory,
                     (uint64_t)a->memory, 8, signalled, 1) == URMA_SUCCESS);
  }
  usleep(5 * 1000);
  for (int i = 1; i < count; i += 2) CHECK(urma_rearm_jfc(jfcs[i], false) == URMA_SUCCESS);
  for (int i = 0; i < count; ++i) {
    urma_jfc_t* ready = NULL;
    REQUIRE(urma_wait_jfc(a->jfce, 1, wait_ms, &ready) == 1);
    for (int j = 0; j < count; ++j) events[j] += ready == jfcs[j];
  }
  for (int i = 0; i < count; ++i) CHECK(events[i] == 1);
  CHECK(!take_event(a, no_event_ms));
  urma_jfs_t* bad = NULL;
  urma_jfc_t* bad_jfc = NULL;
  CHECK(urma_delete_jfs_batch(all, count, &bad) == URMA_SUCCESS);
  CHECK(urma_delete_jfc_batch(jfcs, count, &bad_jfc) == URMA_SUCCESS);
}

// A JFC that is deleted takes its events with it.
static void delete_with_event(struct ends* ends) {
  struct end* a = &ends->a;
  settle_down(a);
  for (int i = 0; i < 4; ++i) {
    urma_jfc_cfg_t cfg = {.depth = 16, .jfce = a->jfce};
    urma_jfc_t* const jfc = urma_create_jfc(a->ctx, &cfg);
    urma_jfs_cfg_t jfs_cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
    urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &jfs_cfg);
    REQUIRE(jfs != NULL);
    if (i % 2 == 0) CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
    CHECK(urma_write(jfs, a->to, a->there, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory,
                     8, signalled, 1) == URMA_SUCCESS);
    usleep(5 * 1000);
    if (i % 2 == 1) CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
    CHECK(readable(a->jfce->fd, wait_ms));
    CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
    CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
    CHECK(!take_event(a, no_event_ms));
  }
}

// The moderation of events that URPC asks for, and a larger one, which has no effect.
static void moderated(struct ends* ends) {
  static const uint16_t counts[] = {1, 16};
  struct end* a = &ends->a;
  for (int i = 0; i < 2; ++i) {
    urma_jfc_attr_t attr = {.mask = JFC_MODERATE_COUNT | JFC_MODERATE_PERIOD,
                            .moderate_count = counts[i],
                            .moderate_period = 1000};
    urma_cr_t record;
    settle_down(a);
    CHECK(urma_modify_jfc(a->jfc, &attr) == URMA_SUCCESS);
    CHECK(arm(a));
    post_write(a, 1);
    CHECK(take_event(a, wait_ms));
    CHECK(collect(a->jfc, &record, 1) == 1);
    CHECK(!take_event(a, 1));
  }
}

// ---- asynchronous events

// A Jetty has the threshold of its JFR.
static void threshold_of_jetty(struct end* b) {
  urma_jetty_attr_t attr = {.mask = JETTY_RX_THRESHOLD, .rx_threshold = 3};
  urma_jetty_cfg_t cfg;
  urma_jfr_attr_t of_jfr;
  urma_jfr_cfg_t jfr_cfg;
  CHECK(urma_modify_jetty(b->jetty, &attr) == URMA_SUCCESS);
  attr = (urma_jetty_attr_t){.mask = 0};
  CHECK(urma_query_jetty(b->jetty, &cfg, &attr) == URMA_SUCCESS);
  CHECK((attr.mask & JETTY_RX_THRESHOLD) != 0 && attr.rx_threshold == 3);
  CHECK(urma_query_jfr(b->jfr, &jfr_cfg, &of_jfr) == URMA_SUCCESS);
  CHECK(of_jfr.rx_threshold == 3);
  attr = (urma_jetty_attr_t){.mask = JETTY_STATE, .state = URMA_JETTY_STATE_SUSPENDED};
  CHECK(urma_modify_jetty(b->jetty, &attr) == URMA_EINVAL);
}

static void receives_run_low(struct ends* ends) {
  struct end* b = &ends->b;
  urma_async_event_t event;
  urma_cr_t record;
  for (int i = 0; i < 6; ++i) receive(b, 0, 64, 1);
  urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 4};
  CHECK(urma_modify_jfr(b->jfr, &attr) == URMA_SUCCESS);
  const int flags = fcntl(b->ctx->async_fd, F_GETFL);
  CHECK(fcntl(b->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  for (int i = 0; i < 6; ++i) {
    post_send(&ends->a, 1, false);
    CHECK(collect(b->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
    CHECK(collect(ends->a.jfc, &record, 1) == 1);
    CHECK(readable(b->ctx->async_fd, 0) == (i == 2));
    if (i != 2) {
      CHECK(urma_get_async_event(b->ctx, &event) == EAGAIN);
      continue;
    }
    CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
    CHECK(event.event_type == URMA_EVENT_JFR_LIMIT && event.element.jfr == b->jfr);
    CHECK(event.urma_ctx == b->ctx);
    urma_ack_async_event(&event);
    CHECK(!readable(b->ctx->async_fd, 0));
  }
  CHECK(fcntl(b->ctx->async_fd, F_SETFL, flags) == 0);
}

// ---- the error state

static void set_state(struct end* end, urma_jetty_state_t state) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = state};
  urma_jetty_cfg_t cfg;
  CHECK(urma_modify_jetty(end->jetty, &attr) == URMA_SUCCESS);
  CHECK(urma_query_jetty(end->jetty, &cfg, &attr) == URMA_SUCCESS);
  CHECK(attr.state == state);
}

static void check_flushed(struct end* end, int works) {
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
  set_state(a, URMA_JETTY_STATE_READY);
  post_write(a, 10);
  CHECK(collect(a->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 10);
  set_state(a, URMA_JETTY_STATE_ERROR);
  check_flushed(a, 0);
  set_state(a, URMA_JETTY_STATE_READY);
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
    set_state(a, URMA_JETTY_STATE_READY);
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
  attr = (urma_jfr_attr_t){.mask = JFR_STATE, .state = URMA_JFR_STATE_READY};
  CHECK(urma_modify_jfr(b->jfr, &attr) == URMA_SUCCESS);
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
    attr = (urma_jfs_attr_t){.mask = JFS_STATE, .state = URMA_JETTY_STATE_READY};
    CHECK(urma_modify_jfs(jfs, &attr) == URMA_SUCCESS);
    CHECK(urma_write(jfs, a->to, a->there, a->seg, theirs, mine, 8, signalled, 3) == URMA_SUCCESS);
    REQUIRE(collect(a->jfc, records, 1) == 1);
    CHECK(records[0].status == URMA_CR_SUCCESS && records[0].user_ctx == 3);
  }
  CHECK(urma_unimport_seg(seg) == URMA_SUCCESS);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

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

// Makes a Jetty like that of this end. `id` 0: the device chooses.
static urma_jetty_t* another_jetty(struct end* end, uint32_t id) {
  urma_jetty_cfg_t cfg = end->jetty->jetty_cfg;
  cfg.id = id;
  urma_jetty_t* const jetty = urma_create_jetty(end->ctx, &cfg);
  REQUIRE(jetty != NULL);
  return jetty;
}

// Deletes a Jetty, and makes one of the same number.
static urma_jetty_t* replace(struct end* end, urma_jetty_t* jetty, uint32_t id) {
  const uint32_t number = jetty->jetty_id.id;
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  urma_jetty_t* const next = another_jetty(end, id);
  CHECK(next->jetty_id.id == number);
  return next;
}

static void no_record(struct end* end) {
  urma_cr_t record;
  usleep(10 * 1000);
  CHECK(urma_poll_jfc(end->jfc, 1, &record) == 0);
}

static void take_records(struct end* end, int count) {
  urma_cr_t records[8];
  CHECK(collect(end->jfc, records, count) == count);
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

static urma_target_jetty_t* import_number(struct ends* ends, urma_jetty_id_t id,
                                          urma_target_type_t type) {
  urma_token_t token = secret;
  urma_rjetty_t described = {.jetty_id = id, .trans_mode = URMA_TM_RM, .type = type};
  described.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_target_jetty_t* const target = urma_import_jetty(ends->a.ctx, &described, &token);
  REQUIRE(target != NULL);
  return target;
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

static urma_jfs_t* deep_jfs(struct end* end, uint32_t depth) {
  urma_jfs_cfg_t cfg = {.depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  return jfs;
}

static void post_to(struct end* end, urma_jfs_t* jfs, uint64_t user_ctx) {
  CHECK(urma_write(jfs, end->to, end->there, end->seg, (uint64_t)end->there_memory,
                   (uint64_t)end->memory, 8, signalled, user_ctx) == URMA_SUCCESS);
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

// ---- asynchronous events of deleted objects

static void no_async_event(struct end* end) {
  urma_async_event_t event;
  const int flags = fcntl(end->ctx->async_fd, F_GETFL);
  CHECK(fcntl(end->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  CHECK(!readable(end->ctx->async_fd, 0));
  CHECK(urma_get_async_event(end->ctx, &event) == EAGAIN);
  CHECK(fcntl(end->ctx->async_fd, F_SETFL, flags) == 0);
}

static void send_to(struct end* end, urma_target_jetty_t* target, urma_cr_status_t expected) {
  urma_cr_t record;
  urma_sge_t from = here(end, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = target};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == expected);
}

// A JFR that is deleted takes its event with it, and leaves those of others.
static void event_of_a_deleted_jfr(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jfr_attr_t low = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 1};
  urma_async_event_t event;
  settle_down(b);
  for (int i = 0; i < 2; ++i) {
    urma_jfr_t* const jfr = urma_create_jfr(b->ctx, &b->jfr->jfr_cfg);
    REQUIRE(jfr != NULL);
    urma_target_jetty_t* const to = import_number(ends, jfr->jfr_id, URMA_JFR);
    urma_sge_t place = here(b, 0, 64);
    urma_jfr_wr_t wr = {.src = {&place, 1}, .user_ctx = 3};
    urma_jfr_wr_t* bad = NULL;
    CHECK(urma_post_jfr_wr(jfr, &wr, &bad) == URMA_SUCCESS);
    CHECK(urma_modify_jfr(jfr, &low) == URMA_SUCCESS);
    send_to(&ends->a, to, URMA_CR_SUCCESS);
    take_records(b, 1);
    if (i == 1) {
      CHECK(urma_modify_jfr(b->jfr, &low) == URMA_SUCCESS);
      receive(b, 0, 64, 1);
      send_to(&ends->a, ends->a.to, URMA_CR_SUCCESS);
      take_records(b, 1);
    }
    CHECK(readable(b->ctx->async_fd, wait_ms));
    CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
    CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
    if (i == 1) {
      CHECK(readable(b->ctx->async_fd, 0));
      CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
      CHECK(event.event_type == URMA_EVENT_JFR_LIMIT && event.element.jfr == b->jfr);
      urma_ack_async_event(&event);
    }
    no_async_event(b);
  }
}

// The next Jetty of the number of a deleted one is not given its event.
static void event_of_a_deleted_jetty(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_async_event_t event;
  urma_jetty_t* jetty = another_jetty(b, 0);
  urma_target_jetty_t* const to = import_number(ends, jetty->jetty_id, URMA_JETTY);
  for (int i = 0; i < 2; ++i) {
    CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
    send_to(&ends->a, to, URMA_CR_REM_ACCESS_ABORT_ERR);
    CHECK(readable(b->ctx->async_fd, wait_ms));
    if (i == 0) jetty = replace(b, jetty, 0);
    if (i == 1) {
      CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
      CHECK(event.event_type == URMA_EVENT_JETTY_ERR && event.element.jetty == jetty);
      urma_ack_async_event(&event);
    }
    no_async_event(b);
  }
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  settle_down(b);
}

// ---- an event for each arm

// No event is left, and none is asked for.
static void disarm(struct end* end) {
  settle_down(end);
  CHECK(arm(end));
  post_write(end, 1);
  CHECK(take_event(end, wait_ms));
  settle_down(end);
}

// Neither works nor the end of a flush raise an event that was not asked for.
static void no_event_without_an_arm(struct ends* ends) {
  struct end* a = &ends->a;
  disarm(a);
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(!take_event(a, no_event_ms));
  check_flushed(a, 0);
  set_state(a, URMA_JETTY_STATE_READY);
  CHECK(arm(a));
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(take_event(a, wait_ms));
  check_flushed(a, 0);
  set_state(a, URMA_JETTY_STATE_READY);
}

// A JFC whose queues need more than its depth raises one event for each arm all the same.
static void one_event_of_a_grown_jfc(struct ends* ends) {
  struct end* a = &ends->a;
  disarm(a);
  urma_jfs_t* const large = deep_jfs(a, 2000);
  post_to(a, large, 1);
  CHECK(!take_event(a, no_event_ms));
  take_records(a, 1);
  CHECK(arm(a));
  post_write(a, 1);
  CHECK(take_event(a, wait_ms));
  post_to(a, large, 1);
  CHECK(!take_event(a, no_event_ms));
  take_records(a, 2);
  CHECK(arm(a));
  post_to(a, large, 1);
  CHECK(take_event(a, wait_ms));
  post_write(a, 1);
  CHECK(!take_event(a, no_event_ms));
  CHECK(arm(a) && take_event(a, wait_ms));
  take_records(a, 2);
  CHECK(!take_event(a, no_event_ms));
  // It grows while it is not armed, and while it is.
  urma_jfs_t* const larger = deep_jfs(a, 4000);
  post_to(a, larger, 1);
  CHECK(!take_event(a, no_event_ms));
  take_records(a, 1);
  CHECK(arm(a));
  urma_jfs_t* const largest = deep_jfs(a, 8000);
  post_to(a, largest, 1);
  CHECK(take_event(a, wait_ms));
  take_records(a, 1);
  CHECK(urma_delete_jfs(large) == URMA_SUCCESS);
  CHECK(urma_delete_jfs(larger) == URMA_SUCCESS);
  CHECK(urma_delete_jfs(largest) == URMA_SUCCESS);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    no_event_is_lost(&ends, true);
    no_event_is_lost(&ends, false);
    errno_is_kept(&ends);
    arm_with_records(&ends);
    time_outs(&ends.a);
    descriptors(&ends);
    solicited(&ends);
    several_jfcs(&ends);
    delete_with_event(&ends);
    moderated(&ends);
    threshold_of_jetty(&ends.b);
    receives_run_low(&ends);
    flushed_works(&ends);
    flushed_atomics(&ends);
    flushed_receives(&ends);
    flushed_jfs(&ends);
    suspended(&ends);
    poll_while_deleting(&ends);
    deleted_queue(&ends);
    no_event_without_an_arm(&ends);
    one_event_of_a_grown_jfc(&ends);
    atomics_of_a_deleted_jetty(&ends, 0);
    atomics_of_a_deleted_jetty(&ends, 9);
    records_beside_a_deleted_jetty(&ends);
    receives_of_a_deleted_queue(&ends);
    numbers_between_threads(&ends);
    event_of_a_deleted_jfr(&ends);
    event_of_a_deleted_jetty(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
