// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_ping/pinger.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "apps/capi/devices.h"
#include "apps/capi/eid.h"
#include "apps/capi/log.h"
#include "apps/common/interrupt.h"
#include "base/clock.h"
#include "base/socket_address.h"
#include "urma/core/endpoint.h"

namespace urma::apps::ping {
namespace {

constexpr uint32_t ping_jetty = 5;
constexpr uint32_t depth = 16;  // of each queue
constexpr uint32_t slots = depth;

Eid to_address(const urma_eid_t& eid) {
  Eid out;
  std::memcpy(out.bytes.data(), eid.raw, sizeof eid.raw);
  return out;
}

// Returns the address from which this host sends to another one, or nothing if there is no route.
std::optional<urma_eid_t> source_towards(const urma_eid_t& there) {
  SocketAddress address;
  const socklen_t to = to_sockaddr({to_address(there), ub_port}, address);
  socklen_t length = sizeof address;
  const int probe = socket(address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  // Connecting a datagram socket sends no packet; it only consults the routing table.
  const bool known = probe >= 0 && connect(probe, &address.any, to) == 0 &&
                     getsockname(probe, &address.any, &length) == 0;
  if (probe >= 0) close(probe);
  if (!known) return std::nullopt;
  urma_eid_t out;
  std::memcpy(out.raw, from_sockaddr(address.any).address.bytes.data(), sizeof out.raw);
  return out;
}

// Returns the EID of the device that reaches this one.
urma_eid_t choose_source(const urma_eid_t& there) {
  // Processes of one host have its EIDs, and those in a window that of the window.
  if (urma_get_device_by_eid(there, URMA_TRANSPORT_UB) != nullptr) return there;
  if (in_window(to_address(there))) {
    throw Failure(Exit::error,
                  fmt::format("{} is the EID of a window that is not a device here. Fix: name its "
                              "file in URMA_DEVICES, as in URMA_DEVICES=ub0=cxl:/dev/shm/ub0",
                              capi::to_text(there)));
  }
  if (const auto source = source_towards(there)) return *source;
  throw Failure(Exit::error,
                fmt::format("no route leads to {}. Fix: check the EID, or name the device that "
                            "reaches it by -I EID (urma_admin show lists them)",
                            capi::to_text(there)));
}

std::string name_of(urma_cr_status_t status) {
  switch (status) {
    case URMA_CR_ACK_TIMEOUT_ERR:
      return "it was not acknowledged in time";
    case URMA_CR_REM_OPERATION_ERR:
    case URMA_CR_REM_ACCESS_ABORT_ERR:
    case URMA_CR_REM_UNSUPPORTED_REQ_ERR:
      return "its Jetty 5 does not take messages";
    case URMA_CR_RNR_RETRY_CNT_EXC_ERR:
      return "its Jetty 5 has no room for messages";
    default:
      return fmt::format("the record of the message has the status {}", static_cast<int>(status));
  }
}

template <class Object>
void require(const Object& object, std::string_view doing) {
  if (object == nullptr) throw capi::failed(doing);
}

}  // namespace

Pinger::Pinger(const Options& options)
    : to_(*options.eid), bytes_(options.bytes), memory_(size_t{slots + 1} * options.bytes) {
  for (uint32_t i = 0; i < bytes_; ++i) memory_[i] = static_cast<char>(i * 7 + 1);
  open(options.source ? *options.source : choose_source(to_));
  make_queues();
  for (uint64_t slot = 1; slot <= slots; ++slot) post_receive(slot);
}

void Pinger::open(const urma_eid_t& source) {
  urma_device_t* const device = urma_get_device_by_eid(source, URMA_TRANSPORT_UB);
  require(device, "finding the device");
  device_ = device->name;
  uint32_t count = 0;
  urma_eid_info_t* const eids = urma_get_eid_list(device, &count);
  require(eids, "listing the EIDs of " + device_);
  uint32_t index = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (capi::same(eids[i].eid, source)) index = eids[i].eid_index;
  }
  urma_free_eid_list(eids);
  context_.reset(urma_create_context(device, index));
  require(context_, "opening " + device_);
}

void Pinger::make_queues() {
  urma_seg_cfg_t seg{};
  seg.va = reinterpret_cast<uint64_t>(memory_.data());
  seg.len = memory_.size();
  seg.flag.bs.access = URMA_ACCESS_LOCAL_ONLY;
  segment_.reset(urma_register_seg(context_.get(), &seg));
  require(segment_, "registering the memory of messages");
  events_.reset(urma_create_jfce(context_.get()));
  require(events_, "making an event channel");
  urma_jfc_cfg_t jfc{};
  jfc.depth = 2 * depth;
  jfc.jfce = events_.get();
  sent_.reset(urma_create_jfc(context_.get(), &jfc));
  require(sent_, "making a JFC");
  arrived_.reset(urma_create_jfc(context_.get(), &jfc));
  require(arrived_, "making a JFC");
  urma_jfr_cfg_t jfr{};
  jfr.depth = slots;
  jfr.trans_mode = URMA_TM_RM;
  jfr.max_sge = 1;
  jfr.jfc = arrived_.get();
  receives_.reset(urma_create_jfr(context_.get(), &jfr));
  require(receives_, "making a JFR");
  urma_jetty_cfg_t jetty{};
  jetty.flag.bs.share_jfr = URMA_SHARE_JFR;
  jetty.jfs_cfg.depth = depth;
  jetty.jfs_cfg.trans_mode = URMA_TM_RM;
  jetty.jfs_cfg.priority = 6;
  jetty.jfs_cfg.max_sge = 1;
  jetty.jfs_cfg.rnr_retry = URMA_TYPICAL_RNR_RETRY;
  jetty.jfs_cfg.err_timeout = URMA_TYPICAL_ERR_TIMEOUT;
  jetty.jfs_cfg.jfc = sent_.get();
  jetty.shared.jfr = receives_.get();
  jetty_.reset(urma_create_jetty(context_.get(), &jetty));
  require(jetty_, "making a Jetty");
}

void Pinger::post_receive(uint64_t slot) {
  urma_sge_t range{};
  range.addr = reinterpret_cast<uint64_t>(memory_.data() + slot * bytes_);
  range.len = bytes_;
  range.tseg = segment_.get();
  urma_jfr_wr_t wr{};
  wr.src = {&range, 1};
  wr.user_ctx = slot;
  urma_jfr_wr_t* bad = nullptr;
  if (urma_post_jfr_wr(receives_.get(), &wr, &bad) != URMA_SUCCESS) {
    throw capi::failed("posting a receive");
  }
}

bool Pinger::find(std::string& why) {
  if (target_ != nullptr) return true;
  urma_rjetty_t there{};
  there.jetty_id.eid = to_;
  there.jetty_id.id = ping_jetty;
  there.trans_mode = URMA_TM_RM;
  there.type = URMA_JETTY;
  there.tp_type = URMA_CTP;
  urma_token_t token{};
  target_.reset(urma_import_jetty(context_.get(), &there, &token));
  if (target_ != nullptr) return true;
  if (errno == URMA_EINVAL || errno == URMA_ENOPERM) {
    throw capi::failed("finding the process that answers");
  }
  why = capi::last_error();
  return false;
}

bool Pinger::send(uint64_t number) {
  urma_sge_t range{};
  range.addr = reinterpret_cast<uint64_t>(memory_.data());
  range.len = bytes_;
  range.tseg = segment_.get();
  urma_jfs_wr_t wr{};
  wr.opcode = URMA_OPC_SEND_IMM;
  wr.tjetty = target_.get();
  wr.flag.bs.complete_enable = 1;
  wr.send.src = {&range, 1};
  wr.send.imm_data = number;
  urma_jfs_wr_t* bad = nullptr;
  const urma_status_t posted = urma_post_jetty_send_wr(jetty_.get(), &wr, &bad);
  if (posted != URMA_SUCCESS && posted != URMA_ENOMEM) throw capi::failed("posting a message");
  return posted == URMA_SUCCESS;
}

// Takes one arrival. `more`: whether there was one. Answers to earlier messages are too late.
Pinger::Answer Pinger::take(uint64_t number, bool& more) {
  urma_cr_t record{};
  more = urma_poll_jfc(arrived_.get(), 1, &record) == 1;
  if (!more || record.user_ctx == 0) return Answer::none;  // a record of no receive
  const bool right =
      std::memcmp(memory_.data(), memory_.data() + record.user_ctx * bytes_, bytes_) == 0 &&
      record.completion_len == bytes_;
  post_receive(record.user_ctx);
  if (record.status != URMA_CR_SUCCESS || record.imm_data != number) return Answer::none;
  return right ? Answer::arrived : Answer::wrong_bytes;
}

// If a message fails, the process is looked for again: it may have ended, and another one have its
// place.
void Pinger::note_failures(std::string& why) {
  urma_cr_t record{};
  while (urma_poll_jfc(sent_.get(), 1, &record) == 1) {
    if (record.status == URMA_CR_SUCCESS) continue;
    why = name_of(record.status);
    target_.reset();
  }
}

// Waits for an event. Returns false at `end`.
bool Pinger::wait(std::optional<Time> end) {
  constexpr int longest_ms = 1000;
  int limit_ms = longest_ms;
  if (end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - read_clock()).count();
    if (left <= 0) return false;
    limit_ms = static_cast<int>(std::min<int64_t>(left, longest_ms));
  }
  urma_jfc_t* ready[2] = {};
  const int count = urma_wait_jfc(events_.get(), 2, limit_ms, ready);
  if (count < 0) throw capi::failed("waiting for an answer");
  for (int i = 0; i < count; ++i) {
    uint32_t one = 1;
    urma_ack_jfc(&ready[i], &one, 1);
  }
  return true;
}

Pinger::Answer Pinger::exchange(uint64_t number, std::optional<Time> end, std::string& why) {
  if (!send(number)) why = "not sent, as earlier messages still wait for their answers";
  for (bool waits = true; waits && !interrupted(); waits = wait(end)) {
    if (urma_rearm_jfc(arrived_.get(), false) != URMA_SUCCESS ||
        urma_rearm_jfc(sent_.get(), false) != URMA_SUCCESS) {
      throw capi::failed("waiting for an answer");
    }
    for (bool more = true; more;) {
      const Answer answer = take(number, more);
      if (answer != Answer::none) return answer;
    }
    note_failures(why);
  }
  return interrupted() ? Answer::interrupted : Answer::none;
}

}  // namespace urma::apps::ping
