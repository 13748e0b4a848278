// SPDX-License-Identifier: Apache-2.0
// Peers that exchange an EID and a number alone, as Mooncake's do: three processes at one EID, and
// numbers that tell no process.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

enum { chosen = 7, message_bytes = 64, server_count = 2, numbers_of_each = 3000 };

// What a process tells. The segment is passed on whole.
struct said {
  urma_eid_t eid;
  uint32_t jetty;
  uint32_t jfr;
  urma_seg_t seg;
};

struct server {
  pid_t pid;
  int channel;
  struct said said;
};

static char last_error[512];
static void note(int level, char* message) {
  if (level <= URMA_VLOG_LEVEL_ERR) snprintf(last_error, sizeof last_error, "%s", message);
}

static struct said describe(const struct end* end, const urma_jetty_t* jetty) {
  return (struct said){end->ctx->eid, jetty->jetty_id.id, end->jfr->jfr_id.id, end->seg->seg};
}

static urma_rjetty_t rjetty_of(const struct said* said, urma_transport_mode_t mode) {
  urma_rjetty_t rjetty = {.trans_mode = mode, .type = URMA_JETTY, .tp_type = URMA_CTP};
  rjetty.jetty_id.eid = said->eid;
  rjetty.jetty_id.id = said->jetty;
  rjetty.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  return rjetty;
}

// ---- connections (RC)

static void say(int channel, const struct said* said) {
  REQUIRE(write(channel, said, sizeof *said) == sizeof *said);
}

static struct said hear(int channel) {
  struct said said;
  REQUIRE(recv(channel, &said, sizeof said, MSG_WAITALL) == sizeof said);
  return said;
}

// Three ways to import and bind.
static urma_target_jetty_t* connect_to(struct end* end, urma_jetty_t* jetty,
                                       const struct said* said, int way) {
  urma_rjetty_t rjetty = rjetty_of(said, URMA_TM_RC);
  urma_token_t token = secret;
  urma_target_jetty_t* to = NULL;
  if (way == 0) {
    REQUIRE((to = urma_import_jetty(end->ctx, &rjetty, &token)) != NULL);
    CHECK(urma_bind_jetty(jetty, to) == URMA_SUCCESS);
  } else if (way == 1) {
    urma_import_jetty_ex_cfg_t of_import = {0};
    urma_bind_jetty_ex_cfg_t of_bind = {0};
    REQUIRE((to = urma_import_jetty_ex(end->ctx, &rjetty, &token, &of_import)) != NULL);
    CHECK(urma_bind_jetty_ex(jetty, to, &of_bind) == URMA_SUCCESS);
  } else {
    urma_notifier_t* const notifier = urma_create_notifier(end->ctx);
    REQUIRE(notifier != NULL);
    REQUIRE((to = urma_import_jetty_async(notifier, &rjetty, &token, 1, -1)) != NULL);
    CHECK(urma_bind_jetty_async(notifier, jetty, to, 2, -1) == URMA_SUCCESS);
    CHECK(urma_delete_notifier(notifier) == URMA_SUCCESS);
  }
  CHECK(to->id.uasid == 0 && to->id.id == said->jetty);
  return to;
}

// Posts one message over a bound Jetty, or to a target.
static void send_to(struct end* end, urma_jetty_t* jetty, urma_target_jetty_t* to, char value) {
  urma_sge_t from = here(end, 0, message_bytes);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .flag = signalled, .tjetty = to};
  urma_jfs_wr_t* bad = NULL;
  memset(end->memory, value, message_bytes);
  wr.send.src = (urma_sg_t){&from, 1};
  CHECK(urma_post_jetty_send_wr(jetty, &wr, &bad) == URMA_SUCCESS);
}

// Takes the record of a work or of a message, or both, in any order.
static void take(struct end* end, int count) {
  urma_cr_t records[2] = {{0}};
  REQUIRE(collect(end->jfc, records, count) == count);
  for (int i = 0; i < count; ++i) CHECK(records[i].status == URMA_CR_SUCCESS);
  CHECK(count == 1 || records[0].flag.bs.s_r != records[1].flag.bs.s_r);
}

