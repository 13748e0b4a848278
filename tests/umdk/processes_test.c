// SPDX-License-Identifier: Apache-2.0
// Two processes: a server that makes no call while its memory is written and read, one that is
// killed, and one that starts again.
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"

enum {
  rounds = 100,
  written_bytes = 200000,
  answer_at = memory_bytes - 64,  // where the server writes the round that it has seen
  short_timeout = 1,              // 1 s
  bound_ms = 3000
};

// What a server tells.
struct hello {
  urma_rjetty_t rjetty;
  urma_seg_t seg;
};

struct server {
  pid_t pid;
  int channel;
  struct hello hello;
};

// ---- the server

static struct hello describe(struct end* end) {
  struct hello hello;
  urma_rjetty_t* rjetty = NULL;
  urma_seg_t* seg = NULL;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(end->jetty, &rjetty, &bytes) == URMA_SUCCESS);
  REQUIRE(urma_get_seg_ctx(end->seg, &seg, &bytes) == URMA_SUCCESS);
  hello = (struct hello){*rjetty, *seg};
  urma_put_rjetty(rjetty);
  urma_put_seg_ctx(seg);
  return hello;
}

// Waits for the last byte of each write, by loads alone, and then expects all other bytes.
__attribute__((no_sanitize("thread"))) static void answer(char* memory) {
  for (int round = 1; round <= rounds; ++round) {
    char* const last = memory + written_bytes - 1;
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != (char)round) usleep(0);
    int wrong = 0;
    for (int i = 0; i < written_bytes; ++i) wrong += memory[i] != (char)round;
    __atomic_store_n(memory + answer_at, (char)(wrong == 0 ? round : -1), __ATOMIC_RELEASE);
  }
}

static int serve(const char* device, int channel) {
  char byte = 0;
  REQUIRE(urma_init(NULL) == URMA_SUCCESS);
  struct end end = make_end(device, URMA_TM_RM);
  const struct hello hello = describe(&end);
  REQUIRE(write(channel, &hello, sizeof hello) == sizeof hello);
  if (read(channel, &byte, 1) == 1 && byte == 'a') answer(end.memory);
  while (read(channel, &byte, 1) == 1) continue;  // until the client ends or closes
  end_end(&end);
  return failures != 0;
}

// ---- the client

static struct server start(const char* program, const char* device) {
  struct server server = {0};
  int both[2];
  char number[16];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, both) == 0);
  snprintf(number, sizeof number, "%d", both[1]);
  server.pid = fork();
  REQUIRE(server.pid >= 0);
  if (server.pid == 0) {
    close(both[0]);
    execl(program, program, device, number, (char*)NULL);
    _exit(127);
  }
  close(both[1]);
  server.channel = both[0];
  REQUIRE(recv(server.channel, &server.hello, sizeof server.hello, MSG_WAITALL) ==
          sizeof server.hello);
  return server;
}

