// SPDX-License-Identifier: Apache-2.0
// A child of fork() cannot use the objects of its parent: each call fails at once. It can create
// its own, and its parent goes on.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { seconds_to_end = 20 };

static urma_notifier_t* notifier;  // of the parent

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

typedef void check_function(struct ends* ends, const char* device);

// Returns whether all is as it should be in a child that runs this check with its parent's ends.
static bool holds_in_a_child(check_function* check, struct ends* ends, const char* device) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(seconds_to_end);
    failures = 0;
    check(ends, device);
    _exit(failures != 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
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
  urma_notify_t result;
  CHECK(urma_wait_notify(notifier, 1, &result, 0) == -1);
  CHECK(urma_wait_notify(notifier, 0, NULL, 0) == -1);
}

static void objects_stay(struct ends* ends) {
  urma_jfc_cfg_t cfg = {.depth = 4, .jfce = ends->a.jfce};
  urma_jfc_t* jfc = NULL;
  CHECK(urma_create_jfc(ends->a.ctx, &cfg) == NULL && errno == URMA_FAIL);
  CHECK(urma_alloc_jfc(ends->a.ctx, &cfg, &jfc) == URMA_FAIL && jfc == NULL);
  CHECK(urma_create_jfce(ends->a.ctx) == NULL && errno == URMA_FAIL);
  CHECK(urma_create_notifier(ends->a.ctx) == NULL && errno == URMA_FAIL);
  CHECK(urma_alloc_token_id(ends->a.ctx) == NULL && errno == URMA_FAIL);
  CHECK(urma_delete_jetty(ends->a.jetty) == URMA_FAIL);
  CHECK(urma_delete_jfc(ends->a.jfc) == URMA_FAIL);
  CHECK(urma_unregister_seg(ends->a.seg) == URMA_FAIL);
  CHECK(urma_delete_context(ends->a.ctx) == URMA_FAIL);
}

static void all_calls_fail(struct ends* ends, const char* device) {
  (void)device;
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  posts_fail(ends);
  waits_fail(ends);
  objects_stay(ends);
}

static void own_ends_work(struct ends* ends, const char* device) {
  (void)ends;
  struct ends own = make_ends(device, URMA_TM_RM);
  check_works(&own);
  end_ends(&own);
}

static void child_is_told(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  check_works(&ends);
  notifier = urma_create_notifier(ends.a.ctx);
  REQUIRE(notifier != NULL);
  CHECK(holds_in_a_child(all_calls_fail, &ends, device));
  CHECK(urma_delete_notifier(notifier) == URMA_SUCCESS);
#if !defined(__SANITIZE_THREAD__)  // it starts no thread after a fork
  CHECK(holds_in_a_child(own_ends_work, &ends, device));
#endif
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

static void* make_all_the_time(void* given) {
  struct ends* const ends = given;
  while (!atomic_load(&ended)) {
    urma_token_id_t* const token = urma_alloc_token_id(ends->a.ctx);
    CHECK(token != NULL && urma_free_token_id(token) == URMA_SUCCESS);
  }
  return NULL;
}

// Makes children, one after the other, beside a thread that is busy.
static void children_wait_for_no_lock(const char* device, void* (*busy)(void*),
                                      check_function* check) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  pthread_t thread;
  bool holds = true;
  atomic_store(&ended, false);
  REQUIRE(pthread_create(&thread, NULL, busy, &ends) == 0);
  for (int i = 0; holds && i < 20; ++i) {
    usleep(1000);
    holds = holds_in_a_child(check, &ends, device);
    CHECK(holds);
  }
  atomic_store(&ended, true);
  pthread_join(thread, NULL);
  check_works(&ends);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  for (int i = 0; i < device_count; ++i) {
    child_is_told(devices[i]);
    children_wait_for_no_lock(devices[i], poll_all_the_time, all_calls_fail);
#if !defined(__SANITIZE_THREAD__)  // it starts no thread after a fork
    children_wait_for_no_lock(devices[i], make_all_the_time, own_ends_work);
#endif
  }
  remove_devices();
  return failures != 0;
}
