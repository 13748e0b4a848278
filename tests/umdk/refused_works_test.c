// SPDX-License-Identifier: Apache-2.0
// Works and receives that a post refuses: nothing of them is executed, and the log says why.
#include <string.h>
#include <sys/mman.h>

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

// The segment of a work is of the process of its target, whether the work names that or the Jetty
// is bound to it.
static void segments_of_a_third_end(struct ends* ends, const char* device) {
  struct end* a = &ends->a;
  struct end c = make_end(device, URMA_TM_RM);
  urma_token_t token = secret;
  urma_target_seg_t* third =
      urma_import_seg(a->ctx, &c.seg->seg, &token, 0, (urma_import_seg_flag_t){0});
  REQUIRE(third != NULL);
  memset(c.memory, 1, 16);
  static const urma_opcode_t opcodes[] = {URMA_OPC_WRITE, URMA_OPC_READ, URMA_OPC_WRITE_IMM,
                                          URMA_OPC_FADD};
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; ++i) {
    urma_sge_t local = here(a, 0, 8);
    urma_sge_t remote = {.addr = c.seg->seg.ubva.va, .len = 8, .tseg = third};
    urma_jfs_wr_t wr = {.opcode = opcodes[i], .tjetty = a->to};
    urma_jfs_wr_t* bad = NULL;
    if (opcodes[i] == URMA_OPC_FADD) {
      wr.faa.dst = &remote;
      wr.faa.src = &local;
    } else {
      wr.rw.src = (urma_sg_t){opcodes[i] == URMA_OPC_READ ? &remote : &local, 1};
      wr.rw.dst = (urma_sg_t){opcodes[i] == URMA_OPC_READ ? &local : &remote, 1};
    }
    REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  }
  CHECK(strstr(last_reason, "target") != NULL);
  CHECK(c.memory[0] == 1 && c.memory[7] == 1);
  CHECK(urma_unimport_seg(third) == URMA_SUCCESS);
  end_end(&c);
}

// Works and receives that would store into memory which the process may not write.
static void read_only_memory(struct ends* ends) {
  struct end* a = &ends->a;
  char* const page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  urma_seg_cfg_t cfg = seg_cfg_of(page, URMA_ACCESS_LOCAL_ONLY);
  urma_target_seg_t* const seg = urma_register_seg(a->ctx, &cfg);
  REQUIRE(seg != NULL);
  urma_sge_t local = {.addr = (uint64_t)page, .len = 8, .tseg = seg};
  urma_sge_t remote = there(a, 0, 8);
  urma_jfs_wr_t read = {.opcode = URMA_OPC_READ, .tjetty = a->to};
  read.rw.src = (urma_sg_t){&remote, 1};
  read.rw.dst = (urma_sg_t){&local, 1};
  urma_jfs_wr_t add = {.opcode = URMA_OPC_FADD, .tjetty = a->to};
  add.faa.dst = &remote;
  add.faa.src = &local;
  urma_jfr_wr_t receive = {.src = {&local, 1}};
  urma_jfs_wr_t* bad = NULL;
  urma_jfr_wr_t* bad_receive = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &read, &bad));
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &add, &bad));
  REFUSES(EINVAL, urma_post_jetty_recv_wr(a->jetty, &receive, &bad_receive));
  urma_jfs_wr_t write = {.opcode = URMA_OPC_WRITE};
  write.rw.src = (urma_sg_t){&local, 1};
  write.rw.dst = (urma_sg_t){&remote, 1};
  CHECK(run(a, &write).status == URMA_CR_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  munmap(page, 4096);
}

