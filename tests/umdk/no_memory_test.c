// SPDX-License-Identifier: Apache-2.0
// Each allocation of each call fails in turn: the call returns ENOMEM and says why, or succeeds
// without that memory; it works afterwards, and nothing of it is left.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/exchanges.h"
#include "tests/umdk/refusals.h"

// ---- memory

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

// Of this thread. Those of the library go on, like other processes.
static _Thread_local int until_failure = -1;  // allocations that still succeed; -1: all do
static _Thread_local bool all_later_fail;
static _Thread_local bool one_failed;
static atomic_int held;  // allocations of all threads that were not freed

static bool fails(void) {
  if (until_failure < 0) return false;
  if (until_failure > 0) {
    --until_failure;
    return false;
  }
  if (!all_later_fail) until_failure = -1;
  one_failed = true;
  errno = ENOMEM;
  return true;
}

static void* counted(void* memory) {
  if (memory != NULL) ++held;
  return memory;
}

void* malloc(size_t bytes) { return fails() ? NULL : counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) {
  return fails() ? NULL : counted(__libc_calloc(count, bytes));
}
void* realloc(void* old, size_t bytes) {
  if (fails()) return NULL;
  return old == NULL ? counted(__libc_realloc(old, bytes)) : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? NULL : counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *out = counted(__libc_memalign(alignment, bytes));
  return *out == NULL ? ENOMEM : 0;
}
void free(void* memory) {
  if (memory != NULL) --held;
  __libc_free(memory);
}

// ---- calls

static struct ends ends;
static struct end* const a = &ends.a;
static union {
  urma_context_t* ctx;
  urma_jfce_t* jfce;
  urma_jfc_t* jfc;
  urma_jfr_t* jfr;
  urma_jfs_t* jfs;
  urma_jetty_t* jetty;
  urma_jetty_grp_t* group;
  urma_notifier_t* notifier;
  urma_token_id_t* token;
  urma_target_seg_t* seg;
  urma_target_jetty_t* target;
  urma_device_t** devices;
  urma_eid_info_t* eids;
  urma_net_addr_info_t* addresses;
  urma_rjetty_t* rjetty;
} made;
static urma_device_t* device;

// Returns the status of a call that returned an object.
static urma_status_t status_of(const void* object) { return object != NULL ? URMA_SUCCESS : errno; }

static urma_status_t make_context(void) {
  return status_of(made.ctx = urma_create_context(device, 0));
}
static urma_status_t end_context(void) { return urma_delete_context(made.ctx); }

static urma_status_t make_jfce(void) { return status_of(made.jfce = urma_create_jfce(a->ctx)); }
static urma_status_t end_jfce(void) { return urma_delete_jfce(made.jfce); }

static urma_status_t make_jfc(void) {
  urma_jfc_cfg_t cfg = {.depth = 16, .jfce = a->jfce};
  return status_of(made.jfc = urma_create_jfc(a->ctx, &cfg));
}
static urma_status_t end_jfc(void) { return urma_delete_jfc(made.jfc); }

static urma_status_t make_jfr(void) {
  urma_jfr_cfg_t cfg = jfr_cfg_of(a->jfc);
  return status_of(made.jfr = urma_create_jfr(a->ctx, &cfg));
}
static urma_status_t end_jfr(void) { return urma_delete_jfr(made.jfr); }

// The JFC has no room for so many works, so that it gets a further queue.
static urma_status_t make_jfs(void) {
  urma_jfs_cfg_t cfg = jfs_cfg_of(a->jfc);
  cfg.depth = 40 * queue_depth;
  return status_of(made.jfs = urma_create_jfs(a->ctx, &cfg));
}
static urma_status_t end_jfs(void) { return urma_delete_jfs(made.jfs); }

static urma_status_t make_jetty(void) {
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  return status_of(made.jetty = urma_create_jetty(a->ctx, &cfg));
}
static urma_status_t end_jetty(void) { return urma_delete_jetty(made.jetty); }

static urma_status_t make_named_jetty(void) {
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  cfg.id = 900;
  return status_of(made.jetty = urma_create_jetty(a->ctx, &cfg));
}

static urma_status_t make_jetty_in_steps(void) {
  urma_jetty_cfg_t cfg = jetty_cfg_of(a->jfc, a->jfr);
  const urma_status_t status = urma_alloc_jetty(a->ctx, &cfg, &made.jetty);
  if (status != URMA_SUCCESS) return status;
  const urma_status_t activated = urma_active_jetty(made.jetty);
  if (activated != URMA_SUCCESS) CHECK(urma_free_jetty(made.jetty) == URMA_SUCCESS);
  return activated;
}

static urma_status_t make_group(void) {
  urma_jetty_grp_cfg_t cfg = {.token_value = secret};
  return status_of(made.group = urma_create_jetty_grp(a->ctx, &cfg));
}
static urma_status_t end_group(void) { return urma_delete_jetty_grp(made.group); }

static urma_status_t make_notifier(void) {
  return status_of(made.notifier = urma_create_notifier(a->ctx));
}
static urma_status_t end_notifier(void) { return urma_delete_notifier(made.notifier); }

