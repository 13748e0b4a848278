// SPDX-License-Identifier: Apache-2.0
// What urma_admin shows of queues with different priorities.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

enum { text_bytes = 1 << 20 };

// Returns what `urma_admin` prints.
static char* printed(const char* admin, const char* words) {
  static char text[text_bytes];
  char command[4096];
  snprintf(command, sizeof command, "'%s' show %s", admin, words);
  FILE* const output = popen(command, "r");
  REQUIRE(output != NULL);
  const size_t bytes = fread(text, 1, sizeof text - 1, output);
  CHECK(pclose(output) == 0);
  text[bytes] = 0;
  return text;
}

// Returns what the JSON output says of the JFS, or an empty text if it is not shown.
static const char* shown(const char* admin, uint32_t id) {
  char word[32];
  snprintf(word, sizeof word, "\"id\": %" PRIu32 ",", id);
  char* const begin = strstr(printed(admin, "--json"), word);
  if (begin == NULL) return "";
  char* const end = strchr(begin, '}');
  if (end != NULL) *end = 0;
  return begin;
}

static bool shows(const char* text, uint8_t priority) {
  char weight[32];
  snprintf(weight, sizeof weight, "\"weight\": %d\n", priority % 8 + 1);
  return strstr(text, "\"kind\": \"jfs\"") != NULL && strstr(text, weight) != NULL &&
         strstr(text, priority < 8 ? "\"urgent\": false" : "\"urgent\": true") != NULL;
}

static void a_priority(const struct end* end, const char* admin, uint8_t priority) {
  urma_jfs_cfg_t cfg = {.depth = 4,
                        .trans_mode = URMA_TM_RM,
                        .priority = priority,
                        .max_sge = 1,
                        .err_timeout = 17,
                        .jfc = end->jfc};
  urma_jfs_t* const jfs = urma_create_jfs(end->ctx, &cfg);
  REQUIRE(jfs != NULL);
  // Pages are late, and the JFS before this one had the same number.
  bool found = false;
  const double until = now_ms() + 10000;
  while (!found && now_ms() < until) found = shows(shown(admin, jfs->jfs_id.id), priority);
  CHECK(found);
  char words[64];
  snprintf(words, sizeof words, "dev %s jfs %" PRIu32, devices[0], jfs->jfs_id.id);
  char line[32];
  snprintf(line, sizeof line, "pri                 : %d\n", priority);
  CHECK(strstr(printed(admin, words), line) != NULL);
  CHECK(urma_delete_jfs(jfs) == URMA_SUCCESS);
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  name_devices();
  struct end end = make_end(devices[0], URMA_TM_RM);
  a_priority(&end, argv[1], 0);
  a_priority(&end, argv[1], 7);
  a_priority(&end, argv[1], 8);
  a_priority(&end, argv[1], 15);
  end_end(&end);
  remove_devices();
  return failures != 0;
}
