// SPDX-License-Identifier: Apache-2.0
// Memory that is moved into the window when it is registered (URMA_SEGMENTS=window).
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { pages_bytes = 64 * 4096 };

// Returns whether a file is behind this memory.
static bool is_moved(const void* memory) {
  char line[512];
  bool found = false;
  FILE* const maps = fopen("/proc/self/maps", "r");
  REQUIRE(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
    if (begin > (uintptr_t)memory || end <= (uintptr_t)memory) continue;
    found = strstr(line, "umdk-test") != NULL;
  }
  fclose(maps);
  return found;
}

static char* new_pages(void) {
  void* const memory =
      mmap(NULL, pages_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return memory;
}

static void fill(char* memory, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = (char)(i * 31 + (i >> 12) + seed);
}

static bool has(const char* memory, size_t bytes, unsigned seed) {
  for (size_t i = 0; i < bytes; ++i) {
    if (memory[i] != (char)(i * 31 + (i >> 12) + seed)) return false;
  }
  return true;
}

static urma_target_seg_t* register_as(urma_context_t* ctx, void* memory, size_t bytes,
                                      uint32_t access) {
  urma_seg_cfg_t seg = {.va = (uint64_t)memory, .len = bytes, .token_value = secret};
  seg.flag.bs.token_policy = URMA_TOKEN_PLAIN_TEXT;
  seg.flag.bs.access = access & 0x3f;
  urma_target_seg_t* const made = urma_register_seg(ctx, &seg);
  REQUIRE(made != NULL);
  return made;
}

static urma_target_seg_t* register_all(struct end* end, void* memory) {
  return register_as(end->ctx, memory, pages_bytes,
                     URMA_ACCESS_READ | URMA_ACCESS_WRITE | URMA_ACCESS_ATOMIC);
}

static urma_target_seg_t* import_at(struct end* end, urma_target_seg_t* seg) {
  urma_token_t token = secret;
  urma_target_seg_t* const made =
      urma_import_seg(end->ctx, &seg->seg, &token, 0, (urma_import_seg_flag_t){0});
  REQUIRE(made != NULL);
  return made;
}

// Writes or reads between the memory of an end and a segment, and returns the status.
static urma_cr_status_t copy(struct end* end, urma_opcode_t opcode, urma_target_seg_t* to,
                             uint64_t offset, uint32_t bytes) {
  urma_sge_t local = here(end, 0, bytes);
  urma_sge_t remote = {.addr = to->seg.ubva.va + offset, .len = bytes, .tseg = to};
  urma_jfs_wr_t wr = {.opcode = opcode};
  wr.rw.src = (urma_sg_t){opcode == URMA_OPC_READ ? &remote : &local, 1};
  wr.rw.dst = (urma_sg_t){opcode == URMA_OPC_READ ? &local : &remote, 1};
  return run(end, &wr).status;
}

// ---- what peers and the program see

static void works_reach_moved_memory(struct ends* ends) {
  struct end* const a = &ends->a;
  char* const memory = new_pages();
  fill(memory, pages_bytes, 1);
  urma_target_seg_t* const seg = register_all(&ends->b, memory);
  CHECK(is_moved(memory));
  CHECK(has(memory, pages_bytes, 1));
  urma_target_seg_t* const there = import_at(a, seg);
  CHECK(copy(a, URMA_OPC_READ, there, 8192, 20000) == URMA_CR_SUCCESS);
  CHECK(memcmp(a->memory, memory + 8192, 20000) == 0);
  fill(a->memory, 20000, 2);
  CHECK(copy(a, URMA_OPC_WRITE, there, 4096, 20000) == URMA_CR_SUCCESS);
  CHECK(has(memory + 4096, 20000, 2));
  memory[4096] = 77;  // the program's own store
  CHECK(copy(a, URMA_OPC_READ, there, 4096, 1) == URMA_CR_SUCCESS);
  CHECK(a->memory[0] == 77);
  // Outside of it, nothing is accepted.
  CHECK(copy(a, URMA_OPC_WRITE, there, pages_bytes - 8, 16) != URMA_CR_SUCCESS);

  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(!is_moved(memory));
  CHECK(memory[4096] == 77 && has(memory, 4096, 1));
  fill(a->memory, 64, 3);
  CHECK(copy(a, URMA_OPC_WRITE, there, 0, 64) != URMA_CR_SUCCESS);
  CHECK(has(memory, 4096, 1));
  CHECK(urma_unimport_seg(there) == URMA_SUCCESS);
  munmap(memory, pages_bytes);
}

// The memory of an end is moved, too, so messages leave from there and arrive there.
static void messages_use_moved_memory(struct ends* ends) {
  CHECK(is_moved(ends->a.memory) && is_moved(ends->b.memory));
  receive(&ends->b, 4096, 5000, 5);
  fill(ends->a.memory, 5000, 4);
  urma_sge_t from = here(&ends->a, 0, 5000);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND};
  wr.send.src = (urma_sg_t){&from, 1};
  CHECK(run(&ends->a, &wr).status == URMA_CR_SUCCESS);
  urma_cr_t arrived;
  CHECK(collect(ends->b.jfc, &arrived, 1) == 1);
  CHECK(has(ends->b.memory + 4096, 5000, 4));
}

