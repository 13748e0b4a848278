// SPDX-License-Identifier: Apache-2.0
#pragma once

// The paths between two devices, which libtpsa knows.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "uvs_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define UVS_MAX_ROUTES 16

typedef enum uvs_tp_type { UVS_RTP, UVS_CTP, UVS_UTP } uvs_tp_type_t;

typedef struct uvs_node_id {
  uint32_t super_node_id;
  uint32_t node_id;
} uvs_node_id_t;

union uvs_port_id {
  __extension__ struct {
    uint8_t chip_id;
    uint8_t die_id;
    uint8_t port_idx;  // 255: the port of a device's own EID
    uint8_t reserved;
  };
  uint64_t value;
};

enum uvs_topo_type_t { UVS_TOPO_TYPE_FULLMESH_1D, UVS_TOPO_TYPE_CLOS };

typedef struct uvs_path {
  union uvs_port_id src_port;
  union uvs_port_id dst_port;
  uvs_eid_t src_eid;
  uvs_eid_t dst_eid;
} uvs_path_t;

typedef struct uvs_path_set {
  enum uvs_topo_type_t topo_type;
  uvs_node_id_t src_node;
  uvs_node_id_t dst_node;
  uint32_t chip_count;
  uint32_t die_count;
  uint32_t path_count;
  uvs_path_t paths[UVS_MAX_ROUTES];
} uvs_path_set_t;

// Writes the paths between two devices: one, from the one EID to the other, because liburma's
// devices choose among paths themselves (`paths():`). Returns 0, or -EINVAL: a pointer is null, an
// EID is 0, or the type does not exist.
int uvs_get_path_set(const uvs_eid_t* src_bonding_eid, const uvs_eid_t* dst_bonding_eid,
                     enum uvs_tp_type tp_type, bool iodie_level, uvs_path_set_t* uvs_path_set);

#ifdef __cplusplus
}
#endif
