// SPDX-License-Identifier: Apache-2.0
// A context writes into its own segment, as a program of UMDK does. Run as: write DEVICE. Returns 0
// if the bytes are where they belong. With -DSHORT_NAMES it includes the headers by short names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SHORT_NAMES
#include <urma_api.h>
#else
#include <ub/umdk/urma/urma_api.h>
#endif

enum { memory_bytes = 8192, half = memory_bytes / 2 };

static urma_status_t write_half(urma_jetty_t* jetty, urma_target_jetty_t* to,
                                urma_target_seg_t* seg, char* memory) {
  urma_sge_t from = {.addr = (uint64_t)memory, .len = half, .tseg = seg};
  urma_sge_t into = {.addr = (uint64_t)(memory + half), .len = half, .tseg = seg};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = to};
  urma_jfs_wr_t* bad = NULL;
  wr.flag.bs.complete_enable = 1;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&into, 1};
  return urma_post_jetty_send_wr(jetty, &wr, &bad);
}

static int fail(const char* what) {
  fprintf(stderr, "write: %s failed\n", what);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (urma_init(NULL) != URMA_SUCCESS) return fail("urma_init");
  urma_device_t* device = urma_get_device_by_name(argv[1]);
  urma_context_t* context = device == NULL ? NULL : urma_create_context(device, 0);
  if (context == NULL) return fail("urma_create_context");
  urma_jfc_cfg_t jfc_cfg = {.depth = 16};
  urma_jfc_t* jfc = urma_create_jfc(context, &jfc_cfg);
  urma_jfr_cfg_t jfr_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
  urma_jfr_t* jfr = urma_create_jfr(context, &jfr_cfg);
  urma_jetty_cfg_t cfg = {
      .jfs_cfg = {.depth = 16, .trans_mode = URMA_TM_RM, .max_sge = 1, .max_rsge = 1, .jfc = jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = jfr;
  urma_jetty_t* jetty = urma_create_jetty(context, &cfg);
  char* memory = aligned_alloc(4096, memory_bytes);
  urma_seg_cfg_t seg_cfg = {.va = (uint64_t)memory, .len = memory_bytes};
  seg_cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  urma_target_seg_t* seg = urma_register_seg(context, &seg_cfg);
  if (jetty == NULL || seg == NULL) return fail("urma_create_jetty or urma_register_seg");

  urma_rjetty_t* own = NULL;
  uint32_t bytes = 0;
  urma_token_t token = {0};
  if (urma_get_rjetty(jetty, &own, &bytes) != URMA_SUCCESS) return fail("urma_get_rjetty");
  urma_target_jetty_t* to = urma_import_jetty(context, own, &token);
  urma_put_rjetty(own);
  if (to == NULL) return fail("urma_import_jetty");
  memset(memory, 7, half);
  memset(memory + half, 0, half);
  if (write_half(jetty, to, seg, memory) != URMA_SUCCESS) return fail("urma_post_jetty_send_wr");
  urma_cr_t record;
  while (urma_poll_jfc(jfc, 1, &record) == 0) continue;
  const int same = memcmp(memory, memory + half, half) == 0;
  if (record.status != URMA_CR_SUCCESS || !same) return fail("the write");

  urma_unimport_jetty(to);
  urma_unregister_seg(seg);
  urma_delete_jetty(jetty);
  urma_delete_jfr(jfr);
  urma_delete_jfc(jfc);
  if (urma_delete_context(context) != URMA_SUCCESS) return fail("urma_delete_context");
  if (urma_uninit() != URMA_SUCCESS) return fail("urma_uninit");
  free(memory);
  return puts("written") < 0;
}
