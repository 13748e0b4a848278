// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_ping/serving.h"

#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>
#include <vector>

#include "apps/capi/devices.h"
#include "apps/capi/eid.h"
#include "apps/capi/log.h"
#include "apps/capi/objects.h"
#include "apps/common/interrupt.h"
#include "apps/common/output.h"

namespace urma::apps::ping {
namespace {

using Contexts = std::vector<capi::OwnContext>;

// Opens a device at one of its EIDs, where the context answers as long as it exists.
void add(const capi::ListedDevice& device, const urma_eid_info_t& eid, Contexts& out) {
  out.emplace_back(urma_create_context(device.device, eid.eid_index));
  if (out.back() == nullptr) {
    out.pop_back();
    print_error(printable("urma_ping: " + capi::last_error()));
    return;
  }
}

}  // namespace

Exit serve(const Options& options) {
  setenv("URMA_PING", "1", 1);
  Contexts contexts;
  for (const capi::ListedDevice& device : capi::list_devices()) {
    if (!device.error.empty()) print_error(printable("urma_ping: " + device.error));
    for (const urma_eid_info_t& eid : device.eids) {
      if (!options.eid || capi::same(*options.eid, eid.eid)) add(device, eid, contexts);
    }
  }
  if (contexts.empty()) {
    throw Failure(Exit::error, options.eid
                                   ? "no device of this host answers at that EID. Fix: choose one "
                                     "of those that urma_admin show lists"
                                   : "no device of this host answers. Fix: see the errors above");
  }
  for (const capi::OwnContext& context : contexts) {
    print(fmt::format("answers at {} ({})\n", capi::to_text(context->eid), context->dev->name));
  }
  pollfd stop{interrupt_descriptor(), POLLIN, 0};
  while (!interrupted()) ::poll(&stop, 1, -1);
  return Exit::interrupted;
}

}  // namespace urma::apps::ping
