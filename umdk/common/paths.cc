// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "umdk/include/ub/umdk/urma/uvs_api.h"

namespace {

bool is_valid(const uvs_eid_t* eid) {
  return eid != nullptr && std::any_of(std::begin(eid->raw), std::end(eid->raw),
                                       [](uint8_t byte) { return byte != 0; });
}

union uvs_port_id own_port() {
  union uvs_port_id port {};
  port.port_idx = UINT8_MAX;
  return port;
}

}  // namespace

extern "C" int uvs_get_path_set(const uvs_eid_t* src_bonding_eid, const uvs_eid_t* dst_bonding_eid,
                                enum uvs_tp_type tp_type, bool, uvs_path_set_t* uvs_path_set) {
  const bool exists = tp_type == UVS_RTP || tp_type == UVS_CTP || tp_type == UVS_UTP;
  if (!is_valid(src_bonding_eid) || !is_valid(dst_bonding_eid) || uvs_path_set == nullptr ||
      !exists) {
    return -EINVAL;
  }
  *uvs_path_set = {};
  uvs_path_set->topo_type = UVS_TOPO_TYPE_FULLMESH_1D;
  uvs_path_set->chip_count = uvs_path_set->die_count = uvs_path_set->path_count = 1;
  uvs_path_set->paths[0] = {own_port(), own_port(), *src_bonding_eid, *dst_bonding_eid};
  return 0;
}
