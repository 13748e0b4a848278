// SPDX-License-Identifier: Apache-2.0
// A child of fork() cannot use the objects of its parent: each call fails at once. It can create
// its own, and its parent goes on.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { seconds_to_end = 20 };

static urma_jfs_wr_t write_of(urma_sge_t* from, urma_sge_t* to) {
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  wr.rw.src = (urma_sg_t){from, 1};
  wr.rw.dst = (urma_sg_t){to, 1};
  return wr;
}

static void check_works(struct ends* ends) {
  urma_sge_t from = here(&ends->a, 0, 8);
  urma_sge_t to = there(&ends->a, 0, 8);
  urma_jfs_wr_t wr = write_of(&from, &to);
  CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
}

// Returns the exit code of a child, or -1 if a signal ended it.
static int end_of(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void posts_fail(struct ends* ends) {
  urma_sge_t from = here(&ends->a, 0, 8);
  urma_sge_t to = there(&ends->a, 0, 8);
  urma_jfs_wr_t wr = write_of(&from, &to);
  urma_jfs_wr_t* bad = NULL;
  wr.tjetty = ends->a.to;
  CHECK(urma_post_jetty_send_wr(ends->a.jetty, &wr, &bad) == URMA_FAIL);
  CHECK(bad == &wr);
  urma_jfr_wr_t receive = {.src = {&from, 1}};
  urma_jfr_wr_t* bad_receive = NULL;
  CHECK(urma_post_jetty_recv_wr(ends->a.jetty, &receive, &bad_receive) == URMA_FAIL);
  CHECK(bad_receive == &receive);
  CHECK(urma_post_jfr_wr(ends->a.jfr, &receive, &bad_receive) == URMA_FAIL);
}

static void waits_fail(struct ends* ends) {
  urma_cr_t record;
  urma_jfc_t* ready = NULL;
  CHECK(urma_poll_jfc(ends->a.jfc, 1, &record) == -1);
  CHECK(urma_rearm_jfc(ends->a.jfc, false) == URMA_FAIL);
  CHECK(urma_wait_jfc(ends->a.jfce, 1, -1, &ready) == -1);
  urma_async_event_t event;
  CHECK(urma_get_async_event(ends->a.ctx, &event) == URMA_FAIL);
}

static void objects_stay(struct ends* ends) {
  urma_jfc_cfg_t cfg = {.depth = 4, .jfce = ends->a.jfce};
  CHECK(urma_create_jfc(ends->a.ctx, &cfg) == NULL);
  CHECK(urma_delete_jetty(ends->a.jetty) == URMA_FAIL);
  CHECK(urma_delete_jfc(ends->a.jfc) == URMA_FAIL);
  CHECK(urma_unregister_seg(ends->a.seg) == URMA_FAIL);
  CHECK(urma_delete_context(ends->a.ctx) == URMA_FAIL);
}

static void child_is_told(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  check_works(&ends);
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds_to_end);
    failures = 0;
    urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
    posts_fail(&ends);
    waits_fail(&ends);
    objects_stay(&ends);
#if !defined(__SANITIZE_THREAD__)  // it starts no thread after a fork
    struct ends own = make_ends(device, URMA_TM_RM);
    check_works(&own);
    end_ends(&own);
#endif
    _exit(failures);
  }
  CHECK(end_of(child) == 0);
  check_works(&ends);
  end_ends(&ends);
}

// ---- a thread of the parent holds a lock while another one calls fork()

static atomic_bool ended;

static void* poll_all_the_time(void* given) {
  struct ends* const ends = given;
  urma_cr_t records[16];
  while (!atomic_load(&ended)) CHECK(urma_poll_jfc(ends->a.jfc, 16, records) == 0);
  return NULL;
}

static void child_waits_for_no_lock(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  pthread_t poller;
  atomic_store(&ended, false);
  REQUIRE(pthread_create(&poller, NULL, poll_all_the_time, &ends) == 0);
  for (int i = 0; i < 20; ++i) {
    usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
      alarm(seconds_to_end);
      failures = 0;
      urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
      posts_fail(&ends);
      waits_fail(&ends);
      objects_stay(&ends);
      _exit(failures);
    }
    const int end = end_of(child);
    CHECK(end == 0);
    if (end != 0) break;
  }
  atomic_store(&ended, true);
  pthread_join(poller, NULL);
  check_works(&ends);
  end_ends(&ends);
}

// ---- a thread of the parent makes objects while another one calls fork()

static void* make_all_the_time(void* given) {
  struct ends* const ends = given;
  while (!atomic_load(&ended)) {
    urma_token_id_t* const token = urma_alloc_token_id(ends->a.ctx);
    CHECK(token != NULL && urma_free_token_id(token) == URMA_SUCCESS);
  }
  return NULL;
}

static void child_makes_objects(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  pthread_t maker;
  atomic_store(&ended, false);
  REQUIRE(pthread_create(&maker, NULL, make_all_the_time, &ends) == 0);
  for (int i = 0; i < 20; ++i) {
    usleep(1000);
    const pid_t child = fork();
    if (child == 0) {
      alarm(seconds_to_end);
      failures = 0;
      struct ends own = make_ends(device, URMA_TM_RM);
      check_works(&own);
      end_ends(&own);
      _exit(failures);
    }
    const int end = end_of(child);
    CHECK(end == 0);
    if (end != 0) break;
  }
  atomic_store(&ended, true);
  pthread_join(maker, NULL);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  for (int i = 0; i < device_count; ++i) {
    child_is_told(devices[i]);
    child_waits_for_no_lock(devices[i]);
#if !defined(__SANITIZE_THREAD__)  // it starts no thread after a fork
    child_makes_objects(devices[i]);
#endif
  }
  remove_devices();
  return failures != 0;
}
