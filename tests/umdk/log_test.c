// SPDX-License-Identifier: Apache-2.0
// The log: where a reason is given, full queues, and how many lines a program that posts what is
// refused can cause.
#include <string.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"
#include "umdk/include/ub/umdk/urma/urma_log.h"

static int lines;
static unsigned left_out;  // as the log says
static char last_message[2048];
static char last_file[64];
static char last_function[64];
static int last_line;

static void note(int level, char* message) {
  unsigned count = 0;
  CHECK(level == URMA_VLOG_LEVEL_ERR);
  ++lines;
  snprintf(last_message, sizeof last_message, "%s", message);
  const char* const text = strrchr(message, '(');
  if (text != NULL && sscanf(text, "(%u messages like this one were", &count) == 1) {
    left_out += count;
  }
}

static void note_place(int level, const char* file, const char* function, int line, char* message) {
  note(level, message);
  snprintf(last_file, sizeof last_file, "%s", file);
  snprintf(last_function, sizeof last_function, "%s", function);
  last_line = line;
}

static void begin(void) {
  lines = 0;
  left_out = 0;
  last_message[0] = 0;
}

// ---- places

// Expects that the newest message names this function once, and a place in this file.
static void check_place(const char* file, const char* function) {
  CHECK(strcmp(last_file, file) == 0);
  CHECK(strcmp(last_function, function) == 0);
  CHECK(strstr(last_message, function) == NULL && strstr(last_message, "Fix: ") != NULL);
  CHECK(last_line > 1);
}

static urma_jfs_wr_t write_of(struct end* end, urma_sge_t* from, urma_sge_t* to) {
  *from = here(end, 0, 8);
  *to = there(end, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = end->to};
  wr.rw.src = (urma_sg_t){from, 1};
  wr.rw.dst = (urma_sg_t){to, 1};
  wr.flag.bs.complete_enable = 1;
  return wr;
}

static void places(struct end* a) {
  urma_sge_t from;
  urma_sge_t to;
  urma_jfs_wr_t wr = write_of(a, &from, &to);
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record;
  CHECK(urma_register_loc_log_func(note_place) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(a->jfc) == EINVAL);
  check_place("umdk/jfc_calls.cc", "urma_delete_jfc");
  CHECK(urma_delete_jetty(NULL) == EINVAL);
  check_place("umdk/jetty_calls.cc", "urma_delete_jetty");
  const int line = last_line;
  CHECK(urma_unbind_jetty(NULL) == EINVAL);
  check_place("umdk/jetty_calls.cc", "urma_unbind_jetty");
  CHECK(last_line != line);
  CHECK(urma_poll_jfc(NULL, 1, &record) == -1);
  check_place("umdk/jfc_calls.cc", "urma_poll_jfc");
  wr.tjetty = NULL;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == EINVAL);
  check_place("umdk/sender.cc", "urma_post_jetty_send_wr");
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  cfg.depth = 0;
  CHECK(urma_create_jfs(a->ctx, &cfg) == NULL);
  check_place("umdk/checks.cc", "urma_create_jfs");
  CHECK(urma_register_log_func(note) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(a->jfc) == EINVAL);
  CHECK(strncmp(last_message, "urma_delete_jfc: ", 17) == 0);
}

// ---- full queues

static int fill(struct end* a, urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad = NULL;
  int count = 0;
  urma_status_t status = URMA_SUCCESS;
  while ((status = urma_post_jetty_send_wr(a->jetty, wr, &bad)) == URMA_SUCCESS) ++count;
  CHECK(status == ENOMEM && bad == wr);
  return count;
}

// A queue that becomes full says so once each time.
static void full_queue(struct end* a) {
  urma_sge_t from;
  urma_sge_t to;
  urma_cr_t records[4 * queue_depth];
  urma_jfs_wr_t wr = write_of(a, &from, &to);
  begin();
  for (int times = 1; times <= 3; ++times) {
    const int count = fill(a, &wr);
    CHECK(lines == times && strstr(last_message, "full") != NULL);
    CHECK(strstr(last_message, "Fix: ") != NULL);
    for (int i = 0; i < 100; ++i) CHECK(fill(a, &wr) == 0);
    CHECK(lines == times);
    CHECK(collect(a->jfc, records, count) == count);
  }
}