// Returns the exit status, or -1 if a signal ended the server.
static int finish(const struct server* server) {
  int status = 0;
  close(server->channel);
  CHECK(waitpid(server->pid, &status, 0) == server->pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static urma_cr_status_t transfer(struct end* end, urma_opcode_t opcode, uint64_t offset,
                                 uint32_t bytes) {
  urma_sge_t local = here(end, offset, bytes);
  urma_sge_t remote = there(end, offset, bytes);
  urma_jfs_wr_t wr = {.opcode = opcode};
  const bool reads = opcode == URMA_OPC_READ;
  wr.rw.src = (urma_sg_t){reads ? &remote : &local, 1};
  wr.rw.dst = (urma_sg_t){reads ? &local : &remote, 1};
  return run(end, &wr).status;
}

static void silent_server(struct end* end, const struct server* server) {
  CHECK(write(server->channel, "a", 1) == 1);
  for (int round = 1; round <= rounds; ++round) {
    memset(end->memory, round, written_bytes);
    CHECK(transfer(end, URMA_OPC_WRITE, 0, written_bytes) == URMA_CR_SUCCESS);
    const double until = now_ms() + 5000;
    char answered = 0;
    while (answered != (char)round && answered != -1 && now_ms() < until) {
      CHECK(transfer(end, URMA_OPC_READ, answer_at, 1) == URMA_CR_SUCCESS);
      answered = end->memory[answer_at];
    }
    REQUIRE(answered == (char)round);
  }
}

// UMQ and URPC choose the time-out 2, which is 16 us as documented. A server that is merely not
// scheduled for a while is not taken for one that has ended.
static void stopped_server(struct end* end, const struct server* server) {
  enum { timeout_of_umq = 2, stop_us = 200 * 1000 };
  urma_jfs_cfg_t cfg = {.depth = 4,
                        .trans_mode = URMA_TM_RM,
                        .max_sge = 1,
                        .rnr_retry = 6,
                        .err_timeout = timeout_of_umq,
                        .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  urma_cr_t record;
  REQUIRE(jfs != NULL);
  CHECK(kill(server->pid, SIGSTOP) == 0);
  CHECK(urma_write(jfs, end->to, end->there, end->seg, (uint64_t)end->there_memory,
                   (uint64_t)end->memory, 8, flag, 3) == URMA_SUCCESS);
  usleep(stop_us);
  CHECK(kill(server->pid, SIGCONT) == 0);
  REQUIRE(collect(end->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS && record.user_ctx == 3);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// Works that are posted to a server before and after it is killed end within a bounded time.
static void killed_server(struct end* end, const struct server* server) {
  urma_jfs_cfg_t cfg = {.depth = 16,
                        .trans_mode = URMA_TM_RM,
                        .max_sge = 1,
                        .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                        .err_timeout = short_timeout,
                        .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  const uint64_t mine = (uint64_t)end->memory;
  urma_cr_t records[8];
  REQUIRE(jfs != NULL);
  for (int i = 0; i < 4; ++i) {  // these wait for a receive
    CHECK(urma_send(jfs, end->to, end->seg, mine, 8, flag, 1) == URMA_SUCCESS);
  }
  CHECK(kill(server->pid, SIGKILL) == 0);
  const double begin = now_ms();
  CHECK(finish(server) == -1);
  for (int i = 0; i < 4; ++i) {
    CHECK(urma_write(jfs, end->to, end->there, end->seg, (uint64_t)end->there_memory, mine, 8, flag,
                     2) == URMA_SUCCESS);
  }
  CHECK(collect(end->jfc, records, 8) == 8);
  CHECK(now_ms() - begin < bound_ms);
  for (int i = 0; i < 8; ++i) CHECK(records[i].status == URMA_CR_ACK_TIMEOUT_ERR);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

// Writes to the server by a target and a segment that the program writes itself.
static urma_cr_status_t write_by_hand(struct end* end, const struct hello* hello) {
  urma_target_jetty_t target = {.id = hello->rjetty.jetty_id};
  urma_user_tseg_t segment = {.token_id = hello->seg.token_id, .token_value = secret};
  urma_sge_t from = here(end, 0, 8);
  urma_sge_t to = {.addr = hello->seg.ubva.va, .len = 8, .user_tseg = &segment};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE, .tjetty = &target};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  return run(end, &wr).status;
}

// A server that starts again can have the place of the earlier one. Then one work finds that this
// one has ended, and the next works reach the new one.
static void written_target(struct end* end, const struct server* server, uint32_t* uasid) {
  const bool same_place = *uasid == server->hello.rjetty.jetty_id.uasid;
  urma_cr_status_t status = write_by_hand(end, &server->hello);
  if (same_place && status != URMA_CR_SUCCESS) {
    CHECK(status == URMA_CR_ACK_TIMEOUT_ERR);
    status = write_by_hand(end, &server->hello);
  }
  CHECK(status == URMA_CR_SUCCESS);
  *uasid = server->hello.rjetty.jetty_id.uasid;
}

// A server that is killed starts again at the same port, and the client imports what it tells, at
// once. One work may find that the earlier process has ended; the next ones reach the new one.
static void imported_again(const char* program) {
  enum { lives = 6 };
  char device[64];
  snprintf(device, sizeof device, "udp:127.0.0.1:%d", 20000 + (int)getpid() % 10000);
  struct end end = make_end("network", URMA_TM_RM);
  for (int life = 0; life < lives; ++life) {
    struct server server = start(program, device);
    import(&end, &server.hello.rjetty, &server.hello.seg);
    const urma_cr_status_t first = transfer(&end, URMA_OPC_WRITE, 0, 64);
    CHECK(first == URMA_CR_SUCCESS || (life > 0 && first == URMA_CR_ACK_TIMEOUT_ERR));
    for (int i = 0; i < 3; ++i) CHECK(transfer(&end, URMA_OPC_WRITE, 0, 64) == URMA_CR_SUCCESS);
    CHECK(kill(server.pid, SIGKILL) == 0);
    CHECK(finish(&server) == -1);
    unimport(&end);
  }
  end_end(&end);
}

static void one_device(const char* program, const char* device) {
  struct end end = make_end(device, URMA_TM_RM);
  uint32_t uasid = 0;  // of the server before
  for (int life = 0; life < 3; ++life) {
    struct server server = start(program, device);
    if (life == 1 && strcmp(device, "window") == 0) {
      CHECK(server.hello.rjetty.jetty_id.uasid == uasid);
    }
    written_target(&end, &server, &uasid);
    import(&end, &server.hello.rjetty, &server.hello.seg);
    CHECK(transfer(&end, URMA_OPC_WRITE, 0, 64) == URMA_CR_SUCCESS);
    if (life == 1) {
      killed_server(&end, &server);
    } else {
      stopped_server(&end, &server);
      silent_server(&end, &server);
      CHECK(finish(&server) == 0);
    }
    unimport(&end);
    // The C API has no event for the end of a process. This descriptor blocks, so a program that
    // saw it readable would ask for the event, and wait for it.
    CHECK(!readable(end.ctx->async_fd, no_event_ms));
  }
  end_end(&end);
}

int main(int count, char** arguments) {
  if (count == 3) return serve(arguments[1], atoi(arguments[2]));
  name_devices();
  urma_log_set_level(URMA_VLOG_LEVEL_CRIT);
  imported_again(arguments[0]);
  for (int i = 0; i < device_count; ++i) one_device(arguments[0], devices[i]);
  remove_devices();
  return failures != 0;
}
