// SPDX-License-Identifier: Apache-2.0
// Lists of works, full queues, works without a record, inline data, targets that a program wrote
// itself, several threads, and queues of all kinds.
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { word_bytes = 8, most_works = 128 };

// A work with the ranges that it refers to.
struct work {
  urma_jfs_wr_t wr;
  urma_sge_t from;
  urma_sge_t to;
};

static void make_write(struct work* work, struct end* end, uint64_t offset, uint32_t bytes) {
  *work = (struct work){.from = here(end, offset, bytes), .to = there(end, offset, bytes)};
  work->wr = (urma_jfs_wr_t){.opcode = URMA_OPC_WRITE, .tjetty = end->to, .user_ctx = offset};
  work->wr.flag.bs.complete_enable = 1;
  work->wr.rw.src = (urma_sg_t){&work->from, 1};
  work->wr.rw.dst = (urma_sg_t){&work->to, 1};
}

static void make_list(struct work* works, int count, struct end* end) {
  for (int i = 0; i < count; ++i) {
    make_write(&works[i], end, (uint64_t)i * word_bytes, word_bytes);
    works[i].wr.user_ctx = (uint64_t)i;
    if (i > 0) works[i - 1].wr.next = &works[i].wr;
  }
}

static void check_records(struct end* end, int count) {
  urma_cr_t records[most_works];
  CHECK(collect(end->jfc, records, count) == count);
  for (int i = 0; i < count; ++i) {
    CHECK(records[i].status == URMA_CR_SUCCESS);
    CHECK(records[i].user_ctx == (uint64_t)i);
  }
  CHECK(urma_poll_jfc(end->jfc, 1, records) == 0);
}

// The works before one that is not valid are executed.
static void bad_in_the_middle(struct ends* ends, int where) {
  struct work works[20];
  make_list(works, 20, &ends->a);
  works[where].wr.opcode = URMA_OPC_LAST;
  urma_jfs_wr_t* bad = NULL;
  memset(ends->a.memory, where + 1, 20 * word_bytes);
  memset(ends->b.memory, 0, 20 * word_bytes);
  CHECK(urma_post_jetty_send_wr(ends->a.jetty, &works[0].wr, &bad) == EINVAL);
  CHECK(bad == &works[where].wr);
  check_records(&ends->a, where);
  for (int i = 0; i < 20; ++i) CHECK(ends->b.memory[i * word_bytes] == (i < where ? where + 1 : 0));
}

// A list that is longer than the queue: what does not fit is posted later.
static void longer_than_the_queue(struct ends* ends) {
  static struct work works[most_works];
  urma_cr_t records[queue_depth];
  make_list(works, most_works, &ends->a);
  urma_jfs_wr_t* next = &works[0].wr;
  uint64_t done = 0;
  int full = 0;
  while (done < most_works) {
    if (next != NULL) {
      urma_jfs_wr_t* bad = NULL;
      const urma_status_t status = urma_post_jetty_send_wr(ends->a.jetty, next, &bad);
      REQUIRE(status == URMA_SUCCESS || status == ENOMEM);
      CHECK((bad != NULL) == (status == ENOMEM));
      full += status == ENOMEM;
      next = bad;
    }
    const int got = collect(ends->a.jfc, records, 1);
    REQUIRE(got == 1);
    CHECK(records[0].user_ctx == done++);
  }
  CHECK(full > 0);
  CHECK(memcmp(ends->b.memory, ends->a.memory, most_works * word_bytes) == 0);
}