// A target that is zeroed, as memory of a deleted one is, and one whose uasid is no port.
static void targets_of_nobody(struct ends* ends, bool in_window) {
  struct end* a = &ends->a;
  urma_target_jetty_t none = {0};
  urma_sge_t from = here(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = &none};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  none.id.uasid = 4792;
  REFUSES(EINVAL, urma_post_jetty_send_wr(a->jetty, &wr, &bad));
  if (in_window) return;
  urma_rjetty_t described = {.jetty_id = a->to->id, .trans_mode = URMA_TM_RM, .type = URMA_JETTY};
  described.jetty_id.uasid += 1 << 16;
  urma_token_t token = secret;
  NULLS(EINVAL, urma_import_jetty(a->ctx, &described, &token));
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

// ---- what the configuration of a queue allows

enum { device_ranges = 16, device_inline = 192 };

// Returns the status of a work of so many ranges, each of which lies where the earlier one ends.
static urma_status_t post_ranges(struct ends* ends, urma_jfs_t* jfs, urma_opcode_t opcode,
                                 uint32_t local, uint32_t remote) {
  struct end* a = &ends->a;
  urma_sge_t from[device_ranges + 2];
  urma_sge_t to[device_ranges + 2];
  for (uint32_t i = 0; i < device_ranges + 2; ++i) from[i] = here(a, 8 * i, 8);
  for (uint32_t i = 0; i < device_ranges + 2; ++i) to[i] = there(a, 8 * i, 8);
  if (remote > 0) to[remote - 1].len = 8 * (local + 1 - remote);  // as much as the local ranges
  urma_jfs_wr_t wr = {.opcode = opcode, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.flag.bs.complete_enable = 1;
  if (opcode == URMA_OPC_SEND) {
    receive(&ends->b, 0, 4096, 1);
    wr.send.src = (urma_sg_t){from, local};
  } else {
    if (opcode == URMA_OPC_WRITE_NOTIFY) to[remote++] = there(a, 8192, 8);
    wr.rw.src = opcode == URMA_OPC_READ ? (urma_sg_t){to, remote} : (urma_sg_t){from, local};
    wr.rw.dst = opcode == URMA_OPC_READ ? (urma_sg_t){from, local} : (urma_sg_t){to, remote};
  }
  const urma_status_t status = urma_post_jfs_wr(jfs, &wr, &bad);
  CHECK((bad == &wr) == (status != URMA_SUCCESS));
  urma_cr_t record = {.status = URMA_CR_WR_UNHANDLED};
  if (status == URMA_SUCCESS) {
    CHECK(collect(a->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
    CHECK(record.completion_len == 8 * local);
  }
  if (opcode == URMA_OPC_SEND && status != URMA_SUCCESS) {  // takes the receive
    urma_sge_t none = here(a, 0, 0);
    urma_jfs_wr_t next = {.opcode = URMA_OPC_SEND};
    next.send.src = (urma_sg_t){&none, 1};
    CHECK(run(a, &next).status == URMA_CR_SUCCESS);
  }
  if (opcode == URMA_OPC_SEND) CHECK(collect(ends->b.jfc, &record, 1) == 1);
  return status;
}

// A queue takes as many ranges as it was made for, and 0 stands for as many as the device has.
static void limits_of_a_queue(struct ends* ends, uint8_t max_sge, uint8_t max_rsge) {
  static const urma_opcode_t opcodes[] = {URMA_OPC_WRITE, URMA_OPC_WRITE_NOTIFY, URMA_OPC_READ,
                                          URMA_OPC_SEND};
  struct end* a = &ends->a;
  const uint32_t local = max_sge > 0 ? max_sge : device_ranges;
  const uint32_t remote = max_rsge > 0 ? max_rsge : device_ranges;
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  cfg.max_sge = max_sge;
  cfg.max_rsge = max_rsge;
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  REQUIRE(jfs != NULL);
  for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; ++i) {
    const urma_opcode_t opcode = opcodes[i];
    CHECK(post_ranges(ends, jfs, opcode, local, 1) == URMA_SUCCESS);
    REFUSES(EINVAL, post_ranges(ends, jfs, opcode, local + 1, 1));
    CHECK(strstr(last_reason, "max_sge") != NULL);
    if (opcode == URMA_OPC_SEND) continue;
    if (remote <= local) CHECK(post_ranges(ends, jfs, opcode, local, remote) == URMA_SUCCESS);
    REFUSES(EINVAL, post_ranges(ends, jfs, opcode, local, remote + 1));
    CHECK(strstr(last_reason, "max_rsge") != NULL);
  }
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

static void inline_limit(struct ends* ends, uint32_t max_inline_data) {
  struct end* a = &ends->a;
  const uint32_t most = max_inline_data > 0 ? max_inline_data : device_inline;
  char text[device_inline + 1] = {1};
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  cfg.max_inline_data = max_inline_data;
  cfg.max_sge = 2;
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  REQUIRE(jfs != NULL);
  urma_sge_t to = there(a, 0, most + 1);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record;
  wr.flag.bs.complete_enable = wr.flag.bs.inline_flag = 1;
  wr.rw.dst = (urma_sg_t){&to, 1};
  for (uint32_t bytes = most; bytes <= most + 1; ++bytes) {
    urma_sge_t from[2] = {{.addr = (uint64_t)text, .len = 1},
                          {.addr = (uint64_t)text + 1, .len = bytes - 1}};
    wr.rw.src = (urma_sg_t){from, 2};
    if (bytes > most) {
      REFUSES(EINVAL, urma_post_jfs_wr(jfs, &wr, &bad));
      CHECK(strstr(last_reason, "max_inline_data") != NULL);
      continue;
    }
    CHECK(urma_post_jfs_wr(jfs, &wr, &bad) == URMA_SUCCESS);
    CHECK(collect(a->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
  }
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// UMDK's driver rounds the limit of a JFR up to a power of two.
static void limits_of_receives(struct end* a) {
  static const struct {
    uint8_t max_sge;
    uint32_t most;
  } limits[] = {{1, 1}, {2, 2}, {3, 4}, {5, 8}, {16, 16}, {0, device_ranges}};
  urma_sge_t into[device_ranges + 1];
  for (uint32_t i = 0; i < device_ranges + 1; ++i) into[i] = here(a, 8 * i, 8);
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; ++i) {
    urma_jfr_cfg_t cfg = jfr_cfg_of(a->jfc);
    cfg.max_sge = limits[i].max_sge;
    urma_jfr_t* const jfr = urma_create_jfr(a->ctx, &cfg);
    REQUIRE(jfr != NULL);
    urma_jfr_wr_t second = {.src = {into, limits[i].most + 1}};
    urma_jfr_wr_t first = {.src = {into, limits[i].most}, .next = &second};
    urma_jfr_wr_t* bad = NULL;
    REFUSES(EINVAL, urma_post_jfr_wr(jfr, &first, &bad));
    CHECK(bad == &second && strstr(last_reason, "max_sge") != NULL);
    CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
  }
}

// ---- flags

static urma_status_t post_flagged(struct end* a, urma_jfs_wr_flag_t flag) {
  urma_sge_t from = here(a, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = flag, .tjetty = a->to};
  urma_jfs_wr_t* bad = NULL;
  wr.send.src = (urma_sg_t){&from, 1};
  const urma_status_t status = urma_post_jetty_send_wr(a->jetty, &wr, &bad);
  CHECK((bad == &wr) == (status != URMA_SUCCESS));
  return status;
}

// The order 3 does not exist. UMDK leaves the bits alone that have no meaning, and programs may set
// them.
static void flags(struct ends* ends) {
  struct end* a = &ends->a;
  urma_cr_t records[2];
  REFUSES(EINVAL, post_flagged(a, (urma_jfs_wr_flag_t){.bs = {.place_order = 3}}));
  CHECK(strstr(last_reason, "place_order is 3") != NULL);
  urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1, .db_bypass = 1, .udf = 1}};
  flag.bs.reserved = 0x3fffff;
  receive(&ends->b, 0, 64, 1);
  CHECK(post_flagged(a, flag) == URMA_SUCCESS);
  CHECK(collect(a->jfc, records, 1) == 1 && records[0].status == URMA_CR_SUCCESS);
  CHECK(collect(ends->b.jfc, records, 1) == 1);
}

// Datagrams have no order.
static void flags_of_datagrams(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_UM);
  static const urma_jfs_wr_flag_t all[] = {{.bs = {.place_order = URMA_RELAX_ORDER}},
                                           {.bs = {.place_order = URMA_STRONG_ORDER}},
                                           {.bs = {.comp_order = 1}},
                                           {.bs = {.fence = 1}}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
    REFUSES(EINVAL, post_flagged(&ends.a, all[i]));
  }
  end_ends(&ends);
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
  segments_of_a_third_end(&ends, device);
  read_only_memory(&ends);
  targets_of_nobody(&ends, device == devices[0]);
  wrong_ranges(&ends);
  wrong_opcodes(&ends);
  wrong_atomics(&ends);
  limits_of_a_queue(&ends, 1, 1);
  limits_of_a_queue(&ends, 3, 2);
  limits_of_a_queue(&ends, 0, 0);
  inline_limit(&ends, 10);
  inline_limit(&ends, 0);
  limits_of_receives(&ends.a);
  flags(&ends);
  end_ends(&ends);
  flags_of_datagrams(device);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
