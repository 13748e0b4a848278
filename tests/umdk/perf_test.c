// SPDX-License-Identifier: Apache-2.0
// The figures of urma_get_perf_info.
#include <errno.h>
#include <string.h>
#include <urma_perf.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { writes = 100, text_bytes = 4096 };

struct line {
  unsigned long long count, average, least, most, p90, p99, p9999;
};

// Returns the figures of one call; all are 0 if it was not measured.
static struct line line_of(const char* call) {
  char text[text_bytes];
  uint32_t bytes = text_bytes;
  struct line line = {0};
  CHECK(urma_get_perf_info(text, &bytes) == URMA_SUCCESS);
  CHECK(bytes == strlen(text) + 1);
  char* const begin = strstr(text, call);
  if (begin == NULL) return line;
  const int read =
      sscanf(begin + strlen(call), "%llu %llu %llu %llu %llu %llu %llu", &line.count, &line.average,
             &line.least, &line.most, &line.p90, &line.p99, &line.p9999);
  CHECK(read == 7);
  return line;
}

static void write_often(struct end* end) {
  for (int i = 0; i < writes; ++i) {
    urma_sge_t from = here(end, 0, 8);
    urma_sge_t to = there(end, 0, 8);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
    wr.rw.src = (urma_sg_t){&from, 1};
    wr.rw.dst = (urma_sg_t){&to, 1};
    CHECK(run(end, &wr).status == URMA_CR_SUCCESS);
  }
}

static void check_line(const struct line* line) {
  CHECK(line->least > 0 && line->least <= line->average && line->average <= line->most);
  CHECK(line->least <= line->p90 && line->p90 <= line->p99);
  CHECK(line->p99 <= line->p9999 && line->p9999 <= line->most);
}

// Calls each of the other functions that are measured.
static void call_others(struct ends* ends) {
  struct end* a = &ends->a;
  urma_jfc_t* jfc = a->jfc;
  uint32_t one = 1;
  urma_jfs_cfg_t cfg = {.depth = 4, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  CHECK(urma_write(jfs, a->to, a->there, a->seg, (uint64_t)a->there_memory, (uint64_t)a->memory, 8,
                   flag, 1) == URMA_SUCCESS);
  receive(a, 0, 8, 1);
  CHECK(urma_recv(a->jfr, a->seg, (uint64_t)a->memory, 8, 1) == URMA_SUCCESS);
  CHECK(urma_rearm_jfc(a->jfc, false) == URMA_SUCCESS);
  CHECK(urma_wait_jfc(a->jfce, 1, 1000, &jfc) == 1);
  urma_ack_jfc(&jfc, &one, 1);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

static void wrong_buffers(void) {
  char text[8] = "";
  uint32_t bytes = sizeof text;
  CHECK(urma_get_perf_info(NULL, &bytes) == EINVAL);
  CHECK(urma_get_perf_info(text, NULL) == EINVAL);
  CHECK(urma_get_perf_info(text, &bytes) == EINVAL);
  CHECK(bytes == sizeof text && text[0] == 0);
}

int main(void) {
  static const char* const others[] = {"UB_JFS_POST_SEND", "UB_JETTY_POST_RECV", "UB_POST_JFR_RECV",
                                       "UB_WAIT_JFC",      "UB_ACK_JFC",         "UB_REARM_JFC"};
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  wrong_buffers();
  struct ends ends = make_ends(devices[0], URMA_TM_RM);
  write_often(&ends.a);
  CHECK(line_of("UB_JETTY_POST_SEND").count == 0);
  CHECK(urma_start_perf() == URMA_SUCCESS);
  write_often(&ends.a);
  call_others(&ends);
  CHECK(urma_stop_perf() == URMA_SUCCESS);
  write_often(&ends.a);
  struct line line = line_of("UB_JETTY_POST_SEND");
  CHECK(line.count == writes);
  check_line(&line);
  line = line_of("UB_POLL_JFC");
  CHECK(line.count >= writes);
  check_line(&line);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; ++i) {
    line = line_of(others[i]);
    CHECK(line.count == 1 && line.least == line.most);
  }
  CHECK(urma_start_perf() == URMA_SUCCESS);  // from zero
  CHECK(line_of("UB_JETTY_POST_SEND").count == 0);
  CHECK(urma_stop_perf() == URMA_SUCCESS);
  end_ends(&ends);
  remove_devices();
  return failures != 0;
}
