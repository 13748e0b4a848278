// SPDX-License-Identifier: Apache-2.0
#pragma once

// Two contexts on one device, each with a JFC, a JFR, a Jetty and a segment, that know each other.

#include <stdbool.h>
#include "umdk/include/ub/umdk/urma/urma_api.h"

enum { memory_bytes = 1 << 20, queue_depth = 32 };

struct end {
  urma_context_t* ctx;
  urma_jfce_t* jfce;
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
  char* memory;
  urma_target_seg_t* seg;
  urma_target_jetty_t* to;   // the Jetty of the other end
  urma_target_seg_t* there;  // its segment
  char* there_memory;        // which a test may look at, as this is one process
};

struct ends {
  struct end a;
  struct end b;
};

extern const urma_token_t secret;
extern bool lock_free;  // whether make_end makes queues with this flag

// The devices of the tests: a window that no other program uses, and UDP.
extern const char* const devices[];
enum { device_count = 2 };
// Names the devices (URMA_DEVICES), and calls urma_init.
void name_devices(void);
void remove_devices(void);

// Makes an end that knows no other one.
struct end make_end(const char* device, urma_transport_mode_t mode);
// Lets an end know another one, by what its process tells.
void import(struct end* end, urma_rjetty_t* rjetty, urma_seg_t* seg);
void unimport(struct end* end);
void end_end(struct end* end);
struct ends make_ends(const char* device, urma_transport_mode_t mode);
void end_ends(struct ends* ends);

double now_ms(void);

// Polls until there are `count` records, for up to 10 s. Returns how many there are.
int collect(urma_jfc_t* jfc, urma_cr_t* records, int count);
// Posts one work, and returns its record.
urma_cr_t run(struct end* end, urma_jfs_wr_t* wr);
// Posts one receive of `bytes` at `offset` of the memory of this end.
void receive(struct end* end, uint64_t offset, uint32_t bytes, uint64_t user_ctx);

// Returns a range of this end's memory, and one of the other's.
urma_sge_t here(struct end* end, uint64_t offset, uint32_t bytes);
urma_sge_t there(struct end* end, uint64_t offset, uint32_t bytes);
