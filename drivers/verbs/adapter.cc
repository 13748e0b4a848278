// SPDX-License-Identifier: Apache-2.0
#include "drivers/verbs/adapter.h"

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/failed.h"
#include "base/file_system.h"

namespace urma::drivers::verbs {
namespace {

// GIDs appear a tenth of a second after the address of the interface.
constexpr int gid_looks = 50;
constexpr int between_gid_looks_ms = 10;
// The vendor of rxe, which has no number of its own.
constexpr uint32_t software_vendor = 0xffffff;

constexpr uint8_t hop_limit = 64;  // routers that a datagram may pass

struct DeviceList {
  DeviceList() : devices(ibv_get_device_list(&count)) {
    if (devices == nullptr) count = 0;
  }
  DeviceList(const DeviceList&) = delete;
  ~DeviceList() {
    if (devices != nullptr) ibv_free_device_list(devices);
  }
  std::span<ibv_device* const> all() const { return {devices, static_cast<size_t>(count)}; }

  int count = 0;
  ibv_device** devices;
};

std::string names_of(std::span<ibv_device* const> devices) {
  std::string out;
  for (ibv_device* device : devices) {
    out += (out.empty() ? "" : ", ") + std::string(ibv_get_device_name(device));
  }
  return out;
}

Result<ibv_port_attr> query_port(ibv_context& context, const std::string& name, uint8_t port) {
  ibv_device_attr device{};
  ibv_port_attr attributes{};
  if (ibv_query_device(&context, &device) == 0 && port > device.phys_port_cnt) {
    return failed(Status::invalid_argument, "verbs: ", name, " has no port ", unsigned{port})
        .fix("port=1 to port=", unsigned{device.phys_port_cnt});
  }
  if (const int why = ibv_query_port(&context, port, &attributes); why != 0) {
    return failed(Status::unsupported, "verbs: ", name, ", port ", unsigned{port},
                  ", cannot be queried: ", std::strerror(why))
        .fix("see ibv_devinfo -d ", name);
  }
  return attributes;
}

// Returns whether the device has a port with this number, and its link is up.
bool is_active(ibv_device& device, uint8_t port) {
  const Context context(ibv_open_device(&device));
  ibv_port_attr attributes{};
  return context && ibv_query_port(context.get(), port, &attributes) == 0 &&
         attributes.state == IBV_PORT_ACTIVE;
}

Result<ibv_device*> find_device(std::span<ibv_device* const> devices, const Settings& settings) {
  if (devices.empty()) {
    return failed(Status::unsupported, "verbs: this machine has no RDMA adapter")
        .fix(
            "load the driver of yours, or make a software one: as root, rdma link add rxe0 type "
            "rxe netdev eth0");
  }
  if (settings.adapter.empty()) {
    const auto active = std::ranges::find_if(
        devices, [&](ibv_device* device) { return is_active(*device, settings.port); });
    return active != devices.end() ? *active : devices.front();
  }
  const auto named = std::ranges::find_if(
      devices, [&](ibv_device* device) { return settings.adapter == ibv_get_device_name(device); });
  if (named != devices.end()) return *named;
  return failed(Status::invalid_argument, "verbs: there is no RDMA adapter \"", settings.adapter,
                "\"; there are: ", names_of(devices))
      .fix("name one of these, or leave the name out");
}

Result<Context> open_device(ibv_device& device) {
  const std::string name = ibv_get_device_name(&device);
  if (device.transport_type == IBV_TRANSPORT_IWARP) {
    return failed(Status::unsupported, "verbs: ", name,
                  " is an iWARP adapter, which carries no datagrams")
        .fix("use udp: on its network interface");
  }
  Context context(ibv_open_device(&device));
  if (context) return context;
  const int why = errno;
  const bool denied = why == EACCES || why == EPERM;
  return failed(denied ? Status::permission_denied : Status::unsupported, "verbs: ", name,
                " cannot be opened: ", std::strerror(why))
      .fix(denied ? "give this user access to /dev/infiniband/uverbs* (on Debian: group rdma)"
                  : "see rdma link; load the module ib_uverbs");
}

uint64_t line_rate(const ibv_port_attr& port) {
  // 100 Mb/s for each lane, by the bits of active_speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR.
  constexpr uint64_t of_lane[] = {25, 50, 100, 103, 141, 258, 531, 1063};
  const auto code = static_cast<unsigned>(port.active_speed);
  if (code == 0 || (code & (code - 1)) != 0) return 0;
  const auto speed = static_cast<unsigned>(std::countr_zero(code));
  const unsigned lanes = port.active_width == 16  ? 2
                         : port.active_width == 8 ? 12
                         : port.active_width == 1 ? 1
                                                  : port.active_width * 2u;
  return of_lane[speed] * lanes * 100'000'000 / 8;
}

std::vector<Gid> gids_of(ibv_context& context, uint8_t port) {
  constexpr size_t most = 256;
  std::vector<ibv_gid_entry> entries(most);
  const ssize_t count = ibv_query_gid_table(&context, entries.data(), most, 0);
  std::vector<Gid> out;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<size_t>(i)];
    if (entry.port_num != port) continue;
    Gid gid{.index = entry.gid_index, .interface = entry.ndev_ifindex};
    gid.kind = entry.gid_type == IBV_GID_TYPE_IB        ? Gid::Kind::infiniband
               : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? Gid::Kind::roce1
                                                        : Gid::Kind::roce2;
    std::memcpy(gid.address.bytes.data(), entry.gid.raw, sizeof entry.gid.raw);
    out.push_back(gid);
  }
  return out;
}

