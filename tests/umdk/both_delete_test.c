// SPDX-License-Identifier: Apache-2.0
// Two threads that end the same object at the same moment: one ends it, and the other one is told
// that it does not exist.
#include <pthread.h>
#include <stdatomic.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

// A call that ends an object.
typedef urma_status_t ender(void* object);

struct race {
  pthread_barrier_t begin;
  pthread_barrier_t end;
  ender* call;  // null: the thread returns
  void* object;
  urma_status_t theirs;
};

static struct race race;

static void* other_thread(void* unused) {
  (void)unused;
  for (;;) {
    pthread_barrier_wait(&race.begin);
    if (race.call == NULL) return NULL;
    race.theirs = race.call(race.object);
    pthread_barrier_wait(&race.end);
  }
}

// Returns how many of two threads ended the object. The other one is refused with `refused`.
static int end_in_both(ender* call, void* object, urma_status_t refused) {
  race.call = call;
  race.object = object;
  pthread_barrier_wait(&race.begin);
  const urma_status_t ours = call(object);
  pthread_barrier_wait(&race.end);
  CHECK(ours == URMA_SUCCESS || ours == refused);
  CHECK(race.theirs == URMA_SUCCESS || race.theirs == refused);
  return (ours == URMA_SUCCESS) + (race.theirs == URMA_SUCCESS);
}

#define ENDER(name, type, call) \
  static urma_status_t name(void* object) { return call((type*)object); }
ENDER(delete_context, urma_context_t, urma_delete_context)
ENDER(delete_jfce, urma_jfce_t, urma_delete_jfce)
ENDER(delete_jfc, urma_jfc_t, urma_delete_jfc)
ENDER(delete_jfs, urma_jfs_t, urma_delete_jfs)
ENDER(delete_jfr, urma_jfr_t, urma_delete_jfr)
ENDER(delete_jetty, urma_jetty_t, urma_delete_jetty)
ENDER(deactive_jetty, urma_jetty_t, urma_deactive_jetty)
ENDER(active_jetty, urma_jetty_t, urma_active_jetty)
ENDER(free_jetty, urma_jetty_t, urma_free_jetty)
ENDER(unbind_jetty, urma_jetty_t, urma_unbind_jetty)
ENDER(delete_group, urma_jetty_grp_t, urma_delete_jetty_grp)
ENDER(delete_notifier, urma_notifier_t, urma_delete_notifier)
ENDER(free_token_id, urma_token_id_t, urma_free_token_id)
ENDER(unregister_seg, urma_target_seg_t, urma_unregister_seg)
ENDER(unimport_seg, urma_target_seg_t, urma_unimport_seg)
ENDER(unimport_jetty, urma_target_jetty_t, urma_unimport_jetty)

static void queues(struct end* a) {
  urma_jfs_cfg_t jfs = jfs_cfg_of(a->jfc);
  urma_jfr_cfg_t jfr = jfr_cfg_of(a->jfc);
  urma_jfc_cfg_t jfc = {.depth = 4, .jfce = a->jfce};
  urma_jetty_cfg_t jetty = jetty_cfg_of(a->jfc, a->jfr);
  urma_jetty_grp_cfg_t group = {.name = "group", .policy = URMA_JETTY_GRP_POLICY_RR};
  CHECK(end_in_both(delete_jfs, urma_create_jfs(a->ctx, &jfs), EINVAL) == 1);
  CHECK(end_in_both(delete_jfr, urma_create_jfr(a->ctx, &jfr), EINVAL) == 1);
  CHECK(end_in_both(delete_jfc, urma_create_jfc(a->ctx, &jfc), EINVAL) == 1);
  CHECK(end_in_both(delete_jfce, urma_create_jfce(a->ctx), EINVAL) == 1);
  CHECK(end_in_both(delete_jetty, urma_create_jetty(a->ctx, &jetty), EINVAL) == 1);
  CHECK(end_in_both(delete_group, urma_create_jetty_grp(a->ctx, &group), EINVAL) == 1);
  CHECK(end_in_both(delete_notifier, urma_create_notifier(a->ctx), EINVAL) == 1);
}

