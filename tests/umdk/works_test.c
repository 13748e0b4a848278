// SPDX-License-Identifier: Apache-2.0
// Every kind of work between two contexts, and what its records say.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

static void fill(char* memory, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = (char)(i * 7 + (size_t)seed);
}

static void check_work(struct end* end, const urma_cr_t* record, uint64_t user_ctx) {
  CHECK(record->status == URMA_CR_SUCCESS);
  CHECK(record->user_ctx == user_ctx);
  CHECK(record->flag.bs.s_r == 0);
  CHECK(record->flag.bs.jetty == 1);
  CHECK(record->local_id == end->jetty->jetty_id.id);
  CHECK(record->user_data == (uintptr_t)end->jetty);
}

static void check_arrival(struct end* end, const struct end* from, const urma_cr_t* record,
                          uint64_t user_ctx) {
  CHECK(record->status == URMA_CR_SUCCESS);
  CHECK(record->user_ctx == user_ctx);
  CHECK(record->flag.bs.s_r == 1);
  CHECK(record->flag.bs.jetty == 1);
  CHECK(record->local_id == end->jetty->jetty_id.id);
  CHECK(record->user_data == (uintptr_t)end->jetty);
  CHECK(memcmp(&record->remote_id, &from->jetty->jetty_id, sizeof record->remote_id) == 0);
  CHECK(record->tpn != 0 && record->tpn == end->to->tp.tpn);
}

static void write_and_read(struct ends* ends, uint32_t bytes) {
  struct end* a = &ends->a;
  fill(a->memory, bytes, 1);
  urma_sge_t from = here(a, 0, bytes);
  urma_sge_t to = there(a, 0, bytes);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .user_ctx = 11};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  urma_cr_t record = run(a, &wr);
  check_work(a, &record, 11);
  CHECK(record.completion_len == bytes);
  CHECK(memcmp(ends->b.memory, a->memory, bytes) == 0);

  fill(ends->b.memory, bytes, 2);
  urma_jfs_wr_t back = {.opcode = URMA_OPC_READ, .user_ctx = 12};
  back.rw.src = (urma_sg_t){&to, 1};
  back.rw.dst = (urma_sg_t){&from, 1};
  record = run(a, &back);
  check_work(a, &record, 12);
  CHECK(memcmp(ends->b.memory, a->memory, bytes) == 0);
}

static void write_immediate(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  const uint64_t immediate = 0x1234567890abcdef;
  memset(b->memory + 4096, 0x55, 64);
  receive(b, 4096, 64, 21);
  fill(a->memory, 100, 3);
  urma_sge_t from = here(a, 0, 100);
  urma_sge_t to = there(a, 200, 100);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE_IMM, .user_ctx = 22};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  wr.rw.notify_data = immediate;
  const urma_cr_t record = run(a, &wr);
  check_work(a, &record, 22);
  urma_cr_t arrived;
  CHECK(collect(b->jfc, &arrived, 1) == 1);
  check_arrival(b, a, &arrived, 21);
  CHECK(arrived.opcode == URMA_CR_OPC_WRITE_WITH_IMM);
  CHECK(arrived.imm_data == immediate);
  CHECK(arrived.completion_len == 100);
  CHECK(memcmp(b->memory + 200, a->memory, 100) == 0);
  CHECK(b->memory[4096] == 0x55);
}

// The buffers of a message are gathered from two ranges, and scattered to three.
static void send_message(struct ends* ends, bool immediate) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_sge_t into[3] = {here(b, 0, 10), here(b, 100, 20), here(b, 200, 100)};
  urma_jfr_wr_t receive = {.src = {into, 3}, .user_ctx = 31};
  urma_jfr_wr_t* bad = NULL;
  CHECK(urma_post_jfr_wr(b->jfr, &receive, &bad) == URMA_SUCCESS);
  fill(a->memory, 200, 4);
  urma_sge_t from[2] = {here(a, 0, 40), here(a, 100, 10)};
  urma_jfs_wr_t wr = {.opcode = immediate ? URMA_OPC_SEND_IMM : URMA_OPC_SEND, .user_ctx = 32};
  wr.send.src = (urma_sg_t){from, 2};
  wr.send.imm_data = 77;
  wr.tjetty = a->to;
  wr.flag.bs.complete_enable = 1;
  urma_jfs_wr_t* worse = NULL;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &worse) == URMA_SUCCESS);
  urma_cr_t record;
  CHECK(collect(a->jfc, &record, 1) == 1);
  check_work(a, &record, 32);
  urma_cr_t arrived;
  CHECK(collect(b->jfc, &arrived, 1) == 1);
  check_arrival(b, a, &arrived, 31);
  CHECK(arrived.opcode == (immediate ? URMA_CR_OPC_SEND_WITH_IMM : URMA_CR_OPC_SEND));
  if (immediate) CHECK(arrived.imm_data == 77);
  CHECK(arrived.completion_len == 50);
  CHECK(memcmp(b->memory, a->memory, 10) == 0);
  CHECK(memcmp(b->memory + 100, a->memory + 10, 20) == 0);
  CHECK(memcmp(b->memory + 200, a->memory + 30, 10) == 0);
  CHECK(memcmp(b->memory + 210, a->memory + 100, 10) == 0);
}

