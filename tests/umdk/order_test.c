// SPDX-License-Identifier: Apache-2.0
// The order in which a receiver has the records of messages: with comp_order, that of the posts.
#include <string.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

enum { messages = queue_depth, rounds = 5 };

// Posts a message that is numbered: a send, or a write with an immediate.
static void post_message(struct end* end, uint64_t number) {
  urma_sge_t from = here(end, 0, 8);
  urma_sge_t to = there(end, 0, 8);
  urma_jfs_wr_t wr = {.flag = signalled, .tjetty = end->to};
  wr.flag.bs.comp_order = 1;
  if (number % 2 == 0) {
    wr.opcode = URMA_OPC_SEND_IMM;
    wr.send.src = (urma_sg_t){&from, 1};
    wr.send.imm_data = number;
  } else {
    wr.opcode = URMA_OPC_WRITE_IMM;
    wr.rw.src = (urma_sg_t){&from, 1};
    wr.rw.dst = (urma_sg_t){&to, 1};
    wr.rw.notify_data = number;
  }
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
}

// Messages that find no receive are repeated, each after a time of its own: without an order, those
// that come first then are not those that were posted first.
static void messages_without_receives(struct ends* ends) {
  urma_cr_t record;
  for (uint64_t i = 0; i < messages; ++i) post_message(&ends->a, i);
  usleep(20 * 1000);
  for (uint64_t i = 0; i < messages; ++i) {
    receive(&ends->b, 0, 64, i);
    REQUIRE(collect(ends->b.jfc, &record, 1) == 1);
    CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == i && record.imm_data == i);
  }
  for (int i = 0; i < messages; ++i) {
    REQUIRE(collect(ends->a.jfc, &record, 1) == 1);
    CHECK(record.status == URMA_CR_SUCCESS);
  }
}

// Works without a record at their target have nothing to order there.
static void other_works(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from = here(a, 0, 8);
  urma_sge_t to = there(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .flag = signalled, .tjetty = a->to};
  wr.flag.bs.comp_order = 1;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  memset(a->memory, 7, 8);
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS && ends->b.memory[7] == 7);
}

int main(void) {
  name_devices();
  for (int i = 0; i < device_count; ++i) {
    for (int mode = URMA_TM_RM; mode <= URMA_TM_RC; mode <<= 1) {
      struct ends ends = make_ends(devices[i], (urma_transport_mode_t)mode);
      if (mode == URMA_TM_RC) CHECK(urma_bind_jetty(ends.a.jetty, ends.a.to) == URMA_SUCCESS);
      for (int round = 0; round < rounds; ++round) messages_without_receives(&ends);
      other_works(&ends);
      end_ends(&ends);
    }
  }
  remove_devices();
  return failures != 0;
}
