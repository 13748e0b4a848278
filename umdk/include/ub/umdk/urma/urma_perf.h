// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long the calls of the data path take.

#include <stdint.h>

#include "urma_opcode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define URMA_PERF_THREAD_MAX_NUM (128u)

// The calls that are measured. Those of bonding devices (BOND_) never are.
typedef enum urma_perf_type {
  UB_JETTY_POST_SEND,
  BOND_JETTY_POST_SEND,
  UB_JFS_POST_SEND,
  BOND_JFS_POST_SEND,
  UB_JETTY_POST_RECV,
  BOND_JETTY_POST_RECV,
  UB_POST_JFR_RECV,
  BOND_POST_JFR_RECV,
  UB_POLL_JFC,
  BOND_POLL_JFC,
  UB_WAIT_JFC,
  BOND_WAIT_JFC,
  UB_ACK_JFC,
  UB_REARM_JFC,
  BOND_REARM_JFC,
  URMA_PERF_RECORD_TYPE_MAX
} urma_perf_record_type_t;

typedef struct urma_perf_stats {
  uint64_t retry_count;
  struct {
    urma_perf_record_type_t type;
    uint64_t sample_num;
    uint64_t average;
    uint64_t mininum;
    uint64_t maxinum;
    uint64_t p90;
    uint64_t p99;
    uint64_t p9999;
  } type_record[URMA_PERF_RECORD_TYPE_MAX];
} urma_perf_stats_t;

// Begins to measure, from zero.
urma_status_t urma_start_perf(void);
urma_status_t urma_stop_perf(void);
// Writes the figures as text: a line for each call that was measured, with the number of calls, and
// their average, shortest and longest duration and percentiles in ns. `length` is the size of the
// buffer, and becomes that of the text with its final 0. EINVAL, also if the buffer is too small; 4
// KiB suffice.
urma_status_t urma_get_perf_info(char* perf_buf, uint32_t* length);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