// Fills the queue, and empties it, several times.
static void full_queue(struct ends* ends, urma_opcode_t opcode) {
  struct work work;
  urma_cr_t records[2 * queue_depth];
  make_write(&work, &ends->a, 0, word_bytes);
  if (opcode == URMA_OPC_FADD) {
    work.wr.opcode = opcode;
    work.wr.faa = (urma_faa_wr_t){.dst = &work.to, .src = &work.from, .operand = 1};
  }
  *(uint64_t*)ends->b.memory = 0;
  uint64_t posted = 0;
  for (int round = 0; round < 2 * queue_depth; ++round) {
    urma_jfs_wr_t* bad = NULL;
    int count = 0;
    while (urma_post_jetty_send_wr(ends->a.jetty, &work.wr, &bad) == URMA_SUCCESS) {
      REQUIRE(++count < 2 * queue_depth);
    }
    CHECK(bad == &work.wr);
    CHECK(count >= queue_depth);
    CHECK(collect(ends->a.jfc, records, count) == count);
    posted += (uint64_t)count;
  }
  if (opcode == URMA_OPC_FADD) CHECK(*(uint64_t*)ends->b.memory == posted);
}

// Works without a record end with a later one that has one.
static void unsignalled(struct ends* ends, int before) {
  struct work work;
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i <= before; ++i) {
      make_write(&work, &ends->a, (uint64_t)i * word_bytes, word_bytes);
      work.wr.flag.bs.complete_enable = i == before;
      ends->a.memory[i * word_bytes] = (char)(round + i);
      CHECK(urma_post_jetty_send_wr(ends->a.jetty, &work.wr, &bad) == URMA_SUCCESS);
    }
    REQUIRE(collect(ends->a.jfc, &record, 1) == 1);
    CHECK(record.user_ctx == (uint64_t)before * word_bytes);
    CHECK(urma_poll_jfc(ends->a.jfc, 1, &record) == 0);
    CHECK(memcmp(ends->b.memory, ends->a.memory, (size_t)before * word_bytes) == 0);
  }
}

// The buffer of inline data is used again as soon as the post returns. It needs no segment.
static void inline_data(struct ends* ends) {
  char text[16];
  urma_sge_t from = {.addr = (uint64_t)text, .len = sizeof text};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = ends->a.to};
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t records[queue_depth];
  wr.flag.bs.complete_enable = wr.flag.bs.inline_flag = 1;
  wr.send.src = (urma_sg_t){&from, 1};
  for (int i = 0; i < queue_depth; ++i) receive(&ends->b, (uint64_t)i * 64, 64, (uint64_t)i);
  for (int i = 0; i < queue_depth; ++i) {
    memset(text, i + 1, sizeof text);
    CHECK(urma_post_jetty_send_wr(ends->a.jetty, &wr, &bad) == URMA_SUCCESS);
    memset(text, 0, sizeof text);
  }
  CHECK(collect(ends->a.jfc, records, queue_depth) == queue_depth);
  CHECK(collect(ends->b.jfc, records, queue_depth) == queue_depth);
  for (int i = 0; i < queue_depth; ++i) {
    const char* const arrived = ends->b.memory + records[i].user_ctx * 64;
    CHECK(records[i].status == URMA_CR_SUCCESS && records[i].completion_len == sizeof text);
    CHECK(arrived[0] == i + 1 && arrived[sizeof text - 1] == i + 1);
  }
}

static void receives_full(struct ends* ends) {
  struct end* b = &ends->b;
  urma_sge_t into = here(b, 0, 64);
  urma_jfr_wr_t receives[2 * queue_depth];
  urma_jfr_wr_t* bad = NULL;
  for (int i = 0; i < 2 * queue_depth; ++i) {
    receives[i] = (urma_jfr_wr_t){.src = {&into, 1}, .user_ctx = (uint64_t)i};
    if (i > 0) receives[i - 1].next = &receives[i];
  }
  CHECK(urma_post_jfr_wr(b->jfr, receives, &bad) == ENOMEM);
  REQUIRE(bad >= receives + queue_depth && bad < receives + 2 * queue_depth);
  const int taken = (int)(bad - receives);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM};
  for (int i = 0; i < taken; ++i) {
    wr.send.imm_data = (uint64_t)i << 40;
    const urma_cr_t record = run(&ends->a, &wr);
    urma_cr_t arrived;
    CHECK(record.status == URMA_CR_SUCCESS);
    REQUIRE(collect(b->jfc, &arrived, 1) == 1);
    CHECK(arrived.user_ctx == (uint64_t)i && arrived.imm_data == (uint64_t)i << 40);
    CHECK(arrived.completion_len == 0);
  }
}

