// SPDX-License-Identifier: Apache-2.0
// The Jetty 5 of a process that answers pings: found by an EID alone, and only where the
// environment asks for it.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

// No message makes a record of its own, so the JFS needs room for all.
enum { ping_jetty = 5, depth = 256, message_bytes = 4096, messages = 200 };

struct pinger {
  urma_context_t* ctx;
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jetty_t* jetty;
  urma_target_seg_t* seg;
  char memory[2][message_bytes];
};

static char last_error[512];
static void note(int level, char* message) {
  if (level <= URMA_VLOG_LEVEL_WARNING) snprintf(last_error, sizeof last_error, "%s", message);
}

static urma_context_t* open_context(const char* device, const char* answers) {
  setenv("URMA_PING", answers, 1);
  urma_device_t* dev = urma_get_device_by_name((char*)device);
  REQUIRE(dev != NULL);
  urma_context_t* ctx = urma_create_context(dev, 0);
  REQUIRE(ctx != NULL);
  setenv("URMA_PING", "0", 1);
  return ctx;
}

// The JFR asks for no token, as that of UMDK's urma_ping.
static void begin(struct pinger* pinger, const char* device) {
  memset(pinger, 0, sizeof *pinger);
  pinger->ctx = open_context(device, "0");
  urma_jfc_cfg_t jfc = {.depth = 4 * depth};
  pinger->jfc = urma_create_jfc(pinger->ctx, &jfc);
  REQUIRE(pinger->jfc != NULL);
  urma_jfr_cfg_t jfr = {.depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = pinger->jfc};
  pinger->jfr = urma_create_jfr(pinger->ctx, &jfr);
  REQUIRE(pinger->jfr != NULL);
  urma_jetty_cfg_t jetty = {.jfs_cfg = {.depth = depth,
                                        .trans_mode = URMA_TM_RM,
                                        .priority = 6,
                                        .max_sge = 1,
                                        .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                                        .err_timeout = URMA_TYPICAL_ERR_TIMEOUT,
                                        .jfc = pinger->jfc}};
  jetty.flag.bs.share_jfr = URMA_SHARE_JFR;
  jetty.shared.jfr = pinger->jfr;
  pinger->jetty = urma_create_jetty(pinger->ctx, &jetty);
  REQUIRE(pinger->jetty != NULL);
  urma_seg_cfg_t seg = {.va = (uint64_t)pinger->memory, .len = sizeof pinger->memory};
  seg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  pinger->seg = urma_register_seg(pinger->ctx, &seg);
  REQUIRE(pinger->seg != NULL);
}

static void end(struct pinger* pinger) {
  CHECK(urma_unregister_seg(pinger->seg) == URMA_SUCCESS);
  CHECK(urma_delete_jetty(pinger->jetty) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(pinger->jfr) == URMA_SUCCESS);
  CHECK(urma_delete_jfc(pinger->jfc) == URMA_SUCCESS);
  CHECK(urma_delete_context(pinger->ctx) == URMA_SUCCESS);
}

static urma_target_jetty_t* find(struct pinger* pinger, uint32_t id, urma_target_type_t type) {
  urma_rjetty_t there = {.trans_mode = URMA_TM_RM, .type = type, .tp_type = URMA_CTP};
  urma_token_t token = {0};
  there.jetty_id.eid = pinger->ctx->eid;  // both ends have one EID, and the uasid stays 0
  there.jetty_id.id = id;
  return urma_import_jetty(pinger->ctx, &there, &token);
}

static void ping(struct pinger* pinger, urma_target_jetty_t* to, uint64_t number, uint32_t bytes) {
  urma_sge_t out = {.addr = (uint64_t)pinger->memory[0], .len = bytes, .tseg = pinger->seg};
  urma_sge_t in = {.addr = (uint64_t)pinger->memory[1], .len = bytes, .tseg = pinger->seg};
  urma_jfr_wr_t receive = {.src = {&in, 1}};
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND_IMM, .tjetty = to};
  urma_jfr_wr_t* bad_receive = NULL;
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record = {0};
  memset(pinger->memory[0], (int)number, bytes);
  memset(pinger->memory[1], 0, bytes);
  wr.send.src = (urma_sg_t){&out, 1};
  wr.send.imm_data = number;
  CHECK(urma_post_jetty_recv_wr(pinger->jetty, &receive, &bad_receive) == URMA_SUCCESS);
  CHECK(urma_post_jetty_send_wr(pinger->jetty, &wr, &bad) == URMA_SUCCESS);
  REQUIRE(collect(pinger->jfc, &record, 1) == 1);
  CHECK(record.status == URMA_CR_SUCCESS);
  CHECK(record.flag.bs.s_r == 1 && record.opcode == URMA_CR_OPC_SEND_WITH_IMM);
  CHECK(record.imm_data == number && record.completion_len == bytes);
  CHECK(record.remote_id.id == ping_jetty);
  CHECK(memcmp(pinger->memory[0], pinger->memory[1], bytes) == 0);
}

