// SPDX-License-Identifier: Apache-2.0
// Asynchronous events: of receives that run low, and of objects that are deleted meanwhile.
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

// A Jetty has the threshold of its JFR.
static void threshold_of_jetty(struct end* b) {
  urma_jetty_attr_t attr = {.mask = JETTY_RX_THRESHOLD, .rx_threshold = 3};
  urma_jetty_cfg_t cfg;
  urma_jfr_attr_t of_jfr;
  urma_jfr_cfg_t jfr_cfg;
  CHECK(urma_modify_jetty(b->jetty, &attr) == URMA_SUCCESS);
  attr = (urma_jetty_attr_t){.mask = 0};
  CHECK(urma_query_jetty(b->jetty, &cfg, &attr) == URMA_SUCCESS);
  CHECK((attr.mask & JETTY_RX_THRESHOLD) != 0 && attr.rx_threshold == 3);
  CHECK(urma_query_jfr(b->jfr, &jfr_cfg, &of_jfr) == URMA_SUCCESS);
  CHECK(of_jfr.rx_threshold == 3);
  attr = (urma_jetty_attr_t){.mask = JETTY_STATE, .state = URMA_JETTY_STATE_RESET};
  CHECK(urma_modify_jetty(b->jetty, &attr) == URMA_EINVAL);
}

