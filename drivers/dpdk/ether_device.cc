// SPDX-License-Identifier: Apache-2.0
#include "drivers/dpdk/ether_device.h"

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/region.h"
#include "base/signals_blocked.h"
#include "drivers/dpdk/eal.h"
#include "drivers/dpdk/eal_log.h"
#include "drivers/dpdk/interrupt_thread.h"
#include "drivers/dpdk/ring_pairs.h"

namespace urma::drivers::dpdk {
namespace {

constexpr uint16_t descriptors = 1024;
// Buffers that layers above hold: received packets, and frames that are lent or wait for a MAC
// address.
constexpr uint32_t held_above = 1024;
constexpr uint32_t cached_by_threads = 4 * 384;
constexpr Duration between_looks = std::chrono::milliseconds(20);
constexpr Duration between_restarts = std::chrono::milliseconds(100);
constexpr Duration most_stuck = std::chrono::milliseconds(10);
constexpr uint32_t usual_ip_mtu = 1500;

// A unicast address that is assigned locally.
Mac draw_mac() {
  SecureEntropy entropy;
  Mac mac;
  for (std::byte& byte : mac) byte = static_cast<std::byte>(entropy.next32());
  mac[0] = (mac[0] & std::byte{0xfc}) | std::byte{2};
  return mac;
}

uint32_t room_for(const Settings& settings, const Pmd& pmd) {
  constexpr uint32_t usual = 2048;
  constexpr uint32_t outer = 64;  // Ethernet, two tags, the CRC, and what ports put in front
  return std::max({usual, settings.ip_mtu + outer, slot_bytes(settings, pmd)});
}

// Returns the bytes per second of so many Mb/s; 0 if the speed is unknown.
uint64_t rate_of_speed(uint32_t megabits) {
  constexpr uint64_t bytes_of_megabit = 125'000;
  return megabits == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : megabits * bytes_of_megabit;
}

uint64_t highest_rate(uint32_t capabilities) {
  constexpr uint32_t speeds[] = {200'000, 100'000, 56'000, 50'000, 40'000, 25'000,
                                 20'000,  10'000,  5'000,  2'500,  1'000};
  for (const uint32_t speed : speeds) {
    const bool can = (capabilities & rte_eth_speed_bitflag(speed, RTE_ETH_LINK_FULL_DUPLEX)) != 0;
    if (can) return rate_of_speed(speed);
  }
  return 0;
}

Error failed(const Settings& settings, const std::string& what, int code) {
  const std::string log = EalLog::of_this_process().quote();
  const int why = code < 0 ? -code : code;
  Status status = Status::io_error;
  if (why == EEXIST || why == EBUSY) status = Status::address_in_use;
  if (why == EACCES) status = Status::permission_denied;
  if (why == ENODEV || why == EINVAL) status = Status::invalid_argument;
  const std::string cure = why == EEXIST
                               ? "another number in the port's name: this process has such a port"
                               : cure_for_port(settings, log);
  // Many functions of DPDK return -1 for any failure.
  const std::string named = why == 1 ? "" : std::string(" (") + rte_strerror(why) + ")";
  return {status, "dpdk: " + settings.port + ": " + what + ": " + log + named + ". Fix: " + cure};
}

}  // namespace

Result<std::unique_ptr<EtherDevice>> EtherDevice::open(const Settings& settings) {
  const SignalsBlocked signals;
  const NoSigpipe no_sigpipe;
  const Pmd& pmd = pmd_of(settings);
  const MbufPool::Shape shape{
      .count = settings.queues * uint32_t{descriptors} + held_above + cached_by_threads,
      .room = room_for(settings, pmd),
      .dense = pmd.dense};
  Result<MbufPool> receive = MbufPool::make(shape);
  if (!receive) return receive.error();
  Result<MbufPool> send = MbufPool::make(shape);
  if (!send) return send.error();
  std::unique_ptr<EtherDevice> device(
      new EtherDevice(settings, pmd, std::move(*receive), std::move(*send), draw_mac()));
  if (pmd.interrupts) {
    if (auto opened = device->interrupts_.open(); !opened) return opened.error();
  }
  if (auto done = device->make(); !done) return done.error();
  device->start();
  device->down_since_ = read_clock();
  device->up_ = device->link_is_up();
  device->facts_.peer_seen = device->up_;
  device->facts_.line_bytes_per_second = device->line_rate();
  return device;
}

EtherDevice::~EtherDevice() {
  const SignalsBlocked signals;
  const NoSigpipe no_sigpipe;
  remove();
}

// Adds the port to DPDK, and returns its number.
Result<uint16_t> EtherDevice::add_port() {
  const std::string pair(argument(settings_.arguments, "pair"));
  if (pmd_.name == "net_ring" && !pair.empty()) return open_ring_end(pair);
  const Result<std::string> arguments = port_arguments(settings_, pmd_, drawn_mac_);
  if (!arguments) return arguments.error();
  const std::string_view socket = own_socket(settings_, pmd_);
  if (!make_way_for_socket(socket) && pmd_.name == "net_vhost") {
    // net_vhost would fail, and then remove the socket, so that no process would reach its owner.
    return Error{Status::address_in_use,
                 "dpdk: " + settings_.port + ": another port or process listens at " +
                     std::string(socket) + ". Fix: " + cure_for_port(settings_, "")};
  }
  EalLog::of_this_process().clear();
  const char* const name = settings_.port.c_str();
  const int code = settings_.is_pci() ? rte_eal_hotplug_add("pci", name, arguments->c_str())
                                      : rte_vdev_init(name, arguments->c_str());
  if (code < 0) return failed(settings_, "DPDK cannot make this port", code);
  uint16_t port = 0;
  if (rte_eth_dev_get_port_by_name(name, &port) == 0) return port;
  return failed(settings_, "this is not an Ethernet port", ENODEV);
}

Result<void> EtherDevice::make() {
  const Result<uint16_t> port = add_port();
  if (!port) return port.error();
  port_ = *port;
  state_ = State::stopped;
  if (auto done = configure(); !done) {
    remove();
    return done;
  }
  extended_.watch(port_);
  return {};
}

Error EtherDevice::too_few_queues(unsigned pairs) const {
  const std::string_view key = pmd_.queues_argument;
  const bool given = !key.empty() && !argument(settings_.arguments, key).empty();
  return {Status::invalid_argument,
          "dpdk: " + settings_.port + ": this port has " + std::to_string(pairs) +
              " pairs of queues. Fix: " +
              (given ? "leave the argument " + std::string(key) + "= of the port out"
                     : "a smaller queues=")};
}

Result<void> EtherDevice::configure() {
  rte_eth_dev_info info{};
  if (const int code = rte_eth_dev_info_get(port_, &info); code != 0) {
    return failed(settings_, "no information", code);
  }
  const unsigned pairs = std::min(info.max_rx_queues, info.max_tx_queues);
  if (settings_.queues > pairs) return too_few_queues(pairs);
  rte_eth_conf conf{};
  facts_.sums_udp = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
  facts_.chains = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  facts_.most_buffers = facts_.chains ? info.tx_desc_lim.nb_mtu_seg_max : 1;
  if (facts_.sums_udp) conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  if (facts_.chains) conf.txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  conf.intr_conf.rxq = pmd_.interrupts ? 1 : 0;
  conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
  if (settings_.queues > 1 && info.flow_type_rss_offloads != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        info.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  }
  if (settings_.ip_mtu != usual_ip_mtu && !pmd_.any_mtu) {
    if (settings_.ip_mtu > info.max_mtu) {
      return Error{Status::invalid_argument, "dpdk: " + settings_.port + ": the MTU of this port " +
                                                 "is at most " + std::to_string(info.max_mtu) +
                                                 ". Fix: a smaller mtu="};
    }
    conf.rxmode.mtu = settings_.ip_mtu;
  }
  const uint16_t queues = settings_.queues;
  EalLog::of_this_process().clear();
  if (const int code = rte_eth_dev_configure(port_, queues, queues, &conf); code != 0) {
    return failed(settings_, "the port cannot be configured", code);
  }
  uint16_t receives = descriptors;
  uint16_t sends = descriptors;
  rte_eth_dev_adjust_nb_rx_tx_desc(port_, &receives, &sends);
  constexpr auto any_socket = static_cast<unsigned>(SOCKET_ID_ANY);
  for (uint16_t i = 0; i < queues; ++i) {
    int code = rte_eth_rx_queue_setup(port_, i, receives, any_socket, nullptr, receive_pool_.get());
    if (code == 0) code = rte_eth_tx_queue_setup(port_, i, sends, any_socket, nullptr);
    if (code != 0) return failed(settings_, "its queues cannot be made", code);
  }
  rte_ether_addr mac{};
  rte_eth_macaddr_get(port_, &mac);
  std::transform(mac.addr_bytes, mac.addr_bytes + facts_.mac.size(), facts_.mac.begin(),
                 [](uint8_t byte) { return std::byte{byte}; });
  if (facts_.mac == Mac{}) facts_.mac = drawn_mac_;
  facts_.driver = info.driver_name != nullptr ? info.driver_name : "";
  facts_.queues = queues;
  facts_.receive_descriptors = receives;
  facts_.send_descriptors = sends;
  return {};
}

// Calls the function while the interrupt thread does nothing with the connection of this port.
// Afterwards it has noticed the change at the other end, if that is in this process.
void EtherDevice::in_turn(const std::function<void()>& call) const {
  if (!pmd_.connects_by_interrupts) return call();
  on_interrupt_thread(call);
  await_events();
}

// Returns false if the port cannot start yet, as that of a memif client before its server.
bool EtherDevice::start() {
  bool started = false;
  in_turn([&] { started = rte_eth_dev_start(port_) == 0; });
  if (!started) return false;
  // Questions for the addresses of IPv6 are sent to groups. Virtual ports receive everything.
  rte_eth_allmulticast_enable(port_);
  interrupts_.watch(port_, facts_.queues);
  state_ = State::started;
  return true;
}

void EtherDevice::stop() {
  if (state_ != State::started) return;
  interrupts_.forget();
  in_turn([&] { rte_eth_dev_stop(port_); });
  state_ = State::stopped;
}

void EtherDevice::remove() {
  if (state_ == State::absent) return;
  extended_.forget();
  stop();
  state_ = State::absent;
  const std::string pair(argument(settings_.arguments, "pair"));
  char name[RTE_ETH_NAME_MAX_LEN] = {};
  rte_eth_dev_get_name_by_port(port_, name);
  in_turn([&] {
    close();
    settings_.is_pci() ? rte_eal_hotplug_remove("pci", settings_.port.c_str())
                       : rte_vdev_uninit(name);
  });
  if (pmd_.name == "net_ring" && !pair.empty()) close_ring_end(pair, port_);
}

// With interrupts, net_virtio_user closes the descriptors of its queues twice, and the second time
// their numbers may belong to other files. So the port is configured without them before.
void EtherDevice::close() {
  rte_eth_conf conf{};
  if (pmd_.name == "net_virtio_user" && rte_eth_dev_conf_get(port_, &conf) == 0) {
    conf.intr_conf.rxq = 0;
    rte_eth_dev_configure(port_, facts_.queues, facts_.queues, &conf);
  }
  rte_eth_dev_close(port_);
}

bool EtherDevice::link_is_up() const {
  rte_eth_link link{};
  return state_ == State::started && rte_eth_link_get_nowait(port_, &link) == 0 &&
         link.link_status == RTE_ETH_LINK_UP;
}

// The link of a NIC comes up seconds after its port was started.
uint64_t EtherDevice::line_rate() const {
  if (!pmd_.real_speed) return 0;
  rte_eth_link link{};
  const bool up = link_is_up() && rte_eth_link_get_nowait(port_, &link) == 0;
  if (up) return rate_of_speed(link.link_speed);
  rte_eth_dev_info info{};
  return rte_eth_dev_info_get(port_, &info) == 0 ? highest_rate(info.speed_capa) : 0;
}

bool EtherDevice::tend(Time now) {
  if (now < look_at_ && !interrupts_.take_change()) return false;
  look_at_ = now + between_looks;
  const bool was_up = up_;
  up_ = link_is_up();
  if (up_) return !was_up;
  if (was_up) down_since_ = now;
  if (pmd_.heals == Pmd::Heals::itself && state_ == State::started) return false;
  if (now - down_since_ < between_restarts) return false;
  down_since_ = now;
  restart(pmd_.heals == Pmd::Heals::reopen);
  return false;
}

void EtherDevice::restart(bool anew) {
  ++counts_.restarts;
  const SignalsBlocked signals;
  const NoSigpipe no_sigpipe;
  if (anew) {
    const std::lock_guard lock(making_);
    remove();
    if (!make()) return;
  }
  // DPDK does not allow a port to be read while it is stopped or started.
  extended_.forget();
  stop();
  start();
  extended_.watch(port_);
}

bool EtherDevice::complete() {
  bool asked = state_ == State::started;
  for (uint16_t i = 0; i < facts_.queues && asked; ++i) {
    asked = rte_eth_tx_done_cleanup(port_, i, 0) >= 0;
  }
  return asked;
}

void EtherDevice::take_back(bool anew) {
  if (pmd_.reads != Pmd::Reads::when_received) return restart(anew);
  drain_ring_end(std::string(argument(settings_.arguments, "pair")), port_);
}

bool EtherDevice::map_pages(std::span<const std::byte> pages) {
  if (pmd_.reads != Pmd::Reads::by_device) return true;  // the processor reads
  const std::lock_guard lock(making_);
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(port_, &info) != 0) return false;
  auto* const at = const_cast<std::byte*>(pages.data());
  const auto address = reinterpret_cast<uint64_t>(at);
  if (rte_extmem_register(at, pages.size(), nullptr, 0, page_bytes) != 0) return false;
  if (rte_dev_dma_map(info.device, at, address, pages.size()) == 0) return true;
  rte_extmem_unregister(at, pages.size());
  return false;
}

void EtherDevice::unmap_pages(std::span<const std::byte> pages) {
  if (pmd_.reads != Pmd::Reads::by_device) return;
  const std::lock_guard lock(making_);
  rte_eth_dev_info info{};
  auto* const at = const_cast<std::byte*>(pages.data());
  const auto address = reinterpret_cast<uint64_t>(at);
  if (rte_eth_dev_info_get(port_, &info) == 0) {
    rte_dev_dma_unmap(info.device, at, address, pages.size());
  }
  rte_extmem_unregister(at, pages.size());
}

size_t EtherDevice::receive(std::span<rte_mbuf*> out) {
  if (state_ != State::started) return 0;
  size_t got = 0;
  for (uint16_t i = 0; i < facts_.queues && got < out.size(); ++i) {
    queue_ = static_cast<uint16_t>(queue_ + 1 < facts_.queues ? queue_ + 1 : 0);
    got +=
        rte_eth_rx_burst(port_, queue_, out.data() + got, static_cast<uint16_t>(out.size() - got));
  }
  return got;
}

size_t EtherDevice::send(uint16_t queue, std::span<rte_mbuf*> packets, Time now) {
  if (packets.empty()) return 0;  // a burst of 0 crashes net_memif of 23.03
  // A link that comes up can be used before `tend` sees it.
  if (state_ == State::started) {
    const size_t taken =
        rte_eth_tx_burst(port_, queue, packets.data(), static_cast<uint16_t>(packets.size()));
    stuck_since_ = taken > 0 ? never : std::min(stuck_since_, now);
    if (taken > 0 || now - stuck_since_ < most_stuck) return taken;
  }
  rte_pktmbuf_free_bulk(packets.data(), static_cast<unsigned>(packets.size()));
  counts_.dropped += packets.size();
  return packets.size();
}

}  // namespace urma::drivers::dpdk