static void answers_each_message(const char* device) {
  urma_context_t* server = open_context(device, "1");
  struct pinger pinger;
  begin(&pinger, device);
  urma_target_jetty_t* to = find(&pinger, ping_jetty, URMA_JETTY);
  REQUIRE(to != NULL);
  CHECK(to->id.id == ping_jetty);
  for (uint64_t i = 1; i <= messages; ++i) ping(&pinger, to, i, i % 2 == 0 ? 4 : message_bytes);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  end(&pinger);
  CHECK(urma_delete_context(server) == URMA_SUCCESS);
}

// Of two contexts at one EID the second one takes over when the first one has ended.
static void another_process_takes_over(const char* device) {
  urma_context_t* first = open_context(device, "1");
  struct pinger pinger;
  begin(&pinger, device);
  urma_target_jetty_t* to = find(&pinger, ping_jetty, URMA_JETTY);
  REQUIRE(to != NULL);
  urma_context_t* second = open_context(device, "1");
  ping(&pinger, to, 1, 4);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  CHECK(urma_delete_context(first) == URMA_SUCCESS);
  to = NULL;
  for (int i = 0; to == NULL && i < 20; ++i) to = find(&pinger, ping_jetty, URMA_JETTY);
  REQUIRE(to != NULL);
  ping(&pinger, to, 2, 4);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  end(&pinger);
  CHECK(urma_delete_context(second) == URMA_SUCCESS);
}

