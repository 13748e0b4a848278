// SPDX-License-Identifier: Apache-2.0
// What UMDK's programs use beside URMA: liburma_common, libtpsa, the log, and loading by name.
#include <dlfcn.h>
#include <sys/mman.h>
#include <ub/umdk/urma/ub_barrier.h>
#include <ub/umdk/urma/ub_get_clock.h>
#include <ub/umdk/urma/ub_util.h>
#include <ub/umdk/urma/urma_api.h>
#include <ub/umdk/urma/urma_log.h>
#include <ub/umdk/urma/uvs_api.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

// ---- numbers in texts

static void numbers(void) {
  uint8_t u8 = 1;
  uint16_t u16 = 1;
  uint32_t u32 = 1;
  uint64_t u64 = 1;
  int integer = 1;
  CHECK(ub_str_to_u8("255", &u8) == 0 && u8 == 255);
  CHECK(ub_str_to_u8("256", &u8) == -ERANGE && u8 == 255);
  CHECK(ub_str_to_u16("0xffff", &u16) == 0 && u16 == 0xffff);
  CHECK(ub_str_to_u16("65536", &u16) == -ERANGE && u16 == 0xffff);
  CHECK(ub_str_to_u32("4294967295", &u32) == 0 && u32 == UINT32_MAX);
  CHECK(ub_str_to_u32("4294967296", &u32) == -ERANGE);
  CHECK(ub_str_to_u64("18446744073709551615", &u64) == 0 && u64 == UINT64_MAX);
  CHECK(ub_str_to_u64("18446744073709551616", &u64) == -EFAULT && u64 == UINT64_MAX);
  CHECK(ub_str_to_u32("017", &u32) == 0 && u32 == 15);
  CHECK(ub_str_to_int("-2147483648", &integer) == 0 && integer == INT32_MIN);
  CHECK(ub_str_to_int("2147483648", &integer) == -ERANGE && integer == INT32_MIN);
  CHECK(ub_str_to_int("99999999999999999999", &integer) == -EFAULT);
}

static void texts_that_are_no_numbers(void) {
  const char* const wrong[] = {"", "x", "1x", "0x", "1 "};
  uint32_t u32 = 7;
  uint64_t u64 = 7;
  int integer = 7;
  for (size_t i = 0; i < ARRAY_SIZE(wrong); ++i) {
    CHECK(ub_str_to_u32(wrong[i], &u32) == -ENOEXEC && u32 == 7);
    CHECK(ub_str_to_int(wrong[i], &integer) == -ENOEXEC && integer == 7);
  }
  CHECK(ub_str_to_u64("-1", &u64) == -EINVAL && u64 == 7);
  CHECK(ub_str_to_u64(NULL, &u64) == -EINVAL && ub_str_to_int(NULL, &integer) == -EINVAL);
}

static void truths(void) {
  bool value = false;
  CHECK(ub_str_to_bool("true", &value) == 0 && value);
  CHECK(ub_str_to_bool("", &value) == -EINVAL && ub_str_to_bool("True", &value) == -EINVAL);
  CHECK(ub_str_to_bool(NULL, &value) == -EINVAL && value);
  CHECK(ub_str_to_bool("false", &value) == 0 && !value);
}

// ---- bitmaps

static void bitmaps(void) {
  enum { size = 200 };
  const unsigned int set[] = {0, 1, 63, 64, 127, 128, 199};
  unsigned long map[BITS_TO_LONGS(size)];
  memset(map, 0xff, sizeof map);
  bitmap_zero(size, map);
  CHECK(ub_find_first_bit(map, size) == size && ub_find_first_bit(map, 0) == 0);
  for (size_t i = 0; i < ARRAY_SIZE(set); ++i) set_bit(set[i], map);
  size_t found = 0;
  unsigned long at;
  for_each_set_bit(at, map, size) {
    REQUIRE(found < ARRAY_SIZE(set));
    CHECK(at == set[found++] && test_bit((unsigned int)at, map));
  }
  CHECK(found == ARRAY_SIZE(set));
  CHECK(ub_find_next_bit(map, size, 129) == 199 && ub_find_next_bit(map, 199, 129) == 199);
  CHECK(ub_find_next_bit(map, 150, 129) == 150 && ub_find_next_bit(map, size, 200) == size);
  clear_bit(0, map);
  CHECK(!test_bit(0, map) && ub_find_first_bit(map, size) == 1);
}

// ---- memory and the counter

static void huge_pages(void) {
  const size_t bytes = 2 << 20;
  CHECK(ub_hugemalloc(0, UB_HUGE_PAGE_SIZE_2MB, NULL) == NULL);
  CHECK(ub_hugefree(NULL, bytes) == -EINVAL);
  CHECK(ub_hugemalloc(bytes, UB_HUGE_PAGE_SIZE_1GB, NULL) == NULL);  // not a multiple
  char* const memory = ub_hugemalloc(bytes, UB_HUGE_PAGE_SIZE_2MB, NULL);
  if (memory == NULL) {
    printf("no huge pages here\n");
    return;
  }
  memory[bytes - 1] = 1;
  CHECK(memory[0] == 0 && ub_hugefree(memory, bytes) == 0);
}

static void counter(void) {
  const double ticks_per_us = get_cpu_mhz(true);
  CHECK(ticks_per_us > 10 && ticks_per_us < 20000);
  const uint64_t begin = get_cycles();
  usleep(20 * 1000);
  ub_smp_mb();
  CHECK((double)(get_cycles() - begin) / ticks_per_us > 19000);
}