// A program that makes the urma_seg_t itself may leave unused bits as they were.
static void unused_bits_do_not_mislead(struct ends* ends) {
  char* const memory = new_pages();
  urma_target_seg_t* const seg = register_all(&ends->b, memory);
  urma_target_seg_t changed = *seg;
  changed.seg.attr.bs.reserved ^= 0x55;
  urma_target_seg_t* const there = import_at(&ends->a, &changed);
  fill(ends->a.memory, 64, 6);
  CHECK(copy(&ends->a, URMA_OPC_WRITE, there, 100, 64) == URMA_CR_SUCCESS);
  CHECK(has(memory + 100, 64, 6));
  CHECK(urma_unimport_seg(there) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  munmap(memory, pages_bytes);
}

// ---- what is not moved

static void some_memory_is_not_moved(struct ends* ends) {
  char* const memory = new_pages();
  urma_context_t* const ctx = ends->b.ctx;
  urma_target_seg_t* seg = register_as(ctx, memory + 16, 8192, URMA_ACCESS_READ);
  CHECK(!is_moved(memory));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  seg = register_as(ctx, memory, 8192, URMA_ACCESS_LOCAL_ONLY);
  CHECK(!is_moved(memory));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  // A part of a segment of another context: received data may be stored there at any time.
  seg = register_as(ends->a.ctx, memory + 4096, 4097, URMA_ACCESS_READ);
  urma_target_seg_t* const other = register_all(&ends->b, memory);
  CHECK(!is_moved(memory) && !is_moved(memory + 4096));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(other) == URMA_SUCCESS);
  munmap(memory, pages_bytes);
  char* const shared =
      mmap(NULL, pages_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  seg = register_all(&ends->b, shared);
  CHECK(!is_moved(shared));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  munmap(shared, pages_bytes);
}

static void failed_registration_moves_nothing(struct ends* ends) {
  char* const memory = new_pages();
  fill(memory, pages_bytes, 7);
  urma_seg_cfg_t seg = {.va = (uint64_t)memory, .len = pages_bytes, .token_value = secret};
  seg.flag.bs.token_policy = URMA_TOKEN_SIGNED;
  seg.flag.bs.access = URMA_ACCESS_READ;
  CHECK(urma_register_seg(ends->b.ctx, &seg) == NULL);
  CHECK(!is_moved(memory) && has(memory, pages_bytes, 7));
  munmap(memory, pages_bytes);
}

// More than the window holds: the memory stays where it is, and is reached by packets.
static void large_memory_is_not_moved(struct ends* ends) {
  const size_t bytes = 128u << 20;
  char* const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  urma_target_seg_t* const seg =
      register_as(ends->b.ctx, memory, bytes, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  CHECK(!is_moved(memory));
  urma_target_seg_t* const there = import_at(&ends->a, seg);
  fill(ends->a.memory, 64, 8);
  CHECK(copy(&ends->a, URMA_OPC_WRITE, there, 100u << 20, 64) == URMA_CR_SUCCESS);
  CHECK(has(memory + (100u << 20), 64, 8));
  CHECK(urma_unimport_seg(there) == URMA_SUCCESS);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  munmap(memory, bytes);
}

// ---- other threads

static pthread_barrier_t barrier;

static void* wait_there(void* argument) {
  pthread_barrier_wait(&barrier);
  return argument;
}

static pthread_t start_thread(void) {
  pthread_t thread;
  REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0);
  REQUIRE(pthread_create(&thread, NULL, wait_there, NULL) == 0);
  return thread;
}

static void end_thread(pthread_t thread) {
  pthread_barrier_wait(&barrier);
  CHECK(pthread_join(thread, NULL) == 0);
  pthread_barrier_destroy(&barrier);
}

static void memory_of_several_threads_is_not_moved(struct ends* ends) {
  char* const memory = new_pages();
  const pthread_t thread = start_thread();
  urma_target_seg_t* seg = register_all(&ends->b, memory);
  CHECK(!is_moved(memory));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  // A program may give its threads the names of the library's.
  REQUIRE(pthread_setname_np(thread, "urma-engine") == 0);
  seg = register_all(&ends->b, memory);
  CHECK(!is_moved(memory));
  end_thread(thread);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  munmap(memory, pages_bytes);
}

// While there are other threads, memory keeps the pages of the window, even if the context is
// deleted, and no other context gets them.
static void unregistered_memory_waits_for_threads(bool until_the_end) {
  struct ends ends = make_ends(devices[0], URMA_TM_RM);
  char* const memory = new_pages();
  fill(memory, pages_bytes, 9);
  urma_target_seg_t* const seg = register_all(&ends.b, memory);
  CHECK(is_moved(memory));
  const pthread_t thread = start_thread();
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(is_moved(memory) && has(memory, pages_bytes, 9));
  if (!until_the_end) end_thread(thread);
  end_ends(&ends);
  CHECK(is_moved(memory) == until_the_end);
  if (until_the_end) end_thread(thread);
  struct ends next = make_ends(devices[0], URMA_TM_RM);
  fill(next.a.memory, memory_bytes, 10);
  fill(next.b.memory, memory_bytes, 10);
  char* const more = new_pages();
  urma_target_seg_t* const other = register_all(&next.a, more);
  CHECK(is_moved(more));
  fill(more, pages_bytes, 11);
  CHECK(has(memory, pages_bytes, 9));
  CHECK(urma_unregister_seg(other) == URMA_SUCCESS);
  end_ends(&next);
  munmap(more, pages_bytes);
  munmap(memory, pages_bytes);
}

// ---- memory that the program unmaps or moves while it is registered

static void unmapped_memory_is_left_alone(struct ends* ends) {
  char* const memory = new_pages();
  urma_target_seg_t* const seg = register_all(&ends->b, memory);
  CHECK(is_moved(memory));
  munmap(memory, pages_bytes);
  char* const next = mmap(memory, pages_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  REQUIRE(next == memory);
  fill(next, pages_bytes, 12);
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(has(next, pages_bytes, 12));
  munmap(next, pages_bytes);
}

static void moved_away_memory_is_found(struct ends* ends) {
  char* const memory = new_pages();
  urma_target_seg_t* const seg = register_all(&ends->b, memory);
  fill(memory, pages_bytes, 13);
  char* const place = new_pages();
  char* const half = memory + pages_bytes / 2;
  REQUIRE(mremap(half, pages_bytes / 2, pages_bytes / 2, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
          place);
  CHECK(is_moved(memory) && is_moved(place));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(!is_moved(memory) && !is_moved(place));
  CHECK(has(memory, pages_bytes / 2, 13));
  CHECK(memcmp(place, memory, 1) != 0 || place[1] == (char)(memory[1] + (pages_bytes / 2 >> 12)));
  munmap(memory, pages_bytes / 2);
  munmap(place, pages_bytes);
}

// ---- fork

static void child_has_its_own_pages(struct ends* ends) {
  char* const memory = new_pages();
  urma_target_seg_t* const seg = register_all(&ends->b, memory);
  fill(memory, pages_bytes, 14);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = !is_moved(memory) && has(memory, pages_bytes, 14);
    fill(memory, pages_bytes, 15);
    _exit(right && has(memory, pages_bytes, 15) ? 0 : 1);
  }
  // The child has copied it before fork() returned here.
  const bool moved = is_moved(memory);
  CHECK(moved && has(memory, pages_bytes, 14));
  fill(memory, pages_bytes, 16);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK(has(memory, pages_bytes, 16));
  CHECK(urma_unregister_seg(seg) == URMA_SUCCESS);
  CHECK(has(memory, pages_bytes, 16));
  munmap(memory, pages_bytes);
}

int main(void) {
#if defined(__SANITIZE_THREAD__)
  return 0;  // the sanitizer has a thread of its own
#endif
  setenv("URMA_SEGMENTS", "window", 1);
  name_devices();
  struct ends ends = make_ends(devices[0], URMA_TM_RM);
  works_reach_moved_memory(&ends);
  messages_use_moved_memory(&ends);
  unused_bits_do_not_mislead(&ends);
  some_memory_is_not_moved(&ends);
  failed_registration_moves_nothing(&ends);
  large_memory_is_not_moved(&ends);
  memory_of_several_threads_is_not_moved(&ends);
  unmapped_memory_is_left_alone(&ends);
  moved_away_memory_is_found(&ends);
  child_has_its_own_pages(&ends);
  end_ends(&ends);
  unregistered_memory_waits_for_threads(false);
  unregistered_memory_waits_for_threads(true);
  remove_devices();
  return failures;
}
