// SPDX-License-Identifier: Apache-2.0
#include "apps/capi/devices.h"

#include "apps/capi/log.h"

namespace urma::apps::capi {

std::vector<ListedDevice> list_devices() {
  int count = 0;
  urma_device_t** const all = urma_get_device_list(&count);
  if (all == nullptr) throw failed("listing the devices");
  std::vector<ListedDevice> out;
  for (int i = 0; i < count; ++i) {
    ListedDevice one{.device = all[i], .name = all[i]->name, .eids = {}, .error = {}};
    uint32_t eids = 0;
    if (urma_eid_info_t* const list = urma_get_eid_list(all[i], &eids)) {
      one.eids.assign(list, list + eids);
      urma_free_eid_list(list);
    } else {
      one.error = last_error();
    }
    out.push_back(std::move(one));
  }
  urma_free_device_list(all);
  return out;
}

}  // namespace urma::apps::capi
