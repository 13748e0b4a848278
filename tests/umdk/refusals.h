// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that calls are refused, and log why; and configurations that are valid, to be changed.

#include <errno.h>
#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

extern int reasons;            // how many errors were logged that say what to do
extern char last_reason[512];  // the newest message
// Lets the log count them.
void count_reasons(void);

// The call returns this status, and logs why.
#define REFUSES(expected, call)                                                                   \
  do {                                                                                            \
    const int before_call = reasons;                                                              \
    const int got_status = (call);                                                                \
    if (got_status != (expected) || reasons == before_call) {                                     \
      ++failures;                                                                                 \
      fprintf(stderr, "%s:%d: %s returned %d and logged %d reasons\n", __FILE__, __LINE__, #call, \
              got_status, reasons - before_call);                                                 \
    }                                                                                             \
  } while (0)

// The call returns null with this errno, and logs why.
#define NULLS(expected, call)                                                                  \
  do {                                                                                         \
    const int before_call = reasons;                                                           \
    errno = 0;                                                                                 \
    const void* const got_object = (call);                                                     \
    const int got_errno = errno;                                                               \
    if (got_object != NULL || got_errno != (expected) || reasons == before_call) {             \
      ++failures;                                                                              \
      fprintf(stderr, "%s:%d: %s returned %p with errno %d and logged %d reasons\n", __FILE__, \
              __LINE__, #call, got_object, got_errno, reasons - before_call);                  \
    }                                                                                          \
  } while (0)

urma_jfs_cfg_t jfs_cfg_of(urma_jfc_t* jfc);
urma_jfr_cfg_t jfr_cfg_of(urma_jfc_t* jfc);
urma_jetty_cfg_t jetty_cfg_of(urma_jfc_t* jfc, urma_jfr_t* jfr);
urma_seg_cfg_t seg_cfg_of(void* memory, uint32_t access);