// ---- queues that are not Jetties

static void flat_calls(struct ends* ends) {
  struct end* a = &ends->a;
  struct end* b = &ends->b;
  urma_jfs_cfg_t cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = a->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(a->ctx, &cfg);
  urma_rjfr_t described = {.jfr_id = b->jfr->jfr_id, .trans_mode = URMA_TM_RM};
  described.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_token_t token = secret;
  urma_target_jetty_t* const target = urma_import_jfr(a->ctx, &described, &token);
  REQUIRE(jfs != NULL && target != NULL);
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  const uint64_t mine = (uint64_t)a->memory;
  const uint64_t theirs = (uint64_t)b->memory;
  memset(a->memory, 7, 300);
  memset(b->memory, 0, 4096);
  CHECK(urma_write(jfs, target, a->there, a->seg, theirs, mine, 100, flag, 1) == URMA_SUCCESS);
  CHECK(urma_read(jfs, target, a->seg, a->there, mine + 200, theirs + 1000, 100, flag, 2) == 0);
  CHECK(urma_recv(b->jfr, b->seg, theirs + 2000, 100, 4) == URMA_SUCCESS);
  CHECK(urma_send(jfs, target, a->seg, mine, 50, flag, 3) == URMA_SUCCESS);
  urma_cr_t records[3];
  REQUIRE(collect(a->jfc, records, 3) == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(records[i].status == URMA_CR_SUCCESS && records[i].flag.bs.jetty == 0);
    CHECK(records[i].user_ctx == (uint64_t)i + 1 && records[i].user_data == (uintptr_t)jfs);
    CHECK(records[i].local_id == jfs->jfs_id.id);
  }
  CHECK(b->memory[99] == 7 && b->memory[100] == 0 && a->memory[200] == 0);
  REQUIRE(collect(b->jfc, records, 1) == 1);
  CHECK(records[0].user_ctx == 4 && records[0].completion_len == 50);
  CHECK(records[0].flag.bs.s_r == 1 && records[0].flag.bs.jetty == 0);
  CHECK(records[0].user_data == (uintptr_t)b->jfr && b->memory[2049] == 7);
  CHECK(records[0].remote_id.id == jfs->jfs_id.id);
  CHECK(urma_unimport_jfr(target) == URMA_SUCCESS);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// A remote range in a segment that was not imported.
static void user_segment(struct ends* ends) {
  struct end* a = &ends->a;
  urma_user_tseg_t given = {.token_id = a->there->seg.token_id, .token_value = secret};
  struct work work;
  make_write(&work, a, 4096, 100);
  work.to.tseg = NULL;
  work.to.user_tseg = &given;
  memset(a->memory + 4096, 9, 100);
  urma_cr_t record = run(a, &work.wr);
  CHECK(record.status == URMA_CR_SUCCESS);
  CHECK(ends->b.memory[4096] == 9 && ends->b.memory[4195] == 9);
  given.token_value.token ^= 1;
  record = run(a, &work.wr);
  CHECK(record.status == URMA_CR_REM_ACCESS_ABORT_ERR);
}

// ---- targets that a program wrote itself

static urma_jetty_t* open_jetty(struct end* end, uint32_t id, urma_jfr_t** jfr) {
  urma_jfr_cfg_t receives = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = end->jfc};
  *jfr = urma_create_jfr(end->ctx, &receives);
  REQUIRE(*jfr != NULL);
  urma_jetty_cfg_t cfg = {
      .id = id, .jfs_cfg = {.depth = 8, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = end->jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = *jfr;
  return urma_create_jetty(end->ctx, &cfg);
}

// Sends 4 bytes to a Jetty that is known by its number alone, and returns the record of the
// arrival.
static urma_cr_t send_to(struct end* from, urma_jetty_t* jetty, urma_jetty_id_t id, struct end* to,
                         urma_jetty_t* at) {
  urma_target_jetty_t target = {.id = id};
  urma_sge_t data = here(from, 0, 4);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .tjetty = &target};
  wr.send.src = (urma_sg_t){&data, 1};
  wr.send.imm_data = 1234;
  wr.flag.bs.complete_enable = 1;
  urma_jfs_wr_t* bad = NULL;
  urma_sge_t into = here(to, 100, 8);
  urma_jfr_wr_t receive = {.src = {&into, 1}, .user_ctx = 5};
  urma_jfr_wr_t* bad_receive = NULL;
  urma_cr_t record = {0};
  CHECK(urma_post_jetty_recv_wr(at, &receive, &bad_receive) == URMA_SUCCESS);
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
  CHECK(collect(from->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
  CHECK(collect(to->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
  CHECK(record.imm_data == 1234 && record.completion_len == 4 && record.user_ctx == 5);
  return record;
}

// An echo between Jetties without tokens: the answer goes to the number that the arrival names.
static void well_known_jetty(struct ends* ends) {
  urma_jfr_t* jfr_a = NULL;
  urma_jfr_t* jfr_b = NULL;
  urma_jetty_t* const asks = open_jetty(&ends->a, 0, &jfr_a);
  urma_jetty_t* const answers = open_jetty(&ends->b, 5, &jfr_b);
  REQUIRE(asks != NULL && answers != NULL);
  CHECK(asks->jetty_id.id > 1023 && answers->jetty_id.id == 5);
  const urma_jetty_id_t five = {.eid = ends->b.ctx->eid, .uasid = ends->b.ctx->uasid, .id = 5};
  urma_cr_t record = send_to(&ends->a, asks, five, &ends->b, answers);
  CHECK(memcmp(&record.remote_id, &asks->jetty_id, sizeof record.remote_id) == 0);
  record = send_to(&ends->b, answers, record.remote_id, &ends->a, asks);
  CHECK(memcmp(&record.remote_id, &five, sizeof record.remote_id) == 0);
  CHECK(urma_delete_jetty(asks) == URMA_SUCCESS && urma_delete_jfr(jfr_a) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(answers) == URMA_SUCCESS && urma_delete_jfr(jfr_b) == URMA_SUCCESS);
}

static void chosen_numbers(struct end* end) {
  urma_device_attr_t attr;
  CHECK(urma_query_device(end->ctx->dev, &attr) == URMA_SUCCESS);
  CHECK(attr.reserved_jetty_id_min <= 3 && attr.reserved_jetty_id_max == 65535);
  const uint32_t numbers[] = {attr.reserved_jetty_id_min, 3, 4, 500, 1023};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
    urma_jfr_t* jfr = NULL;
    urma_jfr_t* second_jfr = NULL;
    urma_jetty_t* const jetty = open_jetty(end, numbers[i], &jfr);
    REQUIRE(jetty != NULL);
    CHECK(jetty->jetty_id.id == numbers[i]);
    CHECK(open_jetty(end, numbers[i], &second_jfr) == NULL && errno == EEXIST);
    CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
    CHECK(urma_delete_jfr(jfr) == URMA_SUCCESS && urma_delete_jfr(second_jfr) == URMA_SUCCESS);
  }
}

// UMQ refuses Jetties whose number is not below `max_jetty`, rounded up to 64 K, for a table.
static void numbers_are_below_the_limit(struct end* end) {
  enum { several = 64, step = 1 << 16 };
  urma_device_attr_t attr;
  CHECK(urma_query_device(end->ctx->dev, &attr) == URMA_SUCCESS);
  const uint32_t limit = (attr.dev_cap.max_jetty + step - 1) / step * step;
  urma_jetty_t* all[several];
  urma_jfr_t* jfrs[several] = {NULL};
  for (int i = 0; i < several; ++i) {
    all[i] = open_jetty(end, 0, &jfrs[i]);
    REQUIRE(all[i] != NULL);
    CHECK(all[i]->jetty_id.id < limit && jfrs[i]->jfr_id.id < limit);
  }
  for (int i = 0; i < several; ++i) {
    CHECK(urma_delete_jetty(all[i]) == URMA_SUCCESS && urma_delete_jfr(jfrs[i]) == URMA_SUCCESS);
  }
}

// ---- short queues

// A Jetty with a short queue and a JFC of its own.
struct short_end {
  struct end* end;
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
};

static struct short_end open_short(struct end* end, uint32_t depth, urma_transport_mode_t mode) {
  struct short_end made = {.end = end};
  urma_jfc_cfg_t completions = {.depth = 2 * depth};
  made.jfc = urma_create_jfc(end->ctx, &completions);
  urma_jfr_cfg_t receives = {.depth = depth, .trans_mode = mode, .max_sge = 1, .jfc = made.jfc};
  made.jfr = urma_create_jfr(end->ctx, &receives);
  urma_jetty_cfg_t cfg = {
      .jfs_cfg = {
          .depth = depth, .trans_mode = mode, .max_sge = 1, .rnr_retry = 7, .jfc = made.jfc}};
  cfg.flag.bs.share_jfr = URMA_SHARE_JFR;
  cfg.shared.jfr = made.jfr;
  made.jetty = urma_create_jetty(end->ctx, &cfg);
  REQUIRE(made.jetty != NULL);
  return made;
}

static void close_short(struct short_end* end) {
  CHECK(urma_delete_jetty(end->jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(end->jfr) == URMA_SUCCESS && urma_delete_jfc(end->jfc) == URMA_SUCCESS);
}

// Sends to the Jetty of the other one, and polls that until the message has arrived.
static bool tell(struct short_end* from, struct short_end* to) {
  urma_target_jetty_t target = {.id = to->jetty->jetty_id};
  urma_sge_t data = here(from->end, 0, 8);
  urma_sge_t into = here(to->end, 64, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = &target};
  urma_jfr_wr_t receive = {.src = {&into, 1}};
  urma_jfs_wr_t* bad = NULL;
  urma_jfr_wr_t* bad_receive = NULL;
  urma_cr_t record;
  wr.flag.bs.complete_enable = 1;
  wr.send.src = (urma_sg_t){&data, 1};
  if (urma_post_jetty_recv_wr(to->jetty, &receive, &bad_receive) != URMA_SUCCESS) return false;
  if (urma_post_jetty_send_wr(from->jetty, &wr, &bad) != URMA_SUCCESS) return false;
  do {
    if (collect(to->jfc, &record, 1) != 1 || record.status != URMA_CR_SUCCESS) return false;
  } while (record.flag.bs.s_r == 0);
  return true;
}

// A client of dlock has a queue of 4 works. It sends a request when the reply to the earlier one
// has arrived, and takes that for a sign that the request has completed.
static void requests_and_replies(struct ends* ends) {
  enum { rounds = 300 };
  struct short_end asks = open_short(&ends->a, 4, URMA_TM_RM);
  struct short_end answers = open_short(&ends->b, 4, URMA_TM_RM);
  int done = 0;
  while (done < rounds && tell(&asks, &answers) && tell(&answers, &asks)) ++done;
  CHECK(done == rounds);
  close_short(&asks);
  close_short(&answers);
}

// ---- receives run out

static void post_receive(struct short_end* to) {
  urma_sge_t into = here(to->end, 64, 8);
  urma_jfr_wr_t wanted = {.src = {&into, 1}};
  urma_jfr_wr_t* bad = NULL;
  CHECK(urma_post_jetty_recv_wr(to->jetty, &wanted, &bad) == URMA_SUCCESS);
}

// Fills the queue of works with messages that are numbered from `posted`, and returns the next
// number.
static uint64_t post_messages(struct short_end* from, urma_target_jetty_t* to, uint64_t posted) {
  urma_sge_t data = here(from->end, 0, 8);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .tjetty = to};
  urma_jfs_wr_t* bad = NULL;
  wr.flag.bs.complete_enable = 1;
  wr.send.src = (urma_sg_t){&data, 1};
  wr.send.imm_data = posted;
  while (urma_post_jetty_send_wr(from->jetty, &wr, &bad) == URMA_SUCCESS) {
    wr.send.imm_data = ++posted;
  }
  return posted;
}

// Many messages of URMA_TM_RC, whose order the target keeps, are outstanding while the receiver has
// few receives. Those behind a message that finds none come before their turn, and are repeated.
static void receives_run_out(struct ends* ends) {
  enum { depth = 512, receives = 32, messages = 4000 };
  struct short_end from = open_short(&ends->a, depth, URMA_TM_RC);
  struct short_end to = open_short(&ends->b, depth, URMA_TM_RC);
  urma_target_jetty_t target = {.id = to.jetty->jetty_id};
  urma_cr_t records[16];
  for (int i = 0; i < receives; ++i) post_receive(&to);
  uint64_t posted = 0;
  uint64_t arrived = 0;
  uint64_t ended = 0;
  const time_t until = time(NULL) + 20;
  while (ended < messages && time(NULL) < until) {
    if (posted < messages) posted = post_messages(&from, &target, posted);
    const int count = urma_poll_jfc(to.jfc, 16, records);
    for (int i = 0; i < count; ++i) {
      CHECK(records[i].status == URMA_CR_SUCCESS && records[i].imm_data == arrived++);
      post_receive(&to);
    }
    const int done = urma_poll_jfc(from.jfc, 16, records);
    for (int i = 0; i < done; ++i) CHECK(records[i].status == URMA_CR_SUCCESS);
    ended += (uint64_t)done;
  }
  CHECK(ended >= messages);
  while (ended < posted && time(NULL) < until) {
    ended += (uint64_t)urma_poll_jfc(from.jfc, 16, records);
    while (urma_poll_jfc(to.jfc, 1, records) == 1) post_receive(&to);
  }
  CHECK(ended == posted);
  close_short(&from);
  close_short(&to);
}

// ---- bound Jetties

static void bound(struct ends* ends) {
  struct end* a = &ends->a;
  struct work work;
  make_write(&work, a, 0, 64);
  CHECK(run(a, &work.wr).status == URMA_CR_SUCCESS);  // not bound yet: to its tjetty
  CHECK(urma_bind_jetty(a->jetty, a->to) == URMA_SUCCESS);
  urma_target_jetty_t written = {.id = {.id = 77}, .tp = {.tpn = a->to->tp.tpn}};
  urma_target_jetty_t* const targets[] = {NULL, a->to, &written};
  for (int i = 0; i < 3; ++i) {
    urma_sge_t data = here(a, 0, 16);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = targets[i]};
    wr.flag.bs.complete_enable = 1;
    wr.send.src = (urma_sg_t){&data, 1};
    urma_jfs_wr_t* bad = NULL;
    urma_cr_t record = {0};
    receive(&ends->b, 0, 64, 1);
    CHECK(urma_post_jetty_send_wr(a->jetty, &wr, &bad) == URMA_SUCCESS);
    CHECK(collect(a->jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
    CHECK(collect(ends->b.jfc, &record, 1) == 1 && record.status == URMA_CR_SUCCESS);
  }
}

// ---- datagrams

static void datagrams(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_UM);
  urma_cr_t records[2];
  for (uint32_t bytes = 0; bytes <= 1024; bytes += 256) {
    memset(ends.a.memory, (int)(bytes >> 8) + 1, 2048);
    receive(&ends.b, 4096, 2048, bytes);
    urma_sge_t from = here(&ends.a, 0, bytes);
    urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .user_ctx = bytes};
    wr.send.src = (urma_sg_t){&from, 1};
    CHECK(run(&ends.a, &wr).status == URMA_CR_SUCCESS);
    CHECK(collect(ends.b.jfc, records, 1) == 1);
    CHECK(records[0].status == URMA_CR_SUCCESS && records[0].completion_len == bytes);
    CHECK(memcmp(ends.b.memory + 4096, ends.a.memory, bytes) == 0);
  }
  // Nothing but sends of one packet.
  struct work work;
  make_write(&work, &ends.a, 0, 64);
  CHECK(run(&ends.a, &work.wr).status != URMA_CR_SUCCESS);
  end_ends(&ends);
}

// ---- many Jetties

// A JFC grows with what is attached to it.
static void many_jetties(struct ends* ends) {
  enum { jetties = 40, each = 16 };
  struct end* a = &ends->a;
  urma_jfc_cfg_t small = {.depth = 1};
  urma_jfc_t* const jfc = urma_create_jfc(a->ctx, &small);
  urma_jfs_t* all[jetties];
  urma_cr_t records[jetties * each];
  int per_queue[jetties] = {0};
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  for (int i = 0; i < jetties; ++i) {
    urma_jfs_cfg_t cfg = {.depth = each, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
    all[i] = urma_create_jfs(a->ctx, &cfg);
    REQUIRE(all[i] != NULL);
  }
  for (int i = 0; i < jetties * each; ++i) {
    CHECK(urma_write(all[i % jetties], a->to, a->there, a->seg, (uint64_t)ends->b.memory,
                     (uint64_t)a->memory, 8, flag, (uint64_t)i) == URMA_SUCCESS);
  }
  REQUIRE(collect(jfc, records, jetties * each) == jetties * each);
  for (int i = 0; i < jetties * each; ++i) ++per_queue[records[i].user_ctx % jetties];
  for (int i = 0; i < jetties; ++i) CHECK(per_queue[i] == each);
  urma_jfs_t* bad = NULL;
  CHECK(urma_delete_jfs_batch(all, jetties, &bad) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
}

static urma_jfs_t* jfs_at(struct end* end, urma_jfc_t* jfc, uint32_t depth) {
  urma_jfs_cfg_t cfg = {.depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  return jfs;
}

// Writes by two queues of works, and polls the records of both, one at a time.
static void write_by_both(struct ends* ends, urma_jfs_t* one, urma_jfs_t* other) {
  urma_jfs_t* const both[] = {one, other};
  struct end* a = &ends->a;
  urma_cr_t record;
  uintptr_t seen = 0;
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  for (int i = 0; i < 2; ++i) {
    CHECK(urma_write(both[i], a->to, a->there, a->seg, (uint64_t)ends->b.memory,
                     (uint64_t)a->memory, 8, flag, 1) == URMA_SUCCESS);
  }
  for (int i = 0; i < 2; ++i) {
    REQUIRE(collect(one->jfs_cfg.jfc, &record, 1) == 1);
    CHECK(record.status == URMA_CR_SUCCESS);
    seen ^= record.user_data;
  }
  CHECK(seen == ((uintptr_t)one ^ (uintptr_t)other));
}

// ---- the memory of a JFC

// The library keeps the memory of 256 deleted objects, so the first rounds are not measured.
enum { first_rounds = 300, rounds = 600, most_bytes = 100000 };

// Queues of works come and go at a JFC, and each time another one stays. The entries of those that
// went are used again, so the JFC does not grow.
static void queues_come_and_go(struct ends* ends, uint32_t depth, uint32_t jfc_depth) {
  struct end* a = &ends->a;
  urma_jfc_cfg_t cfg = {.depth = jfc_depth, .jfce = a->jfce};
  urma_jfc_t* const jfc = urma_create_jfc(a->ctx, &cfg);
  REQUIRE(jfc != NULL);
  urma_jfs_t* stays = jfs_at(a, jfc, depth);
  size_t before = 0;
  for (int i = 0; i < rounds; ++i) {
    if (i == first_rounds) before = mallinfo2().uordblks;
    CHECK(urma_rearm_jfc(jfc, false) == URMA_SUCCESS);
    urma_jfs_t* const next = jfs_at(a, jfc, depth);
    write_by_both(ends, stays, next);
    CHECK(urma_delete_jfs(stays) == URMA_SUCCESS);
    stays = next;
  }
  const size_t after = mallinfo2().uordblks;
  CHECK(after < before + most_bytes);
  CHECK(urma_delete_jfs(stays) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
}

// ---- many threads

enum { threads = 4, each_posts = 500 };

static struct end* shared_end;
static int records_seen;

static void* post_and_poll(void* argument) {
  struct end* const end = shared_end;
  const uint64_t number = (uint64_t)(uintptr_t)argument;
  int posted = 0;
  while (posted < each_posts ||
         __atomic_load_n(&records_seen, __ATOMIC_RELAXED) < threads * each_posts) {
    struct work work;
    urma_jfs_wr_t* bad = NULL;
    urma_cr_t records[4];
    make_write(&work, end, number * 64, 64);
    if (posted < each_posts) {
      const int status = urma_post_jetty_send_wr(end->jetty, &work.wr, &bad);
      if (status == URMA_SUCCESS) ++posted;
      if (status != URMA_SUCCESS && status != ENOMEM) break;
    }
    const int got = urma_poll_jfc(end->jfc, 4, records);
    if (got < 0) break;
    for (int i = 0; i < got; ++i) {
      if (records[i].status != URMA_CR_SUCCESS) return NULL;
    }
    __atomic_fetch_add(&records_seen, got, __ATOMIC_RELAXED);
  }
  return posted == each_posts ? argument : NULL;
}

static void several_threads(struct ends* ends) {
  pthread_t all[threads];
  shared_end = &ends->a;
  records_seen = 0;
  for (uintptr_t i = 0; i < threads; ++i) {
    REQUIRE(pthread_create(&all[i], NULL, post_and_poll, (void*)(i + 1)) == 0);
  }
  for (int i = 0; i < threads; ++i) {
    void* result = NULL;
    CHECK(pthread_join(all[i], &result) == 0 && result != NULL);
  }
  CHECK(records_seen == threads * each_posts);
}

static void largest_configuration(struct end* end) {
  urma_device_attr_t attr;
  CHECK(urma_query_device(end->ctx->dev, &attr) == URMA_SUCCESS);
  const urma_device_cap_t* const cap = &attr.dev_cap;
  urma_jfc_cfg_t jfc_cfg = {.depth = cap->max_jfc_depth};
  urma_jfc_t* const jfc = urma_create_jfc(end->ctx, &jfc_cfg);
  REQUIRE(jfc != NULL);
  urma_jfr_cfg_t receives = {.depth = cap->max_jfr_depth,
                             .trans_mode = URMA_TM_RM,
                             .max_sge = (uint8_t)cap->max_jfr_sge,
                             .min_rnr_timer = 31,
                             .jfc = jfc};
  urma_jfr_t* const jfr = urma_create_jfr(end->ctx, &receives);
  urma_jfs_cfg_t cfg = {.depth = cap->max_jfs_depth,
                        .trans_mode = URMA_TM_RM,
                        .priority = 15,
                        .max_sge = (uint8_t)cap->max_jfs_sge,
                        .max_rsge = (uint8_t)cap->max_jfs_rsge,
                        .max_inline_data = cap->max_jfs_inline_len,
                        .rnr_retry = 7,
                        .err_timeout = 31,
                        .jfc = jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  CHECK(jfr != NULL && jfs != NULL);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS && urma_delete_jfr(jfr) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(jfc) == URMA_SUCCESS);
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  bad_in_the_middle(&ends, 0);
  bad_in_the_middle(&ends, 7);
  bad_in_the_middle(&ends, 8);
  bad_in_the_middle(&ends, 13);
  longer_than_the_queue(&ends);
  full_queue(&ends, URMA_OPC_WRITE);
  full_queue(&ends, URMA_OPC_FADD);
  unsignalled(&ends, 1);
  unsignalled(&ends, queue_depth - 1);
  unsignalled(&ends, queue_depth);
  inline_data(&ends);
  receives_full(&ends);
  flat_calls(&ends);
  user_segment(&ends);
  well_known_jetty(&ends);
  chosen_numbers(&ends.a);
  numbers_are_below_the_limit(&ends.a);
  requests_and_replies(&ends);
  receives_run_out(&ends);
  many_jetties(&ends);
  queues_come_and_go(&ends, 40, 64);
  queues_come_and_go(&ends, 1000, 1);
  several_threads(&ends);
  largest_configuration(&ends.a);
  end_ends(&ends);
  ends = make_ends(device, URMA_TM_RC);
  bound(&ends);
  end_ends(&ends);
  datagrams(device);
}

int main(void) {
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);  // many calls fail on purpose
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