static void two_steps(struct end* a) {
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  urma_jetty_t* jetty = NULL;
  REQUIRE(urma_alloc_jetty(a->ctx, &cfg, &jetty) == URMA_SUCCESS);
  CHECK(end_in_both(active_jetty, jetty, EINVAL) == 1);
  CHECK(end_in_both(deactive_jetty, jetty, EINVAL) == 1);
  CHECK(end_in_both(free_jetty, jetty, EINVAL) == 1);
}

static void memory_and_targets(struct ends* ends) {
  struct end* a = &ends->a;
  urma_token_t token = secret;
  urma_seg_cfg_t cfg = seg_cfg_of(a->memory, URMA_ACCESS_READ);
  urma_rjetty_t* described = NULL;
  uint32_t bytes = 0;
  CHECK(end_in_both(unregister_seg, urma_register_seg(a->ctx, &cfg), EINVAL) == 1);
  CHECK(end_in_both(free_token_id, urma_alloc_token_id(a->ctx), EINVAL) == 1);
  urma_target_seg_t* const there =
      urma_import_seg(a->ctx, &ends->b.seg->seg, &token, 0, (urma_import_seg_flag_t){0});
  CHECK(end_in_both(unimport_seg, there, EINVAL) == 1);
  REQUIRE(urma_get_rjetty(ends->b.jetty, &described, &bytes) == URMA_SUCCESS);
  CHECK(end_in_both(unimport_jetty, urma_import_jetty(a->ctx, described, &token), EINVAL) == 1);
  urma_put_rjetty(described);
}

// What others use stays, whichever thread asks, and remains usable meanwhile.
static void in_use(struct end* a) {
  CHECK(end_in_both(delete_jfc, a->jfc, EINVAL) == 0);
  CHECK(end_in_both(delete_jfr, a->jfr, EINVAL) == 0);
  CHECK(end_in_both(delete_jfce, a->jfce, URMA_FAIL) == 0);
  CHECK(end_in_both(delete_context, a->ctx, EAGAIN) == 0);
}

static atomic_bool stop;

static void* poll_until_stopped(void* jfc) {
  urma_cr_t record;
  int refused = 0;
  while (!atomic_load(&stop)) refused += urma_poll_jfc(jfc, 1, &record) != 0;
  return refused == 0 ? jfc : NULL;
}

static void polled_while_deletion_is_refused(struct end* a) {
  pthread_t thread;
  void* result = NULL;
  atomic_store(&stop, false);
  REQUIRE(pthread_create(&thread, NULL, poll_until_stopped, a->jfc) == 0);
  for (int i = 0; i < 1000; ++i) CHECK(urma_delete_jfc(a->jfc) == EINVAL);
  atomic_store(&stop, true);
  CHECK(pthread_join(thread, &result) == 0 && result != NULL);
}

static void bound_jetties(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RC);
  for (int i = 0; i < 200; ++i) {
    CHECK(urma_bind_jetty(ends.a.jetty, ends.a.to) == URMA_SUCCESS);
    CHECK(end_in_both(unbind_jetty, ends.a.jetty, EINVAL) == 1);
  }
  end_ends(&ends);
}

static void contexts(const char* device) {
  urma_device_t* const dev = urma_get_device_by_name((char*)device);
  for (int i = 0; i < 20; ++i) {
    CHECK(end_in_both(delete_context, urma_create_context(dev, 0), EINVAL) == 1);
  }
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  for (int i = 0; i < 200; ++i) {
    queues(&ends.a);
    two_steps(&ends.a);
    memory_and_targets(&ends);
    in_use(&ends.a);
  }
  polled_while_deletion_is_refused(&ends.a);
  end_ends(&ends);
  bound_jetties(device);
  contexts(device);
}

static void drop(int level, char* message) {
  (void)level;
  (void)message;
}

int main(void) {
  pthread_t thread;
  name_devices();
  CHECK(urma_register_log_func(drop) == URMA_SUCCESS);
  REQUIRE(pthread_barrier_init(&race.begin, NULL, 2) == 0);
  REQUIRE(pthread_barrier_init(&race.end, NULL, 2) == 0);
  REQUIRE(pthread_create(&thread, NULL, other_thread, NULL) == 0);
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  race.call = NULL;
  pthread_barrier_wait(&race.begin);
  CHECK(pthread_join(thread, NULL) == 0);
  remove_devices();
  return failures != 0;
}
