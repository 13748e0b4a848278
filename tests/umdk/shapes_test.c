// SPDX-License-Identifier: Apache-2.0
// Works of unusual shapes: without data, to the own context, of several ranges, atomics of small
// words; and Jetties that share a JFR.
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

static void fill(char* memory, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = (char)(i * 7 + (size_t)seed);
}

static void without_data(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from = here(a, 0, 0);
  urma_sge_t to = there(a, 0, 0);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  ends->b.memory[0] = 5;
  for (uint32_t ranges = 0; ranges <= 1; ++ranges) {
    wr.opcode = URMA_OPC_WRITE;
    wr.rw.src = (urma_sg_t){&from, ranges};
    wr.rw.dst = (urma_sg_t){&to, 1};
    const urma_cr_t record = run(a, &wr);
    CHECK(record.status == URMA_CR_SUCCESS && record.completion_len == 0);
    wr.opcode = URMA_OPC_READ;
    wr.rw.src = (urma_sg_t){&to, 1};
    wr.rw.dst = (urma_sg_t){&from, ranges};
    CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  }
  CHECK(ends->b.memory[0] == 5);
}

static void gather_and_scatter(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from[3] = {here(a, 0, 1), here(a, 5000, 4000), here(a, 100, 99)};
  urma_sge_t to = there(a, 64, 4100);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  fill(a->memory, 10000, 1);
  wr.rw.src = (urma_sg_t){from, 3};
  wr.rw.dst = (urma_sg_t){&to, 1};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(ends->b.memory[64] == a->memory[0]);
  CHECK(memcmp(ends->b.memory + 65, a->memory + 5000, 4000) == 0);
  CHECK(memcmp(ends->b.memory + 4065, a->memory + 100, 99) == 0);
  memset(a->memory, 0, 10000);
  wr.opcode = URMA_OPC_READ;
  wr.rw.src = (urma_sg_t){&to, 1};
  wr.rw.dst = (urma_sg_t){from, 3};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(ends->b.memory[64] == a->memory[0] && a->memory[1] == 0);
  CHECK(memcmp(ends->b.memory + 65, a->memory + 5000, 4000) == 0);
  CHECK(memcmp(ends->b.memory + 4065, a->memory + 100, 99) == 0);
  CHECK(a->memory[199] == 0 && a->memory[4999] == 0 && a->memory[9000] == 0);
}

// Several remote ranges, as urma_perftest --sge_num gives them, are those of one place.
static void remote_ranges(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from[2] = {here(a, 0, 100), here(a, 100, 300)};
  urma_sge_t to[3] = {there(a, 64, 200), there(a, 264, 100), there(a, 364, 100)};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  fill(a->memory, 400, 5);
  memset(ends->b.memory, 0, 1000);
  wr.rw.src = (urma_sg_t){from, 2};
  wr.rw.dst = (urma_sg_t){to, 3};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(memcmp(ends->b.memory + 64, a->memory, 400) == 0 && ends->b.memory[464] == 0);
  memset(a->memory, 0, 400);
  wr.opcode = URMA_OPC_READ;
  wr.rw.src = (urma_sg_t){to, 3};
  wr.rw.dst = (urma_sg_t){from, 2};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(memcmp(ends->b.memory + 64, a->memory, 400) == 0);
  wr.opcode = URMA_OPC_WRITE_NOTIFY;  // to the last range, which lies elsewhere
  wr.rw.src = (urma_sg_t){from, 1};
  wr.rw.notify_data = 0x1234;
  to[1] = there(a, 264, 1);
  to[2] = there(a, 800, 8);
  wr.rw.dst = (urma_sg_t){to, 3};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(*(uint64_t*)(ends->b.memory + 800) == 0x1234);
  wr.opcode = URMA_OPC_READ;
  to[1] = there(a, 264, 100);
  wr.rw.src = (urma_sg_t){to, 3};
  wr.rw.dst = (urma_sg_t){from, 2};
  to[2] = there(a, 365, 100);  // there is a hole
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_EINVAL && bad == &wr);
  to[2] = there(a, 364, 100);
  to[2].tseg = a->seg;  // another segment
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_EINVAL && bad == &wr);
  wr.rw.src.num_sge = 0;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_EINVAL && bad == &wr);
}

