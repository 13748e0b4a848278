// SPDX-License-Identifier: Apache-2.0
#pragma once

// Single works and events between two ends.

#include "tests/umdk/ends.h"

enum { wait_ms = 5000, no_event_ms = 30 };

extern const urma_jfs_wr_flag_t signalled;

bool readable(int fd, int limit_ms);

// Asks for one event of the JFC of this end.
bool arm(struct end* end);
// Waits for one event of the JFC of this end, and acknowledges it.
bool take_event(struct end* end, int limit_ms);
// Takes all events and records of this end.
void settle_down(struct end* end);

void post_write(struct end* end, uint64_t user_ctx);
void post_send(struct end* end, uint64_t user_ctx, bool solicits);
void post_to(struct end* end, urma_jfs_t* jfs, uint64_t user_ctx);

// Checks that there are so many records, or none.
void take_records(struct end* end, int count);
void no_record(struct end* end);

urma_status_t set_jfs_state(urma_jfs_t* jfs, urma_jetty_state_t state);
urma_status_t set_jfr_state(urma_jfr_t* jfr, urma_jfr_state_t state);
// Sets the state of the Jetty of this end, which accepts it.
void set_state(struct end* end, urma_jetty_state_t state);
// Lets the Jetty of this end work again, which is in the error state.
void restart(struct end* end);
// Checks that so many works ended when the Jetty of this end was flushed.
void check_flushed(struct end* end, int works);

// Makes a Jetty like that of this end. `id` 0: the device chooses.
urma_jetty_t* another_jetty(struct end* end, uint32_t id);
// Deletes a Jetty, and makes one of the same number.
urma_jetty_t* replace(struct end* end, urma_jetty_t* jetty, uint32_t id);
urma_jfs_t* deep_jfs(struct end* end, uint32_t depth);
// Imports a Jetty or JFR of the second end into the first one.
urma_target_jetty_t* import_number(struct ends* ends, urma_jetty_id_t id, urma_target_type_t type);