static bool holds(const struct end* end, uint64_t offset, char value) {
  return end->memory[offset] == value && end->memory[offset + message_bytes - 1] == value;
}

static int serve(const char* device, int channel, uint32_t id) {
  enum { at = 4096 };
  char byte = 0;
  REQUIRE(urma_init(NULL) == URMA_SUCCESS);
  struct end end = make_end(device, URMA_TM_RC);
  if (id != 0) {
    urma_jetty_t* const jetty = another_jetty(&end, id);
    CHECK(urma_delete_jetty(end.jetty) == URMA_SUCCESS);
    end.jetty = jetty;
  }
  receive(&end, at, message_bytes, 1);
  const struct said mine = describe(&end, end.jetty);
  say(channel, &mine);
  const struct said client = hear(channel);
  end.to = connect_to(&end, end.jetty, &client, 0);
  take(&end, 1);
  CHECK(holds(&end, at, (char)(mine.jetty & 0x7f)));
  send_to(&end, end.jetty, NULL, (char)(client.jetty & 0x7f));
  take(&end, 1);
  while (read(channel, &byte, 1) == 1) continue;  // until the client closes
  end_end(&end);
  return failures != 0;
}

static struct server start(const char* program, const char* device, uint32_t id) {
  struct server server = {0};
  int both[2];
  char arguments[2][16];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) == 0);
  server.pid = fork();
  REQUIRE(server.pid >= 0);
  if (server.pid == 0) {
    const int kept = dup(both[1]);  // without the flag to close it
    snprintf(arguments[0], sizeof arguments[0], "%d", kept);
    snprintf(arguments[1], sizeof arguments[1], "%u", id);
    execl(program, program, device, arguments[0], arguments[1], (char*)NULL);
    _exit(127);
  }
  close(both[1]);
  server.channel = both[0];
  server.said = hear(server.channel);
  return server;
}

static void finish(const struct server* server) {
  int status = 0;
  close(server->channel);
  CHECK(waitpid(server->pid, &status, 0) == server->pid);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static urma_cr_status_t write_by_hand(struct end* end, const struct said* said) {
  urma_target_jetty_t target = {.id = {.eid = said->eid, .id = said->jetty}};
  urma_user_tseg_t segment = {.token_id = said->seg.token_id, .token_value = secret};
  urma_sge_t from = here(end, 0, 8);
  urma_sge_t to = {.addr = said->seg.ubva.va, .len = 8, .user_tseg = &segment};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = &target};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  return run(end, &wr).status;
}

static void one_connection(struct end* end, struct server* server, int way) {
  enum { at = 8192 };
  urma_jetty_t* const jetty = another_jetty(end, 0);
  const struct said mine = describe(end, jetty);
  CHECK(memcmp(&server->said.eid, &end->ctx->eid, sizeof mine.eid) == 0);
  receive(end, at, message_bytes, 2);
  say(server->channel, &mine);
  urma_target_jetty_t* const to = connect_to(end, jetty, &server->said, way);
  send_to(end, jetty, NULL, (char)(server->said.jetty & 0x7f));
  take(end, 2);
  CHECK(holds(end, at, (char)(mine.jetty & 0x7f)));
  CHECK(urma_unbind_jetty(jetty) == URMA_SUCCESS);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
}

