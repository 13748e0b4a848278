// SPDX-License-Identifier: Apache-2.0
// After set-up, posting works and receives, polling and waiting neither allocate memory nor take a
// lock of the system, with and without the flag lock_free.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

// ---- the trap

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

static atomic_bool armed;
static atomic_int allocations;
static atomic_int locks;

static void note(atomic_int* counter) {
  if (atomic_load_explicit(&armed, memory_order_relaxed)) atomic_fetch_add(counter, 1);
}

void* malloc(size_t bytes) {
  note(&allocations);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  note(&allocations);
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  note(&allocations);
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  note(&allocations);
  return __libc_memalign(alignment, bytes);
}
void free(void* memory) {
  note(&allocations);
  __libc_free(memory);
}

// A function that takes a lock, before that of the system.
#define COUNTED(function, type)                                     \
  int function(type* lock) {                                        \
    static int (*real)(type*);                                      \
    if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #function); \
    note(&locks);                                                   \
    return real(lock);                                              \
  }
COUNTED(pthread_mutex_lock, pthread_mutex_t)
COUNTED(pthread_mutex_trylock, pthread_mutex_t)
COUNTED(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_tryrdlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNTED(pthread_rwlock_trywrlock, pthread_rwlock_t)
COUNTED(pthread_spin_lock, pthread_spinlock_t)
COUNTED(pthread_spin_trylock, pthread_spinlock_t)
COUNTED(sem_wait, sem_t)
COUNTED(sem_trywait, sem_t)

// ---- what a program does after set-up

enum { bytes = 64, large_bytes = 100000 };

// Posts a work for which this end has a record, and for which the other end has `arrivals`.
static void exchange(struct ends* ends, urma_jfs_wr_t* wr, int arrivals) {
  urma_cr_t records[4];
  const urma_cr_t record = run(&ends->a, wr);
  CHECK(record.status == URMA_CR_SUCCESS);
  CHECK(collect(ends->b.jfc, records, arrivals) == arrivals);
}

static urma_jfs_wr_t work(urma_opcode_t opcode) { return (urma_jfs_wr_t){.opcode = opcode}; }

static void write_and_read(struct ends* ends, uint32_t count) {
  urma_sge_t from = here(&ends->a, 0, count);
  urma_sge_t to[2] = {there(&ends->a, 0, count), there(&ends->a, 500000, 8)};
  const urma_opcode_t opcodes[] = {URMA_OPC_WRITE, URMA_OPC_WRITE_IMM, URMA_OPC_WRITE_NOTIFY};
  for (int i = 0; i < 3; ++i) {
    urma_jfs_wr_t wr = work(opcodes[i]);
    wr.rw.src = (urma_sg_t){&from, 1};
    wr.rw.dst = (urma_sg_t){to, opcodes[i] == URMA_OPC_WRITE_NOTIFY ? 2 : 1};
    if (opcodes[i] == URMA_OPC_WRITE_IMM) receive(&ends->b, 600000, bytes, 1);
    exchange(ends, &wr, opcodes[i] == URMA_OPC_WRITE_IMM);
  }
  urma_jfs_wr_t wr = work(URMA_OPC_READ);
  wr.rw.src = (urma_sg_t){to, 1};
  wr.rw.dst = (urma_sg_t){&from, 1};
  exchange(ends, &wr, 0);
}

static void send_all_ways(struct ends* ends) {
  urma_sge_t from[2] = {here(&ends->a, 0, bytes / 2), here(&ends->a, 1000, bytes / 2)};
  for (int i = 0; i < 4; ++i) {
    receive(&ends->b, 600000, bytes, 1);
    urma_jfs_wr_t wr = work(i == 1 ? URMA_OPC_SEND_IMM : URMA_OPC_SEND);
    wr.flag.bs.inline_flag = i == 2;
    wr.flag.bs.solicited_enable = i == 3;
    wr.send.src = (urma_sg_t){from, i == 3 ? 2 : 1};
    exchange(ends, &wr, 1);
  }
}

static void change_words(struct ends* ends) {
  urma_sge_t local = here(&ends->a, 2048, 8);
  urma_sge_t remote = there(&ends->a, 2048, 8);
  urma_jfs_wr_t swap = work(URMA_OPC_CAS);
  swap.cas.src = &local;
  swap.cas.dst = &remote;
  exchange(ends, &swap, 0);
  urma_jfs_wr_t add = work(URMA_OPC_FADD);
  add.faa.src = &local;
  add.faa.dst = &remote;
  add.faa.operand = 3;
  exchange(ends, &add, 0);
}

// A list of works of which only the last one has a record.
static void post_list(struct ends* ends) {
  enum { count = 12 };
  urma_sge_t from = here(&ends->a, 0, bytes);
  urma_sge_t to = there(&ends->a, 0, bytes);
  urma_jfs_wr_t list[count];
  for (int i = 0; i < count; ++i) {
    list[i] = work(URMA_OPC_WRITE);
    list[i].tjetty = ends->a.to;
    list[i].rw.src = (urma_sg_t){&from, 1};
    list[i].rw.dst = (urma_sg_t){&to, 1};
    list[i].flag.bs.complete_enable = i + 1 == count;
    list[i].next = i + 1 < count ? &list[i + 1] : NULL;
  }
  urma_jfs_wr_t* bad = NULL;
  urma_cr_t record;
  CHECK(urma_post_jetty_send_wr(ends->a.jetty, list, &bad) == URMA_SUCCESS);
  CHECK(collect(ends->a.jfc, &record, 1) == 1);
}

// Waits for a message at the event channel.
static void wait_for_event(struct ends* ends) {
  urma_jfc_t* ready[1] = {NULL};
  uint32_t one = 1;
  CHECK(urma_rearm_jfc(ends->b.jfc, false) == URMA_SUCCESS);
  receive(&ends->b, 600000, bytes, 1);
  urma_sge_t from = here(&ends->a, 0, bytes);
  urma_jfs_wr_t wr = work(URMA_OPC_SEND);
  wr.send.src = (urma_sg_t){&from, 1};
  const urma_cr_t record = run(&ends->a, &wr);
  CHECK(record.status == URMA_CR_SUCCESS);
  CHECK(urma_wait_jfc(ends->b.jfce, 1, 5000, ready) == 1);
  CHECK(ready[0] == ends->b.jfc);
  urma_ack_jfc(ready, &one, 1);
  urma_cr_t arrived;
  CHECK(collect(ends->b.jfc, &arrived, 1) == 1);
}

static urma_jfs_t* make_jfs(struct end* end) {
  urma_jfs_cfg_t cfg = {.depth = queue_depth,
                        .trans_mode = URMA_TM_RM,
                        .max_sge = 1,
                        .max_rsge = 1,
                        .rnr_retry = URMA_TYPICAL_RNR_RETRY,
                        .jfc = end->jfc};
  cfg.flag.bs.lock_free = lock_free;
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  return jfs;
}

// The calls that take their arguments one by one.
static void use_jfs(struct ends* ends, urma_jfs_t* jfs) {
  struct end* const a = &ends->a;
  const urma_jfs_wr_flag_t flag = {.bs = {.complete_enable = 1}};
  const uint64_t local = here(a, 0, bytes).addr;
  const uint64_t remote = there(a, 0, bytes).addr;
  urma_cr_t records[2];
  CHECK(urma_write(jfs, a->to, a->there, a->seg, remote, local, bytes, flag, 1) == URMA_SUCCESS);
  CHECK(urma_read(jfs, a->to, a->seg, a->there, local, remote, bytes, flag, 2) == URMA_SUCCESS);
  CHECK(collect(a->jfc, records, 2) == 2);
}

// Writes in turn to several peers, by targets and segments that the program writes itself.
static void write_by_hand(struct ends* ends, struct end* others) {
  struct end* const owners[] = {&ends->b, &others[0], &others[1]};
  for (int i = 0; i < 3; ++i) {
    urma_target_jetty_t target = {.id = owners[i]->jetty->jetty_id};
    urma_user_tseg_t segment = {.token_id = owners[i]->seg->seg.token_id, .token_value = secret};
    urma_sge_t from = here(&ends->a, 0, bytes);
    urma_sge_t to = {
        .addr = owners[i]->seg->seg.ubva.va, .len = bytes, .tseg = NULL, .user_tseg = &segment};
    urma_jfs_wr_t wr = work(URMA_OPC_WRITE);
    wr.tjetty = &target;
    wr.rw.src = (urma_sg_t){&from, 1};
    wr.rw.dst = (urma_sg_t){&to, 1};
    wr.flag.bs.complete_enable = 1;
    urma_jfs_wr_t* bad = NULL;
    urma_cr_t record;
    CHECK(urma_post_jetty_send_wr(ends->a.jetty, &wr, &bad) == URMA_SUCCESS);
    CHECK(collect(ends->a.jfc, &record, 1) == 1);
    CHECK(record.status == URMA_CR_SUCCESS);
  }
}

static urma_status_t post(struct end* end, urma_jfs_wr_t* wr) {
  urma_jfs_wr_t* bad = NULL;
  const urma_status_t status = urma_post_jetty_send_wr(end->jetty, wr, &bad);
  CHECK(bad == wr);
  return status;
}

static void drop(int level, char* message) {
  (void)level;
  (void)message;
}

// Works that a post refuses, although it writes to the log why.
static void post_what_is_not_valid(struct ends* ends) {
  enum { too_many = 17 };
  static char text[4096];
  urma_sge_t from[too_many];
  urma_sge_t inline_data = {.addr = (uint64_t)text, .len = sizeof text};
  for (int i = 0; i < too_many; ++i) from[i] = here(&ends->a, 0, 8);
  urma_jfs_wr_t wr = work(URMA_OPC_SEND);
  wr.tjetty = ends->a.to;
  wr.send.src = (urma_sg_t){from, too_many};
  CHECK(post(&ends->a, &wr) == URMA_EINVAL);
  wr.send.src = (urma_sg_t){&inline_data, 1};
  wr.flag.bs.inline_flag = 1;
  CHECK(post(&ends->a, &wr) == URMA_EINVAL);
  wr.send.src = (urma_sg_t){from, 1};
  wr.flag.bs.place_order = 3;
  CHECK(post(&ends->a, &wr) == URMA_EINVAL);
  urma_jfr_wr_t receives = {.src = {from, too_many}};
  urma_jfr_wr_t* bad = NULL;
  CHECK(urma_post_jfr_wr(ends->b.jfr, &receives, &bad) == URMA_EINVAL && bad == &receives);
}

// Posts works and receives until the queues are full. The log says so.
static void fill_queues(struct ends* ends) {
  enum { most = 4 * queue_depth };
  urma_sge_t from = here(&ends->a, 0, bytes);
  urma_sge_t to = there(&ends->a, 0, bytes);
  urma_sge_t into = here(&ends->a, 600000, bytes);
  urma_jfs_wr_t wr = work(URMA_OPC_WRITE);
  urma_jfr_wr_t receives = {.src = {&into, 1}};
  urma_jfs_wr_t* bad = NULL;
  urma_jfr_wr_t* bad_receive = NULL;
  urma_cr_t records[most];
  int works = 0;
  wr.tjetty = ends->a.to;
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  wr.flag.bs.complete_enable = 1;
  while (works < most && urma_post_jetty_send_wr(ends->a.jetty, &wr, &bad) == URMA_SUCCESS) ++works;
  CHECK(works >= queue_depth && works < most);
  CHECK(collect(ends->a.jfc, records, works) == works);
  int posted = 0;
  while (posted < most && urma_post_jfr_wr(ends->a.jfr, &receives, &bad_receive) == URMA_SUCCESS) {
    ++posted;
  }
  CHECK(posted < most);
}

static void use(struct ends* ends, struct end* others, urma_jfs_t* jfs, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    post_what_is_not_valid(ends);
    fill_queues(ends);
    use_jfs(ends, jfs);
    write_and_read(ends, bytes);
    write_and_read(ends, large_bytes);
    send_all_ways(ends);
    change_words(ends);
    post_list(ends);
    write_by_hand(ends, others);
    wait_for_event(ends);
  }
}