// The message is scattered over the ranges of the receive, and too long if these are full.
static void scattered_receive(struct ends* ends) {
  struct end* b = &ends->b;
  urma_sge_t into[3] = {here(b, 10, 1), here(b, 4000, 4096), here(b, 500, 100)};
  urma_jfr_wr_t wanted = {.src = {into, 3}, .user_ctx = 9};
  urma_jfr_wr_t* bad = NULL;
  urma_sge_t data = here(&ends->a, 0, 4150);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND};
  urma_cr_t record;
  fill(ends->a.memory, 5000, 6);
  memset(b->memory, 0, 10000);
  wr.send.src = (urma_sg_t){&data, 1};
  CHECK(urma_post_jetty_recv_wr(b->jetty, &wanted, &bad) == URMA_SUCCESS);
  CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
  REQUIRE(collect(b->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.completion_len == 4150 && record.user_ctx == 9);
  CHECK(b->memory[10] == ends->a.memory[0] && b->memory[11] == 0);
  CHECK(memcmp(b->memory + 4000, ends->a.memory + 1, 4096) == 0 && b->memory[8096] == 0);
  CHECK(memcmp(b->memory + 500, ends->a.memory + 4097, 53) == 0 && b->memory[553] == 0);
  data.len = 4198;
  CHECK(urma_post_jetty_recv_wr(b->jetty, &wanted, &bad) == URMA_SUCCESS);
  CHECK(run(&ends->a, &wr).status != URMA_CR_SUCCESS);
  REQUIRE(collect(b->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_LOC_LEN_ERR && record.user_ctx == 9);
}

// Atomics change their word alone, and store as many bytes as it has.
static void small_atomics(struct ends* ends) {
  struct end* a = &ends->a;
  for (uint32_t bytes = 1; bytes <= 8; bytes *= 2) {
    urma_sge_t word = there(a, 64 + bytes, bytes);
    urma_sge_t previous = here(a, 0, bytes);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD};
    memset(ends->b.memory, 0xff, 256);
    memset(a->memory, 0x11, 64);
    wr.faa = (urma_faa_wr_t){.dst = &word, .src = &previous, .operand = 3};
    const urma_cr_t record = run(a, &wr);
    CHECK(record.status == URMA_CR_SUCCESS && record.completion_len == bytes);
    CHECK(ends->b.memory[64 + bytes] == 2);
    for (uint32_t i = 1; i < bytes; ++i) CHECK(ends->b.memory[64 + bytes + i] == 0);
    CHECK(ends->b.memory[63 + bytes] == -1 && ends->b.memory[64 + 2 * bytes] == -1);
    for (uint32_t i = 0; i < 64; ++i) CHECK(a->memory[i] == (i < bytes ? -1 : 0x11));
  }
}

// An atomic without a record stores its value before a later record is polled.
static void atomic_without_record(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t word = there(a, 0, 8);
  urma_sge_t previous = here(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .tjetty = a->to, .user_ctx = 99};
  urma_jfs_wr_t* bad = NULL;
  *(uint64_t*)ends->b.memory = 0;
  for (uint64_t i = 0; i < 5 * queue_depth; ++i) {
    wr.flag.bs.complete_enable = 0;
    wr.faa = (urma_faa_wr_t){.dst = &word, .src = &previous, .operand = 1};
    CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_SUCCESS);
    const urma_cr_t record = run(a, &wr);
    CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 99);
    CHECK(*(uint64_t*)a->memory == 2 * i + 1);
  }
}