static void* until_unlocked(void* mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

// Deletes a context whose memory keeps its pages of the window, because there is another thread: so
// the library keeps the device open.
static void delete_while_its_memory_is_used(urma_context_t* ctx) {
  const size_t bytes = 16 * 4096;
  char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  urma_seg_cfg_t cfg = {.va = (uint64_t)memory, .len = bytes};
  cfg.flag.bs.access = URMA_ACCESS_READ | URMA_ACCESS_WRITE;
  setenv("URMA_SEGMENTS", "window", 1);
  urma_target_seg_t* const seg = urma_register_seg(ctx, &cfg);
  unsetenv("URMA_SEGMENTS");
  REQUIRE(seg != NULL);
  pthread_t thread;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  REQUIRE(pthread_create(&thread, NULL, until_unlocked, &mutex) == 0);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(urma_delete_context(ctx) == URMA_SUCCESS);
  pthread_mutex_unlock(&mutex);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void nobody_answers_for_a_deleted_context(const char* device) {
  delete_while_its_memory_is_used(open_context(device, "1"));
  struct pinger pinger;
  begin(&pinger, device);
  CHECK(find(&pinger, ping_jetty, URMA_JETTY) == NULL);
  urma_context_t* next = open_context(device, "1");
  urma_target_jetty_t* to = find(&pinger, ping_jetty, URMA_JETTY);
  REQUIRE(to != NULL);
  ping(&pinger, to, 1, 4);
  CHECK(urma_unimport_jetty(to) == URMA_SUCCESS);
  end(&pinger);
  CHECK(urma_delete_context(next) == URMA_SUCCESS);
}

static void only_where_it_is_asked_for(const char* device) {
  urma_context_t* silent = open_context(device, "0");
  struct pinger pinger;
  begin(&pinger, device);
  CHECK(find(&pinger, ping_jetty, URMA_JETTY) == NULL);
  CHECK(strstr(last_error, "no process answers pings at the EID") != NULL);
  if (strcmp(device, "window") == 0) {
    CHECK(find(&pinger, ping_jetty + 1, URMA_JETTY) == NULL && errno == URMA_EINVAL);
    CHECK(strstr(last_error, "the uasid is 0") != NULL);
    CHECK(find(&pinger, ping_jetty, URMA_JFR) == NULL && errno == URMA_EINVAL);
  }
  urma_context_t* doubtful = open_context(device, "yes");
  CHECK(strstr(last_error, "URMA_PING is \"yes\", so it has no effect") != NULL);
  CHECK(find(&pinger, ping_jetty, URMA_JETTY) == NULL);
  CHECK(urma_delete_context(doubtful) == URMA_SUCCESS);
  end(&pinger);
  CHECK(urma_delete_context(silent) == URMA_SUCCESS);
}

// The number is taken where pings are answered, and the program's elsewhere.
static void a_program_has_a_jetty_5_of_its_own(const char* device) {
  for (int answers = 0; answers < 2; ++answers) {
    urma_context_t* ctx = open_context(device, answers != 0 ? "1" : "0");
    urma_jfc_cfg_t jfc = {.depth = depth};
    urma_jfc_t* queue = urma_create_jfc(ctx, &jfc);
    REQUIRE(queue != NULL);
    urma_jfr_cfg_t jfr = {
        .id = ping_jetty, .depth = depth, .trans_mode = URMA_TM_RM, .max_sge = 1, .jfc = queue};
    urma_jfr_t* own = urma_create_jfr(ctx, &jfr);
    CHECK((own == NULL) == (answers != 0));
    if (own != NULL) CHECK(urma_delete_jfr(own) == URMA_SUCCESS);
    CHECK(urma_delete_jfc(queue) == URMA_SUCCESS);
    CHECK(urma_delete_context(ctx) == URMA_SUCCESS);
  }
}

static void skip_to(FILE* file, char* line, int bytes, const char* begin) {
  while (fgets(line, bytes, file) != NULL && strncmp(line, begin, strlen(begin)) != 0) {
  }
}

// Returns which signals the thread with this name blocks, bit 0 for signal 1.
static unsigned long blocked_by(const char* name) {
  unsigned long mask = 0;
  DIR* const threads = opendir("/proc/self/task");
  REQUIRE(threads != NULL);
  for (struct dirent* one = readdir(threads); one != NULL; one = readdir(threads)) {
    char path[300];
    char line[128] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%.200s/status", one->d_name);
    FILE* const status = one->d_name[0] == '.' ? NULL : fopen(path, "r");
    if (status == NULL) continue;
    skip_to(status, line, sizeof line, "Name:");
    const bool found = strstr(line, name) != NULL;
    skip_to(status, line, sizeof line, "SigBlk:");
    if (found) mask = strtoul(line + strlen("SigBlk:"), NULL, 16);
    fclose(status);
  }
  closedir(threads);
  return mask;
}

// Signals are for the threads of the program, but a fault of this thread is its own.
static void the_thread_takes_no_signals_but_its_faults(const char* device) {
  urma_context_t* ctx = open_context(device, "1");
  // Until it runs, a new thread blocks all.
  unsigned long mask = blocked_by("urma-ping");
  for (int i = 0; (mask >> (SIGSEGV - 1) & 1) != 0 && i < 1000; ++i) {
    usleep(1000);
    mask = blocked_by("urma-ping");
  }
  const int others[] = {SIGINT, SIGTERM, SIGALRM, SIGUSR1, SIGCHLD};
  const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
  for (int i = 0; i < 5; ++i) {
    CHECK((mask >> (others[i] - 1) & 1) == 1);
    CHECK((mask >> (faults[i] - 1) & 1) == 0);
  }
  CHECK(urma_delete_context(ctx) == URMA_SUCCESS);
}

static char names[] = "/tmp/umdk-ping-XXXXXX";  // the directory of published names

static void remove_names(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", names);
  CHECK(system(command) == 0);
}

int main(void) {
  // No other program has these names, nor this address of the loopback.
  char network[64];
  const int pid = (int)getpid();
  REQUIRE(mkdtemp(names) != NULL);
  REQUIRE(atexit(remove_names) == 0);  // also if a REQUIRE ends the program
  setenv("XDG_RUNTIME_DIR", names, 1);
  snprintf(network, sizeof network, "udp:127.%d.%d.%d:0", 64 + (pid >> 14) % 128, (pid >> 7) % 128,
           1 + pid % 128);
  name_devices();
  urma_register_log_func(note);
  const char* const where[] = {devices[0], network};
  for (int i = 0; i < device_count; ++i) {
    answers_each_message(where[i]);
    another_process_takes_over(where[i]);
    nobody_answers_for_a_deleted_context(where[i]);
    only_where_it_is_asked_for(where[i]);
    the_thread_takes_no_signals_but_its_faults(where[i]);
    a_program_has_a_jetty_5_of_its_own(where[i]);
  }
  remove_devices();
  return failures != 0;
}
