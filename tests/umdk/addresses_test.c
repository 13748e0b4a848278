// SPDX-License-Identifier: Apache-2.0
// Addresses as text, and the calls that configure the hardware of UB, which there is none of.
#include <string.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"
#include "tests/umdk/refusals.h"

static void not_supported(struct end* a) {
  urma_user_ctl_in_t in = {0};
  urma_user_ctl_out_t out = {0};
  urma_tp_attr_value_t value = {0};
  uint8_t mac[URMA_MAC_BYTES];
  REFUSES(EPERM, urma_user_ctl(a->ctx, &in, &out));
  REFUSES(EINVAL, urma_user_ctl(a->ctx, NULL, &out));
  REFUSES(-EPERM, urma_get_tpn(a->jetty));
  REFUSES(EPERM, urma_set_tp_attr(a->ctx, 1, 1, 1, &value));
  REFUSES(EPERM, urma_get_smac(a->ctx, mac));
  REFUSES(EINVAL, urma_set_context_opt(a->ctx, URMA_OPT_AGGR_MODE, mac, 1));
}

static void addresses(void) {
  urma_eid_t eid;
  char text[URMA_EID_STR_LEN + 1];
  CHECK(urma_str_to_eid(NULL, &eid) == -EINVAL);
  CHECK(urma_str_to_eid("1.2.3.4", NULL) == -EINVAL);
  static const char* const wrong[] = {"",   "x",  "1.2.3", "1.2.3.4.5",
                                      "0x", "-1", "::g",   "4294967296"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    CHECK(urma_str_to_eid(wrong[i], &eid) == -EINVAL);
  }
  static const char* const same[] = {"1.2.3.4", "0x01020304", "16909060", "::ffff:1.2.3.4"};
  for (size_t i = 0; i < sizeof same / sizeof same[0]; ++i) {
    CHECK(urma_str_to_eid(same[i], &eid) == 0);
    snprintf(text, sizeof text, EID_FMT, EID_ARGS(eid));
    CHECK(strcmp(text, "0000:0000:0000:0000:0000:ffff:0102:0304") == 0);
  }
}

static void one_device(const char* device) {
  struct ends ends = make_ends(device, URMA_TM_RM);
  not_supported(&ends.a);
  end_ends(&ends);
}

int main(void) {
  name_devices();
  count_reasons();
  addresses();
  for (int i = 0; i < device_count; ++i) one_device(devices[i]);
  remove_devices();
  return failures != 0;
}
