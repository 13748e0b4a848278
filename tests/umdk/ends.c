// SPDX-License-Identifier: Apache-2.0
#include "tests/umdk/ends.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/umdk/check.h"

int failures = 0;
const urma_token_t secret = {0xacfe};
bool lock_free = false;
const char* const devices[] = {"window", "network"};

static char window[64];

#if defined(__SANITIZE_THREAD__)
// Memory that a peer uses: the sanitizer does not know that a packet arrives after it was sent.
const char* __tsan_default_suppressions(void);
const char* __tsan_default_suppressions(void) {
  return "race:urma::jetty::Executor\n"
         "race:urma::jetty::Answers\n"
         "race:urma::drivers::udp::MmsgIo\n"
         "race:^small_atomics$\n";
}
#endif

static pid_t owner;  // children of this process leave the window alone
static void remove_window(void) {
  if (getpid() == owner) unlink(window);
}

void name_devices(void) {
  char text[256];
  owner = getpid();
  snprintf(window, sizeof window, "/dev/shm/umdk-test-%d", (int)getpid());
  REQUIRE(atexit(remove_window) == 0);  // also if a REQUIRE ends the program
  snprintf(text, sizeof text, "window=cxl:%s?size=64M;network=udp:127.0.0.1:0", window);
  setenv("URMA_DEVICES", text, 1);
  REQUIRE(urma_init(NULL) == URMA_SUCCESS);
}

void remove_devices(void) {
  CHECK(urma_uninit() == URMA_SUCCESS);
  remove_window();
}

struct end make_end(const char* device, urma_transport_mode_t mode) {
  struct end end = {0};
  urma_device_t* dev = urma_get_device_by_name((char*)device);
  REQUIRE(dev != NULL);
  end.ctx = urma_create_context(dev, 0);
  REQUIRE(end.ctx != NULL);
  end.jfce = urma_create_jfce(end.ctx);
  REQUIRE(end.jfce != NULL);
  urma_jfc_cfg_t jfc = {.depth = 4 * queue_depth, .jfce = end.jfce};
  jfc.flag.bs.lock_free = lock_free;
  end.jfc = urma_create_jfc(end.ctx, &jfc);
  REQUIRE(end.jfc != NULL);
  urma_jfr_cfg_t jfr = {.depth = queue_depth,
                        .trans_mode = mode,
                        .max_sge = 4,
                        .jfc = end.jfc,
                        .token_value = secret};
  jfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  jfr.flag.bs.lock_free = lock_free;
  end.jfr = urma_create_jfr(end.ctx, &jfr);
  REQUIRE(end.jfr != NULL);
  urma_jetty_cfg_t jetty = {.jfs_cfg = {.depth = queue_depth,
                                        .trans_mode = mode,
                                        .max_sge = 4,
                                        .max_rsge = 3,
                                        .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                                        .jfc = end.jfc}};
  jetty.jfs_cfg.flag.bs.lock_free = lock_free;
  jetty.flag.bs.share_jfr = URMA_SHARE_JFR;
  jetty.shared.jfr = end.jfr;
  end.jetty = urma_create_jetty(end.ctx, &jetty);
  REQUIRE(end.jetty != NULL);
  REQUIRE(posix_memalign((void**)&end.memory, 4096, memory_bytes) == 0);
  memset(end.memory, 0, memory_bytes);
  urma_seg_cfg_t seg = {.va = (uint64_t)end.memory, .len = memory_bytes, .token_value = secret};
  seg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  seg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC;
  end.seg = urma_register_seg(end.ctx, &seg);
  REQUIRE(end.seg != NULL);
  return end;
}

void import(struct end* end, urma_rjetty_t* rjetty, urma_seg_t* seg) {
  urma_token_t token = secret;
  end->to = urma_import_jetty(end->ctx, rjetty, &token);
  REQUIRE(end->to != NULL);
  end->there = urma_import_seg(end->ctx, seg, &token, 0, (urma_import_seg_flag_t){0});
  REQUIRE(end->there != NULL);
  end->there_memory = (char*)seg->ubva.va;
}

void unimport(struct end* end) {
  if (end->to != NULL) CHECK(urma_unimport_jetty(end->to) == URMA_SUCCESS);
  if (end->there != NULL) CHECK(urma_unimport_seg(end->there) == URMA_SUCCESS);
  end->to = NULL;
  end->there = NULL;
}

// Lets one end know the other, by what two processes would exchange.
static void introduce(struct end* end, struct end* other) {
  urma_rjetty_t* rjetty = NULL;
  urma_seg_t* seg = NULL;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(other->jetty, &rjetty, &bytes) == URMA_SUCCESS);
  CHECK(bytes == sizeof *rjetty);
  REQUIRE(urma_get_seg_ctx(other->seg, &seg, &bytes) == URMA_SUCCESS);
  CHECK(bytes == sizeof *seg);
  import(end, rjetty, seg);
  urma_put_rjetty(rjetty);
  urma_put_seg_ctx(seg);
}

struct ends make_ends(const char* device, urma_transport_mode_t mode) {
  struct ends ends = {make_end(device, mode), make_end(device, mode)};
  introduce(&ends.a, &ends.b);
  introduce(&ends.b, &ends.a);
  return ends;
}

void end_end(struct end* end) {
  if (end->jetty->remote_jetty != NULL) CHECK(urma_unbind_jetty(end->jetty) == URMA_SUCCESS);
  unimport(end);
  CHECK(urma_delete_jetty(end->jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(end->jfr) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(end->jfc) == URMA_SUCCESS);
  CHECK(urma_delete_jfce(end->jfce) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(end->seg) == URMA_SUCCESS);
  CHECK(urma_delete_context(end->ctx) == URMA_SUCCESS);
  free(end->memory);
}

void end_ends(struct ends* ends) {
  end_end(&ends->a);
  end_end(&ends->b);
}

double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int collect(urma_jfc_t* jfc, urma_cr_t* records, int count) {
  const double until = now_ms() + 10000;
  int have = 0;
  while (have < count && now_ms() < until) {
    const int more = urma_poll_jfc(jfc, count - have, records + have);
    if (more < 0) break;
    have += more;
  }
  return have;
}

urma_cr_t run(struct end* end, urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record = {0};
  wr->flag.bs.complete_enable = 1;
  if (wr->tjetty == NULL) wr->tjetty = end->to;
  const urma_status_t posted = urma_post_jetty_send_wr(end->jetty, wr, &bad);
  CHECK(posted == URMA_SUCCESS);
  if (posted == URMA_SUCCESS) CHECK(collect(end->jfc, &record, 1) == 1);
  return record;
}

void receive(struct end* end, uint64_t offset, uint32_t bytes, uint64_t user_ctx) {
  urma_sge_t sge = here(end, offset, bytes);
  urma_jfr_wr_t wr = {.src = {&sge, 1}, .user_ctx = user_ctx};
  urma_jfr_wr_t* bad = NULL;
  CHECK(urma_post_jetty_recv_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

urma_sge_t here(struct end* end, uint64_t offset, uint32_t bytes) {
  return (urma_sge_t){.addr = (uint64_t)end->memory + offset, .len = bytes, .tseg = end->seg};
}

urma_sge_t there(struct end* end, uint64_t offset, uint32_t bytes) {
  return (urma_sge_t){
      .addr = (uint64_t)end->there_memory + offset, .len = bytes, .tseg = end->there};
}