static void full_jfr(struct end* a) {
  urma_jfr_cfg_t cfg = jfr_cfg_of(a->jfc);
  urma_jfr_t* const jfr = urma_create_jfr(a->ctx, &cfg);
  REQUIRE(jfr != NULL);
  urma_sge_t into = here(a, 0, 8);
  urma_jfr_wr_t wr = {.src = {&into, 1}};
  urma_jfr_wr_t* bad = NULL;
  begin();
  int count = 0;
  while (urma_post_jfr_wr(jfr, &wr, &bad) == URMA_SUCCESS) ++count;
  CHECK(count >= 4 && bad == &wr);
  for (int i = 0; i < 100; ++i) CHECK(urma_post_jfr_wr(jfr, &wr, &bad) == ENOMEM);
  CHECK(lines == 1 && strstr(last_message, "the JFR is full") != NULL);
  CHECK(strstr(last_message, "Fix: ") != NULL);
  CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS);
}

// ---- many refused posts

static void many_refused_posts(struct end* a) {
  enum { refused = 100000 };
  urma_sge_t from;
  urma_sge_t to;
  urma_jfs_wr_t wr = write_of(a, &from, &to);
  urma_jfs_wr_t* bad = NULL;
  const double begun = now_ms();
  begin();
  wr.flag.bs.place_order = 3;
  for (int i = 0; i < refused; ++i) CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == EINVAL);
  const double took_ms = now_ms() - begun;
  CHECK(lines >= 100 && lines <= 101 + took_ms / 100);
  // Another reason has lines of its own.
  wr.flag.bs.place_order = 0;
  wr.tjetty = NULL;
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == EINVAL);
  CHECK(strstr(last_message, "names no target") != NULL);
  CHECK(strstr(last_message, "left out") == NULL);
  // The next line says how many were left out.
  const int written = lines - 1;
  wr.tjetty = a->to;
  wr.flag.bs.place_order = 3;
  usleep(150 * 1000);
  CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == EINVAL);
  CHECK(lines == written + 2 && strstr(last_message, "place_order is 3") != NULL);
  CHECK(left_out == (unsigned)(refused - written));
}

// Calls that are no part of the data path always give the reason.
static void many_refused_calls(struct end* a) {
  begin();
  for (int i = 0; i < 300; ++i) CHECK(urma_delete_jfc(a->jfc) == EINVAL);
  CHECK(lines == 300);
}

// ---- lines

static bool is_a_line(void) {
  const char* const end = strchr(last_message, '\n');
  return end != NULL && end[1] == 0;
}

// Programs write what they get as it is.
static void each_message_is_a_line(void) {
  char longer[3000];  // than a message can be
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = 0;
  urma_log("here", 1, URMA_VLOG_LEVEL_ERR, "a line");
  CHECK(is_a_line());
  urma_log("here", 1, URMA_VLOG_LEVEL_ERR, "a line\n");
  CHECK(is_a_line());
  urma_log("here", 1, URMA_VLOG_LEVEL_ERR, "%s", longer);
  CHECK(is_a_line());
  CHECK(urma_delete_jetty(NULL) == URMA_EINVAL);
  CHECK(is_a_line());
}

int main(void) {
  name_devices();
  CHECK(urma_register_log_func(note) == URMA_SUCCESS);
  each_message_is_a_line();
  struct ends ends = make_ends(devices[0], URMA_TM_RM);
  places(&ends.a);
  full_queue(&ends.a);
  full_jfr(&ends.a);
  many_refused_posts(&ends.a);
  many_refused_calls(&ends.a);
  end_ends(&ends);
  remove_devices();
  return failures != 0;
}
