// SPDX-License-Identifier: Apache-2.0
// Event channels: no event is lost, and each arm has one.
#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

enum { messages = 3000 };

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
  restart(a);
  CHECK(arm(a));
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(take_event(a, wait_ms));
  check_flushed(a, 0);
  restart(a);
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

// Waits for one event, and acknowledges it. Returns its JFC.
static urma_jfc_t* take_one_event(struct end* end) {
  urma_jfc_t* ready = NULL;
  uint32_t one = 1;
  if (urma_wait_jfc(end->jfce, 1, wait_ms, &ready) != 1) return NULL;
  urma_ack_jfc(&ready, &one, 1);
  return ready;
}

// A flush has two causes for an event: the works that ended, and the record that says so. An arm
// after both were polled raises no event.
static void one_event_of_a_flush(struct ends* ends) {
  struct end* a = &ends->a;
  disarm(a);
  for (int i = 0; i < 5; ++i) post_send(a, (uint64_t)i, false);  // without receives
  CHECK(arm(a));
  set_state(a, URMA_JETTY_STATE_ERROR);
  CHECK(take_one_event(a) == a->jfc);
  check_flushed(a, 5);
  CHECK(arm(a));
  CHECK(!take_event(a, no_event_ms));
  restart(a);
  post_write(a, 1);
  CHECK(take_one_event(a) == a->jfc);
  take_records(a, 1);
}

// Neither does an arm after the records of several queues of a JFC were polled.
static void one_event_of_several_queues(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfs_t* const deep = deep_jfs(a, 2000);
  disarm(a);
  for (int i = 0; i < 4; ++i) {
    CHECK(arm(a));
    post_write(a, 1);
    post_to(a, deep, 1);
    usleep(20 * 1000);  // until both queues have raised their events
    CHECK(take_one_event(a) == a->jfc);
    take_records(a, 2);
    CHECK(arm(a));
    CHECK(!take_event(a, no_event_ms));
    post_to(a, deep, 1);
    CHECK(take_one_event(a) == a->jfc);
    take_records(a, 1);
  }
  CHECK(urma_delete_jfs(deep) == URMA_SUCCESS);
}

// An arm of one JFC leaves the events of the others.
static void arm_beside_events(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfc_cfg_t cfg = {.depth = 16, .jfce = a->jfce};
  urma_jfc_t* const jfc = urma_create_jfc(a->ctx, &cfg);
  urma_jfs_cfg_t jfs_cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &jfs_cfg);
  urma_cr_t record;
  REQUIRE(jfs != NULL);
  disarm(a);
  CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
  post_to(a, jfs, 1);
  CHECK(readable(a->jfce->fd, wait_ms));
  CHECK(arm(a));
  CHECK(readable(a->jfce->fd, wait_ms));
  post_write(a, 1);
  usleep(20 * 1000);
  CHECK(arm(a));  // its record is there, so there is an event
  const urma_jfc_t* const one = take_one_event(a);
  const urma_jfc_t* const other = take_one_event(a);
  CHECK((one == jfc && other == a->jfc) || (one == a->jfc && other == jfc));
  CHECK(!take_event(a, no_event_ms));
  take_records(a, 1);
  CHECK(collect(jfc, &record, 1) == 1);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS && urma_delete_jfc(jfc) == URMA_SUCCESS);
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
    no_event_without_an_arm(&ends);
    one_event_of_a_grown_jfc(&ends);
    one_event_of_a_flush(&ends);
    one_event_of_several_queues(&ends);
    arm_beside_events(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
