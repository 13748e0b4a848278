// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UVS_EID_SIZE 16

// An EID in the order of the network, as urma_eid_t.
typedef union uvs_eid {
  uint8_t raw[UVS_EID_SIZE];
  struct {
    uint64_t resv;
    uint32_t prefix;
    uint32_t addr;
  } in4;
  struct {
    uint64_t subnet_prefix;
    uint64_t interface_id;
  } in6;
} uvs_eid_t;

#ifdef __cplusplus
}
#endif