static urma_status_t make_token(void) {
  return status_of(made.token = urma_alloc_token_id(a->ctx));
}
static urma_status_t end_token(void) { return urma_free_token_id(made.token); }

static char more_memory[3 * 4096];
static urma_status_t make_segment(void) {
  char* const page = (char*)(((uintptr_t)more_memory + 4095) & ~(uintptr_t)4095);
  urma_seg_cfg_t cfg = seg_cfg_of(page, URMA_ACCESS_READ | URMA_ACCESS_WRITE);
  cfg.len = 4096;
  return status_of(made.seg = urma_register_seg(a->ctx, &cfg));
}
static urma_status_t end_segment(void) { return urma_unregister_seg(made.seg); }

static urma_status_t import_segment(void) {
  urma_token_t token = secret;
  return status_of(
      made.seg = urma_import_seg(a->ctx, &ends.b.seg->seg, &token, 0, (urma_import_seg_flag_t){0}));
}
static urma_status_t unimport_segment(void) { return urma_unimport_seg(made.seg); }

static urma_rjetty_t other;
static urma_status_t import_other(void) {
  urma_token_t token = secret;
  return status_of(made.target = urma_import_jetty(a->ctx, &other, &token));
}
static urma_status_t unimport_other(void) { return urma_unimport_jetty(made.target); }

static urma_notifier_t* notifier;
static urma_status_t import_with_notice(void) {
  return status_of(made.target = urma_import_jetty_async(notifier, &other, &secret, 1, 1000));
}
static urma_status_t unimport_with_notice(void) {
  urma_notify_t notice;
  while (urma_wait_notify(notifier, 1, &notice, 0) == 1) urma_ack_notify(a->ctx, 1, &notice);
  return urma_unimport_jetty_async(made.target);
}

// The device looks up the process of a target that the program wrote itself.
static urma_jfr_t* without_token;
static urma_status_t send_to_written_target(void) {
  const urma_status_t status = make_jfs();
  if (status != URMA_SUCCESS) return status;
  urma_target_jetty_t target = {.id = without_token->jfr_id, .type = URMA_JFR};
  urma_sge_t from = here(a, 0, 4);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_SEND, .tjetty = &target};
  wr.send.src = (urma_sg_t){&from, 1};
  urma_jfs_wr_t* bad = NULL;
  const urma_status_t posted = urma_post_jfs_wr(made.jfs, &wr, &bad);
  if (posted != URMA_SUCCESS) CHECK(end_jfs() == URMA_SUCCESS);
  return posted;
}

static urma_status_t describe_jetty(void) {
  uint32_t bytes = 0;
  return urma_get_rjetty(a->jetty, &made.rjetty, &bytes);
}
static urma_status_t end_description(void) {
  urma_put_rjetty(made.rjetty);
  return URMA_SUCCESS;
}

static urma_status_t list_devices(void) {
  int count = 0;
  return status_of(made.devices = urma_get_device_list(&count));
}
static urma_status_t end_devices(void) {
  urma_free_device_list(made.devices);
  return URMA_SUCCESS;
}

static urma_status_t list_eids(void) {
  uint32_t count = 0;
  return status_of(made.eids = urma_get_eid_list(device, &count));
}
static urma_status_t end_eids(void) {
  urma_free_eid_list(made.eids);
  return URMA_SUCCESS;
}

static urma_status_t list_addresses(void) {
  uint32_t count = 0;
  return status_of(made.addresses = urma_get_net_addr_list(a->ctx, &count));
}
static urma_status_t end_addresses(void) {
  urma_free_net_addr_list(made.addresses);
  return URMA_SUCCESS;
}

// Changes of the state make records, for which a JFC may need memory.
static urma_status_t flush(void) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_ERROR};
  return urma_modify_jetty(a->jetty, &attr);
}
static urma_status_t restart_queue(void) {
  urma_jetty_attr_t attr = {.mask = JETTY_STATE, .state = URMA_JETTY_STATE_READY};
  settle_down(a);
  set_state(a, URMA_JETTY_STATE_RESET);
  return urma_modify_jetty(a->jetty, &attr);
}

static const struct call {
  const char* name;
  urma_status_t (*call)(void);
  urma_status_t (*end)(void);
} calls[] = {
    {"urma_get_device_list", list_devices, end_devices},
    {"urma_get_eid_list", list_eids, end_eids},
    {"urma_create_context", make_context, end_context},
    {"urma_create_jfce", make_jfce, end_jfce},
    {"urma_create_jfc", make_jfc, end_jfc},
    {"urma_create_jfr", make_jfr, end_jfr},
    {"urma_create_jfs", make_jfs, end_jfs},
    {"urma_create_jetty", make_jetty, end_jetty},
    {"urma_create_jetty with a number", make_named_jetty, end_jetty},
    {"urma_active_jetty", make_jetty_in_steps, end_jetty},
    {"urma_create_jetty_grp", make_group, end_group},
    {"urma_create_notifier", make_notifier, end_notifier},
    {"urma_alloc_token_id", make_token, end_token},
    {"urma_register_seg", make_segment, end_segment},
    {"urma_import_seg", import_segment, unimport_segment},
    {"urma_import_jetty", import_other, unimport_other},
    {"urma_import_jetty_async", import_with_notice, unimport_with_notice},
    {"urma_post_jfs_wr", send_to_written_target, end_jfs},
    {"urma_get_rjetty", describe_jetty, end_description},
    {"urma_modify_jetty to ERROR", flush, restart_queue},
    {"urma_get_net_addr_list", list_addresses, end_addresses},  // the last: networks have addresses
};

