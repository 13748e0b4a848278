// SPDX-License-Identifier: Apache-2.0
// Imports and bindings whose results a notifier tells.
#include <errno.h>
#include <poll.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

static bool is_readable(int fd) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

static urma_target_jetty_t* import_again(struct ends* ends, urma_notifier_t* notifier) {
  urma_rjetty_t* described = NULL;
  uint32_t bytes = 0;
  REQUIRE(urma_get_rjetty(ends->b.jetty, &described, &bytes) == URMA_SUCCESS);
  urma_target_jetty_t* const target =
      urma_import_jetty_async(notifier, described, &secret, 77, 1000);
  REQUIRE(target != NULL);
  urma_put_rjetty(described);
  return target;
}

int main(void) {
  name_devices();
  count_reasons();
  struct ends ends = make_ends(devices[0], URMA_TM_RC);
  struct end* const a = &ends.a;
  urma_notifier_t* const notifier = urma_create_notifier(a->ctx);
  REQUIRE(notifier != NULL);
  urma_notify_t results[4];
  CHECK(!is_readable(notifier->fd));
  CHECK(urma_wait_notify(notifier, 4, results, 0) == 0);

  urma_target_jetty_t* const target = import_again(&ends, notifier);
  CHECK(urma_bind_jetty_async(notifier, a->jetty, target, 78, 1000) == URMA_SUCCESS);
  CHECK(is_readable(notifier->fd));
  CHECK(urma_wait_notify(notifier, 0, NULL, 0) == 0);
  CHECK(urma_wait_notify(notifier, 1, results, 1000) == 1);
  CHECK(results[0].type == URMA_IMPORT_JETTY_NOTIFY && results[0].status == URMA_SUCCESS);
  CHECK(results[0].user_ctx == 77 && results[0].tjetty == target);
  CHECK(is_readable(notifier->fd));
  CHECK(urma_wait_notify(notifier, 4, results, 1000) == 1);
  CHECK(results[0].type == URMA_BIND_JETTY_NOTIFY && results[0].status == URMA_SUCCESS);
  CHECK(results[0].user_ctx == 78 && results[0].jetty == a->jetty);
  CHECK(!is_readable(notifier->fd));
  CHECK(urma_ack_notify(a->ctx, 1, results) == URMA_SUCCESS);
  CHECK(urma_ack_notify(a->ctx, 0, NULL) == URMA_SUCCESS);

  CHECK(a->jetty->remote_jetty == target);
  CHECK(urma_unbind_jetty_async(a->jetty) == URMA_SUCCESS);
  CHECK(urma_unimport_jetty_async(target) == URMA_SUCCESS);
  CHECK(urma_delete_notifier(notifier) == URMA_SUCCESS);
  REFUSES(-1, urma_wait_notify(notifier, 1, results, 0));
  end_ends(&ends);
  remove_devices();
  return failures != 0;
}