Result<Gid> find_gid(ibv_context& context, const Settings& settings, const std::string& place) {
  Result<Gid> chosen = choose_gid(gids_of(context, settings.port), settings.gid, place);
  for (int look = 0; look < gid_looks && !chosen; ++look) {
    poll(nullptr, 0, between_gid_looks_ms);
    chosen = choose_gid(gids_of(context, settings.port), settings.gid, place);
  }
  return chosen;
}

uint8_t reads_at_once(int most) { return static_cast<uint8_t>(std::clamp(most, 0, 16)); }

}  // namespace

Result<Adapter> Adapter::open(const Settings& settings) {
  const DeviceList list;
  const Result<ibv_device*> device = find_device(list.all(), settings);
  if (!device) return device.error();
  Result<Context> context = open_device(**device);
  if (!context) return context.error();
  Facts facts{.name = ibv_get_device_name(*device), .port = settings.port};
  const Result<ibv_port_attr> port = query_port(**context, facts.name, settings.port);
  if (!port) return port.error();
  const std::string place = facts.name + ", port " + std::to_string(facts.port);
  const Result<Gid> gid = find_gid(**context, settings, place);
  if (!gid) return gid.error();
  ibv_device_attr attributes{};
  ibv_query_device(context->get(), &attributes);
  facts.gid = *gid;
  facts.mtu = 128u << port->active_mtu;
  facts.most_pieces = static_cast<unsigned>(std::max(attributes.max_sge, 1));
  facts.lid = port->lid;
  facts.reads_out = reads_at_once(attributes.max_qp_init_rd_atom);
  facts.reads_in = reads_at_once(attributes.max_qp_rd_atom);
  facts.active = port->state == IBV_PORT_ACTIVE;
  facts.software = attributes.vendor_id == software_vendor;
  facts.line_bytes_per_second = facts.software ? 0 : line_rate(*port);
  Domain domain(ibv_alloc_pd(context->get()));
  if (!domain) {
    return failed(Status::no_resources, "verbs: ", place,
                  " gives no protection domain: ", std::strerror(errno))
        .fix("end other programs that use the adapter");
  }
  return Adapter(std::move(*context), std::move(domain), std::move(facts));
}

Memory Adapter::register_memory(std::span<const std::byte> memory, int access) const {
  return Memory(ibv_reg_mr(domain_.get(), const_cast<std::byte*>(memory.data()), memory.size(),
                           static_cast<unsigned>(access)));
}

ibv_ah_attr Adapter::way_to(const Eid& gid, ibv_ah_attr attributes) const {
  attributes.is_global = 1;
  attributes.port_num = facts_.port;
  std::memcpy(attributes.grh.dgid.raw, gid.bytes.data(), sizeof attributes.grh.dgid.raw);
  attributes.grh.sgid_index = static_cast<uint8_t>(facts_.gid.index);
  attributes.grh.hop_limit = hop_limit;
  return attributes;
}

AddressHandle Adapter::make_handle(const Eid& gid, ibv_ah_attr attributes) const {
  attributes = way_to(gid, attributes);
  return AddressHandle(ibv_create_ah(domain_.get(), &attributes));
}

Error Adapter::cannot_register(size_t bytes, int why) const {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string need = size_for_people(bytes, Rounded::up);
  if (why != ENOMEM || limit.rlim_cur == RLIM_INFINITY) {
    return failed(Status::no_resources, "verbs: ", place(), " registers no memory (", need,
                  "): ", std::strerror(why))
        .fix("end other programs that use the adapter");
  }
  return failed(Status::no_resources, "verbs: the adapter locks ", need,
                " of memory, and this process may lock, in all, only ",
                size_for_people(limit.rlim_cur, Rounded::down))
      .fix("ulimit -l unlimited, or in /etc/security/limits.conf: * - memlock unlimited");
}

}  // namespace urma::drivers::verbs
