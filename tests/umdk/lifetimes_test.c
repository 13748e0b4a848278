// SPDX-License-Identifier: Apache-2.0
// Objects that come and go: nothing remains of them, also if several threads make them at once.
#include <dirent.h>
#include <pthread.h>
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { threads = 4, each_makes = 25, reopened = 8 };

static int descriptors(void) {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  REQUIRE(folder != NULL);
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

// ---- in several threads

static struct ends* shared;

struct own {
  urma_jfce_t* jfce;
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
  urma_target_jetty_t* target;
  urma_target_seg_t* seg;
  urma_target_seg_t* there;
  char memory[4096];
};

static bool make_queues(struct own* own, urma_context_t* ctx) {
  own->jfce = urma_create_jfce(ctx);
  urma_jfc_cfg_t jfc = {.depth = 16, .jfce = own->jfce};
  own->jfc = urma_create_jfc(ctx, &jfc);
  urma_jfr_cfg_t jfr = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = own->jfc};
  own->jfr = urma_create_jfr(ctx, &jfr);
  urma_jetty_cfg_t cfg = {
      .jfs_cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = own->jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = own->jfr;
  own->jetty = urma_create_jetty(ctx, &cfg);
  return own->jetty != NULL;
}

static bool make_memory(struct own* own, struct end* end) {
  urma_token_t token = secret;
  urma_seg_cfg_t cfg = {.va = (uint64_t)own->memory, .len = 4096, .token_value = secret};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  cfg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  own->seg = urma_register_seg(end->ctx, &cfg);
  own->there =
      urma_import_seg(end->ctx, &shared->b.seg->seg, &token, 0, (urma_import_seg_flag_t){0});
  urma_rjetty_t described = {
      .jetty_id = shared->b.jetty->jetty_id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  described.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  own->target = urma_import_jetty(end->ctx, &described, &token);
  return own->seg != NULL && own->there != NULL && own->target != NULL;
}

static bool write_once(struct own* own, uint64_t where) {
  urma_sge_t from = {.addr = (uint64_t)own->memory, .len = 64, .tseg = own->seg};
  urma_sge_t to = {.addr = (uint64_t)shared->b.memory + where, .len = 64, .tseg = own->there};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = own->target};
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record;
  wr.flag.bs.complete_enable = 1;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  return urma_post_jetty_send_wr(own->jetty, &wr, &bad) == URMA_SUCCESS &&
         collect(own->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS;
}

static bool end_all(struct own* own) {
  return urma_unimport_jetty(own->target) == URMA_SUCCESS &&
         urma_unimport_seg(own->there) == URMA_SUCCESS &&
         urma_delete_jetty(own->jetty) == URMA_SUCCESS &&
         urma_delete_jfr(own->jfr) == URMA_SUCCESS && urma_delete_jfc(own->jfc) == URMA_SUCCESS &&
         urma_delete_jfce(own->jfce) == URMA_SUCCESS &&
         urma_unregister_seg(own->seg) == URMA_SUCCESS;
}

static void* make_often(void* argument) {
  const uint64_t where = (uint64_t)(uintptr_t)argument * 4096;
  for (int i = 0; i < each_makes; ++i) {
    struct own own = {0};
    if (!make_queues(&own, shared->a.ctx) || !make_memory(&own, &shared->a)) return NULL;
    if (!write_once(&own, where) || !end_all(&own)) return NULL;
  }
  return argument;
}

static void several_threads(const char* device) {
  pthread_t all[threads];
  struct ends ends = make_ends(device, URMA_TM_RM);
  const unsigned long before = atomic_load(&ends.a.ctx->ref.atomic_cnt);
  shared = &ends;
  for (uintptr_t i = 0; i < threads; ++i) {
    REQUIRE(pthread_create(&all[i], NULL, make_often, (void*)(i + 1)) == 0);
  }
  for (int i = 0; i < threads; ++i) {
    void* result = NULL;
    CHECK(pthread_join(all[i], &result) == 0 && result != NULL);
  }
  CHECK(atomic_load(&ends.a.ctx->ref.atomic_cnt) == before);
  end_ends(&ends);
}

// ---- contexts

static void open_and_close(const char* device) {
  urma_device_t* const dev = urma_get_device_by_name((char*)device);
  for (int i = 0; i < reopened; ++i) {
    urma_context_t* const ctx = urma_create_context(dev, 0);
    REQUIRE(ctx != NULL);
    CHECK(ctx->uasid != 0 && ctx->dev == dev && atomic_load(&ctx->ref.atomic_cnt) == 1);
    CHECK(urma_delete_context(ctx) == URMA_SUCCESS);
  }
}

int main(void) {
  name_devices();
  for (int i = 0; i < device_count; ++i) {
    open_and_close(devices[i]);
    const int before = descriptors();
    open_and_close(devices[i]);
    several_threads(devices[i]);
    CHECK(descriptors() == before);
  }
  remove_devices();
  return failures != 0;
}