// Calls a function with allocation `k`, and perhaps all later ones, failing. Returns its status.
static urma_status_t call_without(int k, bool and_later, urma_status_t (*call)(void),
                                  bool* failed) {
  errno = 0;
  until_failure = k;
  all_later_fail = and_later;
  one_failed = false;
  const urma_status_t status = call();
  until_failure = -1;
  *failed = one_failed;
  return status;
}

// Lets an allocation of a call fail. Returns whether the call has as many.
static bool call_fails(const struct call* one, int k, bool and_later) {
  bool failed = false;
  const int reasons_before = reasons;
  const urma_status_t status = call_without(k, and_later, one->call, &failed);
  if (status == URMA_SUCCESS) {
    CHECK(one->end() == URMA_SUCCESS);
  } else if ((status != URMA_ENOMEM && status != EIO) || !failed || reasons == reasons_before) {
    ++failures;
    fprintf(stderr, "%s, allocation %d%s: status %d, %d reasons, the last one \"%s\"\n", one->name,
            k, and_later ? " and later ones" : "", status, reasons - reasons_before, last_reason);
  }
  return failed;
}

// The same for the call that ends what a call made.
static bool end_fails(const struct call* one, int k, bool and_later) {
  bool failed = false;
  REQUIRE(one->call() == URMA_SUCCESS);
  const urma_status_t status = call_without(k, and_later, one->end, &failed);
  if (status == URMA_SUCCESS) return failed;
  if (!failed || status != URMA_ENOMEM) {
    ++failures;
    fprintf(stderr, "the end of %s, allocation %d: status %d\n", one->name, k, status);
  }
  REQUIRE(one->end() == URMA_SUCCESS);
  return failed;
}

// Lets each of the first 50 allocations fail, and some of the later ones. A leak shows each time;
// what other threads allocate meanwhile, or what grows for once, does not.
static void without_memory(const struct call* one,
                           bool (*fails_at)(const struct call*, int k, bool and_later)) {
  enum { most_allocations = 10000, times = 3 };
  for (int later = 0; later < 2; ++later) {
    bool failed = true;
    for (int k = 0; failed; k += 1 + k / 50) {
      REQUIRE(k < most_allocations);
      bool leaks = true;
      for (int time = 0; time < times && leaks; ++time) {
        const int held_before = held;
        failed = fails_at(one, k, later != 0);
        leaks = held > held_before;
      }
      if (!leaks) continue;
      ++failures;
      fprintf(stderr, "%s, allocation %d%s: memory is left\n", one->name, k,
              later != 0 ? " and later ones" : "");
    }
  }
}

static void works_still(void) {
  char word[16];
  snprintf(word, sizeof word, "%d", rand());
  memcpy(a->memory, word, sizeof word);
  urma_sge_t from = here(a, 0, sizeof word);
  urma_sge_t to = there(a, 64, sizeof word);
  urma_jfs_wr_t wr = {.opcode = URMA_OPC_WRITE};
  wr.rw.src = (urma_sg_t){&from, 1};
  wr.rw.dst = (urma_sg_t){&to, 1};
  CHECK(run(a, &wr).status == URMA_CR_SUCCESS);
  CHECK(memcmp(ends.b.memory + 64, word, sizeof word) == 0);
}

static void test(const char* on) {
  device = urma_get_device_by_name((char*)on);
  ends = make_ends(on, URMA_TM_RM);
  urma_rjetty_t* described = NULL;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(ends.b.jetty, &described, &bytes) == URMA_SUCCESS);
  other = *described;
  urma_put_rjetty(described);
  notifier = urma_create_notifier(a->ctx);
  REQUIRE(notifier != NULL);
  urma_jfr_cfg_t jfr = jfr_cfg_of(ends.b.jfc);
  without_token = urma_create_jfr(ends.b.ctx, &jfr);
  REQUIRE(without_token != NULL);
  const size_t network = strcmp(on, "network") == 0;
  for (size_t i = 0; i < sizeof calls / sizeof calls[0] - 1 + network; ++i) {
    // The memory of an object is used again when 256 later ones of its kind have ended.
    for (int k = 0; k < 260; ++k) end_fails(&calls[i], 0, true);
    without_memory(&calls[i], call_fails);
    without_memory(&calls[i], end_fails);
    works_still();
  }
  CHECK(urma_delete_notifier(notifier) == URMA_SUCCESS);
  CHECK(urma_delete_jfr(without_token) == URMA_SUCCESS);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  for (int i = 0; i < device_count; ++i) test(devices[i]);
  remove_devices();
  return failures;
}
