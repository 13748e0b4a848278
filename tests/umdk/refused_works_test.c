// SPDX-License-Identifier: Apache-2.0
// Works and receives that a post refuses: nothing of them is executed, and the log says why.
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

static void foreign_ranges(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_sge_t from = here(a, 0, 8);
  urma_sge_t to = there(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = b->to};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  urma_jfs_wr_t* bad = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  CHECK(bad == &wr);
  wr.tjetty = a->to;
  to = there(b, 0, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  to = there(a, 0, 8);
  from = here(b, 0, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  urma_jfr_wr_t receive = {.src = {&from, 1}};
  urma_jfr_wr_t* bad_receive = NULL;
  REFUSES(EINVAL, urma_post_jetty_recv_wr(a->jetty, &receive, &bad_receive));
  CHECK(bad_receive == &receive);
}

static void wrong_ranges(struct ends* ends) {
  struct end* a = &ends->a;
  urma_sge_t from[6];
  for (int i = 0; i < 6; ++i) from[i] = here(a, 0, 8);
  urma_sge_t to[2] = {there(a, 0, 8), there(a, 100, 8)};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  const struct {
    urma_sg_t src;
    urma_sg_t dst;
  } all[] = {{{from, 6000}, {to, 1}}, {{NULL, 1}, {to, 1}}, {{from, 1}, {NULL, 1}},
             {{from, 1}, {to, 0}},    {{from, 1}, {to, 2}}, {{from, 1}, {to, 6000}}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    wr.rw.src = all[i].src;
    wr.rw.dst = all[i].dst;
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  wr.rw.src = (urma_sg_t){from, 1};
  wr.rw.dst = (urma_sg_t){to, 1};
  from[0] = here(a, memory_bytes - 4, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, (uint64_t)-8, 8);
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, 0, 8);
  from[0].tseg = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  from[0] = here(a, 0, 4096);
  wr.flag.bs.inline_flag = 1;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
}

static void wrong_opcodes(struct ends* ends) {
  static const int opcodes[] = {0x03, 0x11, 0x27, 0x40 + 2, 0x51, 0x60, 0x80, 0xff};
  struct end* a = &ends->a;
  urma_sge_t from = here(a, 0, 8);
  urma_sge_t to = there(a, 0, 8);
  urma_jfs_wr_t wr = {.tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; ++i) {
    wr.opcode = (urma_opcode_t)opcodes[i];
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  wr.opcode = URMA_OPC_WRITE_NOTIFY;  // which needs a second remote range
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  wr.opcode = URMA_OPC_WRITE;
  wr.tjetty = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
}

static void wrong_atomics(struct ends* ends) {
  static const uint32_t bytes[] = {0, 3, 5, 6, 7, 16, 4096};
  struct end* a = &ends->a;
  urma_sge_t local = here(a, 0, 4096);
  urma_sge_t remote = there(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_FADD, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.faa.dst = &remote;
  wr.faa.src = &local;
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; ++i) {
    remote.len = bytes[i];
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  remote.len = 8;
  local.len = 4;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  wr.faa.src = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  CHECK(strstr(last_reason, "urma_post_jetty_send_wr") != NULL);
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  foreign_ranges(&ends);
  wrong_ranges(&ends);
  wrong_opcodes(&ends);
  wrong_atomics(&ends);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