static void three_processes(const char* program, const char* device) {
  struct end end = make_end(device, URMA_TM_RC);
  for (int way = 0; way < 3; ++way) {
    struct server servers[server_count];
    for (int i = 0; i < server_count; ++i) servers[i] = start(program, device, 0);
    CHECK(servers[0].said.seg.ubva.uasid != servers[1].said.seg.ubva.uasid);
    for (int i = server_count; i-- > 0;) one_connection(&end, &servers[i], way);
    for (int i = 0; i < server_count; ++i) {
      // A server that has the place of an earlier one is reached by the second work.
      urma_cr_status_t status = write_by_hand(&end, &servers[i].said);
      if (way > 0 && status == URMA_CR_ACK_TIMEOUT_ERR) {
        status = write_by_hand(&end, &servers[i].said);
      }
      CHECK(status == URMA_CR_SUCCESS);
      finish(&servers[i]);
    }
  }
  end_end(&end);
}

// ---- JFRs, groups and chosen numbers

static urma_target_jetty_t* find(struct end* end, uint32_t id, urma_target_type_t type) {
  urma_token_t token = secret;
  urma_rjfr_t jfr = {.jfr_id = {.eid = end->ctx->eid, .id = id}, .trans_mode = URMA_TM_RM};
  urma_rjetty_t jetty = {.jetty_id = jfr.jfr_id, .trans_mode = URMA_TM_RM, .type = type};
  jetty.flag.bs.token_policy = jfr.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  return type == URMA_JFR ? urma_import_jfr(end->ctx, &jfr, &token)
                          : urma_import_jetty(end->ctx, &jetty, &token);
}

static void reaches(struct ends* ends, uint32_t id, urma_target_type_t type) {
  enum { at = 4096 };
  urma_target_jetty_t* const to = find(&ends->a, id, type);
  REQUIRE(to != NULL);
  receive(&ends->b, at, message_bytes, 1);
  send_to(&ends->a, ends->a.jetty, to, 5);
  take(&ends->a, 1);
  take(&ends->b, 1);
  CHECK(holds(&ends->b, at, 5));
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
}

static void reaches_by_hand(struct ends* ends, uint32_t id) {
  struct said said = describe(&ends->b, ends->b.jetty);
  said.jetty = id;
  ends->a.memory[0] = (char)(ends->b.memory[0] + 1);
  CHECK(write_by_hand(&ends->a, &said) == URMA_CR_SUCCESS);
  CHECK(ends->b.memory[0] == ends->a.memory[0]);
}

static void is_refused(struct end* end, uint32_t id, urma_target_type_t type) {
  errno = 0;
  CHECK(find(end, id, type) == NULL && errno == URMA_EINVAL);
  CHECK(strstr(last_error, "no process of this user has published the number") != NULL);
}

static void jfrs_and_groups(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  reaches(&ends, ends.b.jfr->jfr_id.id, URMA_JFR);
  reaches_by_hand(&ends, ends.b.jetty->jetty_id.id);
  urma_jetty_grp_cfg_t cfg = {.policy = URMA_JETTY_GRP_POLICY_RR, .token_value = secret};
  cfg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  urma_jetty_grp_t* const group = urma_create_jetty_grp(ends.b.ctx, &cfg);
  REQUIRE(group != NULL);
  urma_jetty_cfg_t of_member = ends.b.jetty->jetty_cfg;
  of_member.jetty_grp = group;
  urma_jetty_t* const member = urma_create_jetty(ends.b.ctx, &of_member);
  REQUIRE(member != NULL);
  reaches(&ends, group->jetty_grp_id.id, URMA_JETTY_GROUP);
  CHECK(urma_delete_jetty(member) == URMA_SUCCESS);
  CHECK(urma_delete_jetty_grp(group) == URMA_SUCCESS);
  end_ends(&ends);
}

// In a window a chosen number has a name. Of two processes that choose one number, the first one is
// found.
static void chosen_numbers_in_a_window(const char* program) {
  struct ends ends = make_ends("window", URMA_TM_RM);
  is_refused(&ends.a, chosen, URMA_JETTY);
  urma_jetty_t* const first = another_jetty(&ends.b, chosen);
  reaches(&ends, chosen, URMA_JETTY);
  reaches_by_hand(&ends, chosen);
  urma_jetty_t* const second = another_jetty(&ends.a, chosen);
  reaches(&ends, chosen, URMA_JETTY);
  CHECK(urma_delete_jetty(second) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(first) == URMA_SUCCESS);
  is_refused(&ends.a, chosen, URMA_JETTY);
  end_ends(&ends);
  struct end end = make_end("window", URMA_TM_RC);
  struct server server = start(program, "window", chosen);
  CHECK(server.said.jetty == chosen);
  one_connection(&end, &server, 0);
  finish(&server);
  end_end(&end);
}