static void check_device(const char* device, urma_transport_mode_t mode) {
  struct ends ends = make_ends(device, mode);
  struct end others[] = {make_end(device, mode), make_end(device, mode)};
  urma_jfs_t* const jfs = make_jfs(&ends.a);
  use(&ends, others, jfs, 10);
  atomic_store(&allocations, 0);
  atomic_store(&locks, 0);
  atomic_store(&armed, true);
  use(&ends, others, jfs, 50);
  atomic_store(&armed, false);
  if (atomic_load(&allocations) + atomic_load(&locks) > 0) {
    fprintf(stderr, "%s: %d allocations, %d locks\n", device, allocations, locks);
  }
  CHECK(atomic_load(&allocations) == 0);
  CHECK(atomic_load(&locks) == 0);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
  for (int i = 0; i < 2; ++i) end_end(&others[i]);
  end_ends(&ends);
}

// The trap must see what it is there for.
static void check_trap(void) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  pthread_spinlock_t spinlock;
  sem_t semaphore;
  CHECK(pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE) == 0);
  CHECK(sem_init(&semaphore, 0, 1) == 0);
  atomic_store(&armed, true);
  void* volatile memory = malloc(10);
  free(memory);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  pthread_rwlock_wrlock(&rwlock);
  pthread_rwlock_unlock(&rwlock);
  pthread_spin_lock(&spinlock);
  pthread_spin_unlock(&spinlock);
  sem_wait(&semaphore);
  atomic_store(&armed, false);
  CHECK(atomic_load(&allocations) == 2);
  CHECK(atomic_load(&locks) == 4);
}

int main(void) {
  check_trap();
  name_devices();
  CHECK(urma_register_log_func(drop) == URMA_SUCCESS);
  for (int i = 0; i < device_count; ++i) {
    for (int free_of_locks = 0; free_of_locks < 2; ++free_of_locks) {
      lock_free = free_of_locks != 0;
      check_device(devices[i], URMA_TM_RM);
    }
  }
  remove_devices();
  return failures;
}
