#include "apps/urma_perf/limit.h"

#include "apps/urma_perf/shm_limit.h"
#include "apps/urma_perf/udp_limit.h"

namespace urma::apps::perf {

LimitKind limit_kind(std::string_view device) {
  for (size_t end = device.find_first_of("(:"); end != device.npos && device[end] == '(';) {
    const size_t rest = device.find("):", end);
    if (rest == device.npos) break;
    device.remove_prefix(rest + 2);
    end = device.find_first_of("(:");
  }
  return device.substr(0, device.find(':')) == "cxl" ? LimitKind::shared_memory
                                                     : LimitKind::sockets;
}

std::unique_ptr<Limit> make_limit(LimitKind kind, Side& side, Place place, const Eid& address) {
  if (kind == LimitKind::shared_memory) return std::make_unique<ShmLimit>(side, place);
  return std::make_unique<UdpLimit>(side, place, address);
}

}  // namespace urma::apps::perf