// Over a network a number that tells no process is at port 4792.
static void chosen_numbers_at_the_usual_port(void) {
  char usual[64];
  char other[64];
  const int pid = (int)getpid();
  const int parts[] = {64 + (pid >> 14) % 128, (pid >> 7) % 128, 1 + pid % 128};
  snprintf(usual, sizeof usual, "udp:127.%d.%d.%d:4792", parts[0], parts[1], parts[2]);
  snprintf(other, sizeof other, "udp:127.%d.%d.%d:0", parts[0], parts[1], parts[2]);
  struct ends ends = {make_end(other, URMA_TM_RM), make_end(usual, URMA_TM_RM)};
  CHECK(ends.b.ctx->uasid == 4792 && ends.a.ctx->uasid >= 4800);
  urma_jetty_t* const jetty = another_jetty(&ends.b, chosen);
  reaches(&ends, chosen, URMA_JETTY);
  reaches(&ends, ends.b.jetty->jetty_id.id, URMA_JETTY);
  CHECK(urma_delete_jetty(jetty) == URMA_SUCCESS);
  end_ends(&ends);
}

// A context with more objects than numbers that tell its process: peers need the uasid of others.
static void numbers_are_used_up(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  static urma_jfr_t* jfrs[numbers_of_each];
  urma_jfr_cfg_t cfg = ends.b.jfr->jfr_cfg;
  cfg.depth = 1;
  for (int i = 0; i < numbers_of_each; ++i) REQUIRE((jfrs[i] = urma_create_jfr(ends.b.ctx, &cfg)));
  urma_jetty_t* const last = another_jetty(&ends.b, 0);
  if (strcmp(device, "window") == 0) is_refused(&ends.a, last->jetty_id.id, URMA_JETTY);
  urma_target_jetty_t* const to = import_number(&ends, last->jetty_id, URMA_JETTY);
  receive(&ends.b, 4096, message_bytes, 1);
  send_to(&ends.a, ends.a.jetty, to, 9);
  take(&ends.a, 1);
  take(&ends.b, 1);
  CHECK(holds(&ends.b, 4096, 9));
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  urma_jetty_t* const next = replace(&ends.b, last, 0);
  for (int i = 0; i < numbers_of_each; ++i) CHECK(urma_delete_jfr(jfrs[i]) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(next) == URMA_SUCCESS);
  urma_jetty_t* const told = another_jetty(&ends.b, 0);
  reaches(&ends, told->jetty_id.id, URMA_JETTY);
  CHECK(urma_delete_jetty(told) == URMA_SUCCESS);
  end_ends(&ends);
}

// No uasid is right for all contexts of a process, and peers need none.
static void the_uasid_of_a_process(void) {
  uint32_t uasid = 1;
  CHECK(urma_get_uasid(&uasid) == URMA_SUCCESS && uasid == 0);
}

int main(int count, char** arguments) {
  if (count == 4) {
    return serve(arguments[1], atoi(arguments[2]), (uint32_t)strtoul(arguments[3], NULL, 10));
  }
  name_devices();
  urma_register_log_func(note);
  for (int i = 0; i < device_count; ++i) {
    three_processes(arguments[0], devices[i]);
    jfrs_and_groups(devices[i]);
    numbers_are_used_up(devices[i]);
  }
  chosen_numbers_in_a_window(arguments[0]);
  chosen_numbers_at_the_usual_port();
  the_uasid_of_a_process();
  remove_devices();
  return failures != 0;
}