// A context that sends to itself.
static void loopback(struct ends* ends) {
  struct end* a = &ends->a;
  urma_rjetty_t* rjetty = NULL;
  urma_seg_t* seg = NULL;
  urma_token_t token = secret;
  uint32_t bytes = 0;
  CHECK(urma_get_rjetty(a->jetty, &rjetty, &bytes) == URMA_SUCCESS);
  CHECK(urma_get_seg_ctx(a->seg, &seg, &bytes) == URMA_SUCCESS);
  struct end self = *a;
  self.to = urma_import_jetty(a->ctx, rjetty, &token);
  self.there = urma_import_seg(a->ctx, seg, &token, 0, (urma_import_seg_flag_t){0});
  self.there_memory = a->memory;
  REQUIRE(self.to != NULL && self.there != NULL);
  fill(a->memory, 1000, 3);
  urma_sge_t from = here(a, 0, 1000);
  urma_sge_t to = there(&self, 5000, 1000);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  CHECK(run(&self, &wr).status == URMA_CR_SUCCESS);
  CHECK(memcmp(a->memory, a->memory + 5000, 1000) == 0);
  to.tseg = a->seg;  // a registered segment is a target, too
  a->memory[0] = 77;
  CHECK(run(&self, &wr).status == URMA_CR_SUCCESS);
  CHECK(a->memory[5000] == 77);
  receive(a, 7000, 1000, 4);
  urma_jfs_wr_t send = {.opcode = URMA_OPC_SEND, .tjetty = self.to, .user_ctx = 5};
  send.flag.bs.complete_enable = 1;
  send.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t records[2];
  CHECK(urma_post_jetty_send_wr(a->jetty, &send, &bad) == URMA_SUCCESS);
  REQUIRE(collect(a->jfc, records, 2) == 2);
  CHECK(records[0].status == URMA_CR_SUCCESS && records[1].status == URMA_CR_SUCCESS);
  CHECK(records[0].user_ctx + records[1].user_ctx == 9);
  CHECK(memcmp(a->memory, a->memory + 7000, 1000) == 0);
  urma_put_rjetty(rjetty);
  urma_put_seg_ctx(seg);
  unimport(&self);
}

// Records of arrivals say which of the Jetties of a JFR the sender named.
static void shared_jfr(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jetty_cfg_t cfg = {
      .jfs_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = b->jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = b->jfr;
  urma_jetty_t* const second = urma_create_jetty(b->ctx, &cfg);
  REQUIRE(second != NULL);
  urma_jetty_t* const both[2] = {b->jetty, second};
  for (int i = 0; i < 8; ++i) {
    urma_rjetty_t* rjetty = NULL;
    uint32_t bytes = 0;
    urma_token_t token = secret;
    CHECK(urma_get_rjetty(both[i % 2], &rjetty, &bytes) == URMA_SUCCESS);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND};
    wr.tjetty = urma_import_jetty(ends->a.ctx, rjetty, &token);
    REQUIRE(wr.tjetty != NULL);
    urma_put_rjetty(rjetty);
    receive(b, 0, 64, (uint64_t)i);
    urma_cr_t arrived;
    CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
    REQUIRE(collect(b->jfc, &arrived, 1) == 1);
    CHECK(arrived.status == URMA_CR_SUCCESS && arrived.user_ctx == (uint64_t)i);
    CHECK(arrived.local_id == both[i % 2]->jetty_id.id);
    CHECK(arrived.user_data == (uintptr_t)both[i % 2]);
    CHECK(urma_unimport_jetty(wr.tjetty) == URMA_SUCCESS);
  }
  CHECK(urma_delete_jetty(second) == URMA_SUCCESS);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);  // some calls fail on purpose
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    without_data(&ends);
    remote_ranges(&ends);
    scattered_receive(&ends);
    gather_and_scatter(&ends);
    small_atomics(&ends);
    atomic_without_record(&ends);
    loopback(&ends);
    shared_jfr(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