// ---- libtpsa

static void paths(void) {
  const uvs_eid_t from = {.in4 = {.prefix = 0xffff0000, .addr = 0x0100007f}};
  const uvs_eid_t to = {.in4 = {.prefix = 0xffff0000, .addr = 0x0200007f}};
  const uvs_eid_t none = {{0}};
  uvs_path_set_t set;
  memset(&set, 0xff, sizeof set);
  REQUIRE(uvs_get_path_set(&from, &to, UVS_CTP, true, &set) == 0);
  CHECK(set.path_count == 1 && set.chip_count == 1 && set.die_count == 1);
  CHECK(set.topo_type == UVS_TOPO_TYPE_FULLMESH_1D);
  CHECK(memcmp(&set.paths[0].src_eid, &from, sizeof from) == 0);
  CHECK(memcmp(&set.paths[0].dst_eid, &to, sizeof to) == 0);
  CHECK(uvs_get_path_set(&from, &to, (enum uvs_tp_type)3, true, &set) == -EINVAL);
  CHECK(uvs_get_path_set(&none, &to, UVS_RTP, true, &set) == -EINVAL);
  CHECK(uvs_get_path_set(&from, NULL, UVS_RTP, true, &set) == -EINVAL);
  CHECK(uvs_get_path_set(&from, &to, UVS_RTP, true, NULL) == -EINVAL);
}

// ---- the log

static char last[256];
static int last_line;

static void keep(int level, const char* file, const char* function, int line, char* message) {
  CHECK(strcmp(file, "unknown") == 0);
  CHECK(level == URMA_VLOG_LEVEL_WARNING && strcmp(function, "here") == 0);
  last_line = line;
  snprintf(last, sizeof last, "%s", message);
}

static void logs(void) {
  const urma_vlog_level_t before = urma_log_get_level();
  urma_log_set_level(URMA_VLOG_LEVEL_WARNING);
  CHECK(!urma_log_drop(URMA_VLOG_LEVEL_WARNING) && urma_log_drop(URMA_VLOG_LEVEL_INFO));
  CHECK(urma_register_loc_log_func(keep) == URMA_SUCCESS);
  urma_log("here", 42, URMA_VLOG_LEVEL_INFO, "unseen");
  CHECK(last[0] == 0);
  urma_log("here", 42, URMA_VLOG_LEVEL_WARNING, "%d of %s", 7, "them");
  CHECK(strcmp(last, "7 of them\n") == 0 && last_line == 42);
  CHECK(urma_unregister_log_func() == URMA_SUCCESS);
  urma_log_set_level(before);
}

// ---- loading

// UMQ looks up these names, and does not start if one is missing.
static const char* const looked_up[] = {"urma_init",
                                        "urma_uninit",
                                        "urma_get_device_list",
                                        "urma_free_device_list",
                                        "urma_get_eid_list",
                                        "urma_free_eid_list",
                                        "urma_query_device",
                                        "urma_create_context",
                                        "urma_delete_context",
                                        "urma_create_jfc",
                                        "urma_delete_jfc",
                                        "urma_rearm_jfc",
                                        "urma_poll_jfc",
                                        "urma_wait_jfc",
                                        "urma_ack_jfc",
                                        "urma_create_jfce",
                                        "urma_delete_jfce",
                                        "urma_create_jfr",
                                        "urma_delete_jfr",
                                        "urma_modify_jfr",
                                        "urma_create_jetty",
                                        "urma_delete_jetty",
                                        "urma_modify_jetty",
                                        "urma_bind_jetty",
                                        "urma_unbind_jetty",
                                        "urma_import_jetty",
                                        "urma_unimport_jetty",
                                        "urma_flush_jetty",
                                        "urma_post_jetty_send_wr",
                                        "urma_post_jetty_recv_wr",
                                        "urma_post_jfr_wr",
                                        "urma_get_rjetty",
                                        "urma_put_rjetty",
                                        "urma_register_seg",
                                        "urma_unregister_seg",
                                        "urma_import_seg",
                                        "urma_unimport_seg",
                                        "urma_get_async_event",
                                        "urma_ack_async_event",
                                        "urma_log_set_level",
                                        "urma_register_log_func",
                                        "urma_register_loc_log_func",
                                        "urma_unregister_log_func",
                                        "urma_user_ctl",
                                        "urma_str_to_eid",
                                        "urma_start_perf",
                                        "urma_stop_perf",
                                        "urma_get_perf_info"};

static void loading(const char* urma, const char* tpsa) {
  void* const first = dlopen(urma, RTLD_LAZY | RTLD_LOCAL);
  void* const second = dlopen(tpsa, RTLD_LAZY | RTLD_LOCAL);
  REQUIRE(first != NULL && second != NULL);
  for (size_t i = 0; i < ARRAY_SIZE(looked_up); ++i) {
    const bool found = dlsym(first, looked_up[i]) != NULL;
    if (!found) fprintf(stderr, "%s is missing\n", looked_up[i]);
    CHECK(found);
  }
  CHECK(dlsym(second, "uvs_get_path_set") != NULL);
  CHECK(dlclose(first) == 0 && dlclose(second) == 0);
}

int main(int count, char** arguments) {
  REQUIRE(count == 3);
  numbers();
  texts_that_are_no_numbers();
  truths();
  bitmaps();
  huge_pages();
  counter();
  paths();
  logs();
  loading(arguments[1], arguments[2]);
  return failures != 0;
}