static void write_notify(struct ends* ends) {
  struct end* a = &ends->a;
  volatile uint64_t* flag = (volatile uint64_t*)(ends->b.memory + 8192);
  *flag = 0;
  fill(a->memory, 3000, 5);
  urma_sge_t from = here(a, 0, 3000);
  urma_sge_t to[2] = {there(a, 0, 3000), there(a, 8192, 8)};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE_NOTIFY, .user_ctx = 41};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){to, 2};
  wr.rw.notify_data = 99;
  const urma_cr_t record = run(a, &wr);
  check_work(a, &record, 41);
  CHECK(*flag == 99);
  CHECK(memcmp(ends->b.memory, a->memory, 3000) == 0);
}

static uint64_t fetch(struct ends* ends, urma_opcode_t opcode, uint64_t before, uint64_t operand,
                      uint64_t expected) {
  struct end* a = &ends->a;
  *(uint64_t*)ends->b.memory = before;
  memset(a->memory, 0, 64);
  urma_sge_t word = there(a, 0, 8);
  urma_sge_t previous = here(a, 16, 8);
  urma_jfs_wr_t wr = {.opcode = opcode, .user_ctx = 51};
  if (opcode == URMA_OPC_CAS) {
    wr.cas.dst = &word;
    wr.cas.src = &previous;
    wr.cas.cmp_data = expected;
    wr.cas.swap_data = operand;
  } else {
    wr.faa.dst = &word;
    wr.faa.src = &previous;
    wr.faa.operand = operand;
  }
  const urma_cr_t record = run(a, &wr);
  check_work(a, &record, 51);
  CHECK(record.completion_len == 8);
  CHECK(*(uint64_t*)(a->memory + 16) == before);
  return *(uint64_t*)ends->b.memory;
}

static void atomics(struct ends* ends) {
  CHECK(fetch(ends, URMA_OPC_FADD, 40, 2, 0) == 42);
  CHECK(fetch(ends, URMA_OPC_FSUB, 44, 2, 0) == 42);
  CHECK(fetch(ends, URMA_OPC_FAND, 0xff, 0x0f, 0) == 0x0f);
  CHECK(fetch(ends, URMA_OPC_FOR, 0xf0, 0x0f, 0) == 0xff);
  CHECK(fetch(ends, URMA_OPC_FXOR, 0xff, 0x0f, 0) == 0xf0);
  CHECK(fetch(ends, URMA_OPC_SWAP, 1, 2, 0) == 2);
  CHECK(fetch(ends, URMA_OPC_CAS, 1, 2, 1) == 2);
  CHECK(fetch(ends, URMA_OPC_CAS, 1, 2, 3) == 1);
}

// The fetched value is in its place without a poll, so the memory may be unmapped before one.
static void fetched_without_a_poll(struct ends* ends) {
  struct end* a = &ends->a;
  char* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  urma_seg_cfg_t cfg = {.va = (uint64_t)page, .len = 4096};
  cfg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  urma_target_seg_t* const local = urma_register_seg(a->ctx, &cfg);
  REQUIRE(local != NULL);
  volatile uint64_t* const fetched = (volatile uint64_t*)page;
  *(uint64_t*)ends->b.memory = 40;
  urma_sge_t word = there(a, 0, 8);
  urma_sge_t previous = {.addr = (uint64_t)page, .len = 8, .tseg = local};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .tjetty = a->to, .user_ctx = 61};
  wr.flag.bs.complete_enable = 1;
  wr.faa.dst = &word;
  wr.faa.src = &previous;
  wr.faa.operand = 2;
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_SUCCESS);
  const double until = now_ms() + 10000;
  while (*fetched != 40 && now_ms() < until) usleep(100);
  CHECK(*fetched == 40 && *(uint64_t*)ends->b.memory == 42);
  CHECK(urma_unregister_seg(local) == URMA_SUCCESS);
  CHECK(munmap(page, 4096) == 0);
  urma_cr_t record;
  CHECK(collect(a->jfc, &record, 1) == 1);
  check_work(a, &record, 61);
}

int main(void) {
  name_devices();
  for (int i = 0; i < device_count; ++i) {
    for (int mode = URMA_TM_RM; mode <= URMA_TM_RC; mode <<= 1) {
      struct ends ends = make_ends(devices[i], (urma_transport_mode_t)mode);
      if (mode == URMA_TM_RC) {
        CHECK(urma_bind_jetty(ends.a.jetty, ends.a.to) == URMA_SUCCESS);
        CHECK(ends.a.jetty->remote_jetty == ends.a.to);
      }
      write_and_read(&ends, 8);
      write_and_read(&ends, 300000);
      write_immediate(&ends);
      send_message(&ends, false);
      send_message(&ends, true);
      write_notify(&ends);
      atomics(&ends);
      fetched_without_a_poll(&ends);
      end_ends(&ends);
    }
  }
  remove_devices();
  return failures != 0;
}