static void receives_run_low(struct ends* ends) {
  struct end* b = &ends->b;
  urma_async_event_t event;
  urma_cr_t record;
  for (int i = 0; i < 6; ++i) receive(b, 0, 64, 1);
  urma_jfr_attr_t attr = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 4};
  CHECK(urma_modify_jfr(b->jfr, &attr) == URMA_SUCCESS);
  const int flags = fcntl(b->ctx->async_fd, F_GETFL);
  CHECK(fcntl(b->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  for (int i = 0; i < 6; ++i) {
    post_send(&ends->a, 1, false);
    CHECK(collect(b->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
    CHECK(collect(ends->a.jfc, &record, 1) == 1);
    CHECK(readable(b->ctx->async_fd, 0) == (i == 2));
    if (i != 2) {
      CHECK(urma_get_async_event(b->ctx, &event) == EAGAIN);
      continue;
    }
    CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
    CHECK(event.event_type == URMA_EVENT_JFR_LIMIT && event.element.jfr == b->jfr);
    CHECK(event.urma_ctx == b->ctx);
    urma_ack_async_event(&event);
    CHECK(!readable(b->ctx->async_fd, 0));
  }
  CHECK(fcntl(b->ctx->async_fd, F_SETFL, flags) == 0);
}

// ---- asynchronous events of deleted objects

static void no_async_event(struct end* end) {
  urma_async_event_t event;
  const int flags = fcntl(end->ctx->async_fd, F_GETFL);
  CHECK(fcntl(end->ctx->async_fd, F_SETFL, flags | O_NONBLOCK) == 0);
  CHECK(!readable(end->ctx->async_fd, 0));
  CHECK(urma_get_async_event(end->ctx, &event) == EAGAIN);
  CHECK(fcntl(end->ctx->async_fd, F_SETFL, flags) == 0);
}

static void send_to(struct end* end, urma_target_jetty_t* target, urma_cr_status_t expected) {
  urma_cr_t record;
  urma_sge_t from = here(end, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = target};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  CHECK(urma_post_jetty_send_wr(end->jetty, &wr, &bad) == URMA_SUCCESS);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == expected);
}

// A JFR that is deleted takes its event with it, and leaves those of others.
static void event_of_a_deleted_jfr(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jfr_attr_t low = {.mask = JFR_RX_THRESHOLD, .rx_threshold = 1};
  urma_async_event_t event;
  settle_down(b);
  for (int i = 0; i < 2; ++i) {
    urma_jfr_t* const jfr = urma_create_jfr(b->ctx, &b->jfr->jfr_cfg);
    REQUIRE(jfr != NULL);
    urma_target_jetty_t* const to = import_number(ends, jfr->jfr_id, URMA_JFR);
    urma_sge_t place = here(b, 0, 64);
    urma_jfr_wr_t wr = {.src = {&place, 1}, .user_ctx = 3};
    urma_jfr_wr_t* bad = NULL;
    CHECK(urma_post_jfr_wr(jfr, &wr, &bad) == URMA_SUCCESS);
    CHECK(urma_modify_jfr(jfr, &low) == URMA_SUCCESS);
    send_to(&ends->a, to, URMA_CR_SUCCESS);
    take_records(b, 1);
    if (i == 1) {
      CHECK(urma_modify_jfr(b->jfr, &low) == URMA_SUCCESS);
      receive(b, 0, 64, 1);
      send_to(&ends->a, ends->a.to, URMA_CR_SUCCESS);
      take_records(b, 1);
    }
    CHECK(readable(b->ctx->async_fd, wait_ms));
    CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
    CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
    if (i == 1) {
      CHECK(readable(b->ctx->async_fd, 0));
      CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
      CHECK(event.event_type == URMA_EVENT_JFR_LIMIT && event.element.jfr == b->jfr);
      urma_ack_async_event(&event);
    }
    no_async_event(b);
  }
}

// The C API's event of a refused message names a Jetty. That of a JFR makes the descriptor
// readable, but a call for it returns, also if the descriptor blocks.
static void no_event_of_a_jfr(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jfr_attr_t fails = {.mask = JFR_STATE, .state = URMA_JFR_STATE_ERROR};
  urma_async_event_t event;
  urma_jfr_t* const jfr = urma_create_jfr(b->ctx, &b->jfr->jfr_cfg);
  REQUIRE(jfr != NULL);
  urma_target_jetty_t* const to = import_number(ends, jfr->jfr_id, URMA_JFR);
  CHECK(urma_modify_jfr(jfr, &fails) == URMA_SUCCESS);
  send_to(&ends->a, to, URMA_CR_REM_ACCESS_ABORT_ERR);
  CHECK(readable(b->ctx->async_fd, wait_ms));
  alarm(wait_ms / 1000);  // ends a call that does not return
  CHECK(urma_get_async_event(b->ctx, &event) == EAGAIN);
  alarm(0);
  CHECK(!readable(b->ctx->async_fd, 0));
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
  settle_down(b);
}

// The next Jetty of the number of a deleted one is not given its event.
static void event_of_a_deleted_jetty(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_async_event_t event;
  urma_jetty_t* jetty = another_jetty(b, 0);
  urma_target_jetty_t* const to = import_number(ends, jetty->jetty_id, URMA_JETTY);
  for (int i = 0; i < 2; ++i) {
    CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
    send_to(&ends->a, to, URMA_CR_REM_ACCESS_ABORT_ERR);
    CHECK(readable(b->ctx->async_fd, wait_ms));
    if (i == 0) jetty = replace(b, jetty, 0);
    if (i == 1) {
      CHECK(urma_get_async_event(b->ctx, &event) == URMA_SUCCESS);
      CHECK(event.event_type == URMA_EVENT_JETTY_ERR && event.element.jetty == jetty);
      urma_ack_async_event(&event);
    }
    no_async_event(b);
  }
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  settle_down(b);
}

// The device tells of refused messages at most once in a millisecond: the event of the second one
// still waits when the Jetty is deleted.
static void later_event_of_a_deleted_jetty(struct ends* ends) {
  struct end* b = &ends->b;
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  urma_jetty_t* jetty = another_jetty(b, 0);
  urma_target_jetty_t* const to = import_number(ends, jetty->jetty_id, URMA_JETTY);
  for (int i = 0; i < 20; ++i) {
    CHECK(urma_modify_jetty(jetty, &attr) == URMA_SUCCESS);
    send_to(&ends->a, to, URMA_CR_REM_ACCESS_ABORT_ERR);
    send_to(&ends->a, to, URMA_CR_REM_ACCESS_ABORT_ERR);
    jetty = replace(b, jetty, 0);
    usleep(3000);
    no_async_event(b);
  }
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  settle_down(b);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  for (int i = 0; i < device_count; ++i) {
    struct ends ends = make_ends(devices[i], URMA_TM_RM);
    threshold_of_jetty(&ends.b);
    receives_run_low(&ends);
    event_of_a_deleted_jfr(&ends);
    event_of_a_deleted_jetty(&ends);
    later_event_of_a_deleted_jetty(&ends);
    no_event_of_a_jfr(&ends);
    end_ends(&ends);
  }
  remove_devices();
  return failures != 0;
}
