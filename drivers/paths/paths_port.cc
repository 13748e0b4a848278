// SPDX-License-Identifier: Apache-2.0
#include "drivers/paths/paths_port.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "base/above_standard.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/failed.h"
#include "base/siphash.h"
#include "drivers/driver.h"

namespace urma::drivers::paths {
namespace {

// Peers accept an EID that is an address only from that address, so a device whose first path is
// lost could no longer send. Such a device therefore gets an EID of the random form, computed from
// its addresses, so that it has the same one after a restart.
Eid eid_of(const PortFacts& first, std::span<const Endpoint> endpoints) {
  if (!(first.eid == first.self.address)) return first.eid;
  const SipHash hash(0x7061746873, 0);
  std::array<uint64_t, 2> halves{1, 2};
  for (const Endpoint& endpoint : endpoints) {
    for (uint64_t& half : halves) {
      half = hash(std::array<uint64_t, 4>{half, load_be<8>(endpoint.address.bytes.data()),
                                          load_be<8>(endpoint.address.bytes.data() + 8),
                                          endpoint.port});
    }
  }
  Eid eid;
  store_be<8>(eid.bytes.data(), halves[0]);
  store_be<8>(eid.bytes.data() + 8, halves[1]);
  eid.bytes[0] = std::byte{0xfd};
  eid.bytes[13] &= std::byte{0xf0};
  eid.bytes[14] = std::byte{0};
  eid.bytes[15] = std::byte{1};
  return eid;
}

void add(PortCounters& sum, const PortCounters& one) {
  sum.frames_sent += one.frames_sent;
  sum.frames_received += one.frames_received;
  sum.calls_sent += one.calls_sent;
  sum.calls_received += one.calls_received;
  sum.send_failures += one.send_failures;
  sum.unreachable += one.unreachable;
  sum.malformed += one.malformed;
  sum.injected += one.injected;
  sum.uncaptured += one.uncaptured;
  if (one.latest_failure != 0) sum.latest_failure = one.latest_failure;
  if (!one.failure_text.empty()) sum.failure_text = one.failure_text;
}

PortFacts::Carries common(const PortFacts::Carries& a, const PortFacts::Carries& b) {
  return {.ecn = a.ecn && b.ecn, .cci = a.cci && b.cci, .lbf = a.lbf && b.lbf, .vl = a.vl && b.vl};
}

// Returns whether a port with the metering `added` takes away a kind of hints, which channels may
// be using already.
bool narrows(congestion::Metering added, congestion::Metering present) {
  using congestion::Metering;
  const auto takes = [&](Metering kind) {
    return may_pass(kind, present) && !may_pass(kind, added);
  };
  return takes(Metering::increases) || takes(Metering::rates);
}

Error no_descriptor(std::string_view call) {
  return failed(Status::no_resources, call,
                ": the system refuses a descriptor to watch several ports: ", std::strerror(errno))
      .fix("close descriptors, or allow more (ulimit -n)");
}

constexpr std::string_view fix = ". Fix: paths():udp:10.0.0.1+udp:10.0.1.1";

}  // namespace

std::string objection(PacketPort& port, const Eid& beside, VirtualClock* clock) {
  const PortFacts& facts = port.facts();
  if (facts.lossless) {
    return "it loses no packets, so another path would be useless. Fix: open it as a device of its "
           "own";
  }
  if (!facts.paths.empty()) return "it has several paths itself" + std::string(fix);
  if (port.clock() != clock) return "it does not have the clock of the first path";
  if (!may_reach(facts.self.address, beside)) {
    return "its address and that of the first path are not both IPv4 or both IPv6" +
           std::string(fix);
  }
  return {};
}

Result<std::unique_ptr<PacketPort>> PathsPort::make(std::vector<std::unique_ptr<PacketPort>> ports,
                                                    Balance balance, const SettingList& options) {
  // A thread that slept at the descriptors of some would not see what the others have.
  bool described = true;
  for (const auto& port : ports) described = described && !port->descriptors().empty();
  std::unique_ptr<PathsPort> made(new PathsPort(std::move(ports), balance, options));
  if (!described) return std::unique_ptr<PacketPort>(std::move(made));
  made->descriptors_.push_back(-1);  // allocates first, so that no descriptor leaks if that throws
  made->descriptors_[0] = above_standard(epoll_create1(EPOLL_CLOEXEC));
  bool watched = made->descriptors_[0] >= 0;
  for (Port& port : made->ports_) {
    watched = watched && (port.inner == nullptr || made->watch(*port.inner, port.kept));
  }
  if (!watched) return no_descriptor("open");
  return std::unique_ptr<PacketPort>(std::move(made));
}

PathsPort::PathsPort(std::vector<std::unique_ptr<PacketPort>> ports, Balance balance,
                     const SettingList& options)
    : facts_(ports[0]->facts()), clock_(ports[0]->clock()), sent_(most_unsettled) {
  std::string description = std::to_string(ports.size()) + " paths";
  facts_.mapped = {};
  facts_.metrics = {};
  facts_.balance = balance;
  facts_.settings = options;
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortFacts& facts = ports[i]->facts();
    facts_.paths.push_back(facts.self);
    facts_.mtu = std::min(facts_.mtu, facts.mtu);
    facts_.buffer_bytes = std::min(facts_.buffer_bytes, facts.buffer_bytes);
    facts_.reorders = facts_.reorders || facts.reorders;
    facts_.arms = facts_.arms || facts.arms;
    facts_.scheduling_delay = std::max(facts_.scheduling_delay, facts.scheduling_delay);
    facts_.carries = common(facts_.carries, facts.carries);
    facts_.metering = together(facts_.metering, facts.metering);
    const bool known = facts_.line_bytes_per_second > 0 && facts.line_bytes_per_second > 0;
    facts_.line_bytes_per_second =
        known ? std::max(facts_.line_bytes_per_second, facts.line_bytes_per_second) : 0;
    description += (i == 0 ? ": " : "; ") + facts.description;
    for (Setting setting : facts.settings) {
      setting.name = "path" + std::to_string(i) + "." + setting.name;
      facts_.settings.push_back(std::move(setting));
    }
    ports_[i].inner = std::move(ports[i]);
  }
  const bool drawn = !(facts_.eid == facts_.self.address);
  facts_.eid = eid_of(facts_, facts_.paths);
  facts_.description = std::move(description);
  for (const Setting& setting : std::initializer_list<Setting>{
           {"address", to_string(facts_.self), Origin::driver, "that of the first path",
            "where peers reach this device"},
           {"eid", to_string(facts_.eid), drawn ? Origin::drawn : Origin::driver,
            drawn ? "that of the first path" : "computed from the addresses of its paths",
            "the identity of this device"},
           {"mtu", size_text(facts_.mtu), Origin::driver, "the smallest of its paths",
            "largest payload of a packet, in bytes"},
           {"receive_buffer", size_text(facts_.buffer_bytes), Origin::driver,
            "the smallest of its paths", "the most bytes that wait for this device"}}) {
    set(facts_.settings, setting);
  }
}

PathsPort::~PathsPort() {
  for (const int watcher : descriptors_) {
    if (watcher >= 0) close(watcher);
  }
}

bool PathsPort::watch(PacketPort& port, std::vector<NotInherited>& kept) {
  for (const int descriptor : port.descriptors()) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (epoll_ctl(descriptors_[0], EPOLL_CTL_ADD, descriptor, &event) != 0) return false;
    kept.emplace_back(descriptor);
  }
  return true;
}

// ---- adding and removing ports

// A port that is open but has not joined yet. Its descriptors are watched already, so the thread
// that sleeps there may wake spuriously.
class PathsPort::Joined final : public PathPorts::Joining {
 public:
  explicit Joined(std::unique_ptr<PacketPort> opened) : port(std::move(opened)) {}
  const Endpoint& self() const override { return port->facts().self; }

  std::unique_ptr<PacketPort> port;
  std::vector<NotInherited> kept;
};

Result<std::unique_ptr<PathPorts::Joining>> PathsPort::prepare(std::string_view text) {
  const Result<DeviceString> device = parse_device_string(text);
  if (!device) return device.error();
  Result<std::unique_ptr<PacketPort>> port = open_port(*device);
  if (!port) return port.error();
  std::string why = objection(**port, facts_.self.address, clock_);
  if (why.empty() && (*port)->facts().mtu < facts_.mtu) {
    why = "its packets carry " + size_text((*port)->facts().mtu) +
          " bytes, and those of the other paths " + size_text(facts_.mtu) +
          ". Fix: raise the MTU of its interface, or open the device with a smaller mtu=";
  }
  if (why.empty() && facts_.carries.ecn && !(*port)->facts().carries.ecn) {
    why =
        "its packets carry no ECN field, and those of the other paths do. Fix: add it with ecn=yes";
  }
  if (why.empty() && narrows((*port)->facts().metering, facts_.metering)) {
    why =
        "its switch reads the requests of congestion control in another way than those of the "
        "other paths. Fix: start it with the --cc of the other switches";
  }
  if (why.empty() && (*port)->descriptors().empty() != descriptors_.empty()) {
    why = "it, or the first path, has no descriptors at which a thread could sleep" +
          std::string(fix);
  }
  if (why.empty() && (*port)->facts().arms && !facts_.arms) {
    why =
        "it wakes only threads that ask for it before they sleep, which those of this device do "
        "not. Fix: name it when the device is opened";
  }
  if (!why.empty()) return device_error(*device, device->offset, why);
  auto joined = std::make_unique<Joined>(std::move(*port));
  if (!descriptors_.empty() && !watch(*joined->port, joined->kept)) {
    return no_descriptor("add_path");
  }
  return std::unique_ptr<Joining>(std::move(joined));
}

void PathsPort::join(uint8_t number, Joining& joining) {
  Joined& joined = static_cast<Joined&>(joining);
  Port& port = ports_[number];
  URMA_ASSERT(port.inner == nullptr, "the path of a port that joins is not used");
  port.inner = std::move(joined.port);
  port.kept = std::move(joined.kept);
  port.stopped = false;
  port.taken_before = port.taken;
}

void PathsPort::stop(uint8_t number) {
  Port& port = ports_[number];
  port.stopped = true;
  for (const int descriptor : port.inner->descriptors()) {
    epoll_ctl(descriptors_[0], EPOLL_CTL_DEL, descriptor, nullptr);
  }
}

std::unique_ptr<PacketPort> PathsPort::part(uint8_t number) {
  Port& port = ports_[number];
  URMA_ASSERT(port.count == 0, "all frames of a port have settled before it is removed");
  add(parted_, port.inner->counters());
  port.kept.clear();
  return std::move(port.inner);
}

PortCounters PathsPort::counters() const {
  PortCounters sum = parted_;
  for (const Port& port : ports_) {
    if (port.inner != nullptr) add(sum, port.inner->counters());
  }
  sum.send_failures += dropped_;
  return sum;
}

void PathsPort::abandon() {
  for (Port& port : ports_) {
    if (port.inner != nullptr) port.inner->abandon();
  }
}

// ---- outwards

size_t PathsPort::send(std::span<TxFrame* const> frames, Time now) {
  settled();
  size_t taken = 0;
  for (; taken < frames.size() && sent_next_ - sent_first_ < most_unsettled; ++taken) {
    TxFrame* const frame = frames[taken];
    const size_t path = frame->path < ports_.size() ? frame->path : 0;
    Port& port = ports_[path];
    if (port.count == most_waiting) pass_on(port, now);
    sent_[sent_next_ % most_unsettled] = {.path = static_cast<uint8_t>(path)};
    if (port.count == most_waiting || port.inner == nullptr) {
      ++dropped_;
      pool_.take_back(frame);
      sent_[sent_next_++ % most_unsettled].until = 0;
      continue;
    }
    port.waiting[port.count] = frame;
    port.numbers[port.count++] = sent_next_++;
  }
  for (Port& port : ports_) pass_on(port, now);
  return taken;
}

// Hands waiting frames to the port.
void PathsPort::pass_on(Port& port, Time now) {
  if (port.count == 0) return;
  std::array<TxFrame*, most_waiting> inner;
  const size_t lent = port.inner->lend(std::span(inner).first(port.count));
  for (size_t i = 0; i < lent; ++i) {
    TxFrame& to = *inner[i];
    const TxFrame& from = *port.waiting[i];
    copy_bytes(to.head, from.head, from.head_bytes);
    to.head_bytes = from.head_bytes;
    to.piece_count = from.piece_count;
    to.tail_bytes = from.tail_bytes;
    to.tail = from.tail;
    to.ecn = from.ecn;
    to.cci = from.cci;
    to.to = from.to;
    std::copy_n(from.pieces.begin(), from.piece_count, to.pieces.begin());
  }
  const size_t taken = port.inner->send(std::span(inner).first(lent), now);
  port.inner->unlend(std::span(inner).subspan(taken, lent - taken));
  for (size_t i = 0; i < taken; ++i) {
    sent_[port.numbers[i] % most_unsettled].until = ++port.taken;
  }
  forget(port, taken);
  if (port.count == 0) {
    port.refused_since = never;
  } else if (taken > 0 || port.refused_since == never) {
    port.refused_since = now;
  } else if (now - port.refused_since >= patience) {
    drop(port);
  }
}

void PathsPort::drop(Port& port) {
  dropped_ += port.count;
  for (size_t i = 0; i < port.count; ++i) sent_[port.numbers[i] % most_unsettled].until = 0;
  forget(port, port.count);
  port.refused_since = never;
}

// Removes the oldest `count` frames from the waiting ones.
void PathsPort::forget(Port& port, size_t count) {
  for (size_t i = 0; i < count; ++i) pool_.take_back(port.waiting[i]);
  std::copy(port.waiting.begin() + count, port.waiting.begin() + port.count, port.waiting.begin());
  std::copy(port.numbers.begin() + count, port.numbers.begin() + port.count, port.numbers.begin());
  port.count -= count;
}

void PathsPort::unlend(std::span<TxFrame* const> frames) {
  for (TxFrame* frame : frames) pool_.take_back(frame);
}

uint64_t PathsPort::settled() {
  std::array<uint64_t, most_paths> inner;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const Port& port = ports_[i];
    inner[i] = port.inner == nullptr ? port.taken : port.taken_before + port.inner->settled();
  }
  while (sent_first_ < sent_next_) {
    const Sent& oldest = sent_[sent_first_ % most_unsettled];
    if (oldest.until > inner[oldest.path]) break;
    ++sent_first_;
  }
  return sent_first_;
}

// ---- inwards

Time PathsPort::next_arrival() const {
  Time next = never;
  for (const Port& port : ports_) {
    if (port.inner != nullptr) next = std::min(next, port.inner->next_arrival());
    if (port.count > 0) next = std::min(next, port.refused_since + std::chrono::microseconds(100));
  }
  return next;
}

// Begins with another port each time, so that a busy port does not use all of `frames`.
size_t PathsPort::receive(std::span<RxFrame> frames, Time now) {
  size_t count = 0;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const size_t path = (first_to_receive_ + i) % ports_.size();
    Port& port = ports_[path];
    if (port.count > 0) pass_on(port, now);
    if (port.inner == nullptr || port.stopped) continue;
    const size_t end = count + port.inner->receive(frames.subspan(count), now);
    for (; count < end; ++count) frames[count].path = static_cast<uint8_t>(path);
  }
  first_to_receive_ = next_to_receive();
  return count;
}

// Skips unused paths: their turns would all go to the next port.
size_t PathsPort::next_to_receive() const {
  for (size_t i = 1; i <= ports_.size(); ++i) {
    const size_t path = (first_to_receive_ + i) % ports_.size();
    if (ports_[path].inner != nullptr && !ports_[path].stopped) return path;
  }
  return 0;
}

void PathsPort::arm() {
  for (Port& port : ports_) {
    if (port.inner != nullptr) port.inner->arm();
  }
}

void PathsPort::disarm() {
  for (Port& port : ports_) {
    if (port.inner != nullptr) port.inner->disarm();
  }
}

void PathsPort::release(std::span<const RxFrame> frames) {
  for (size_t begin = 0, end = 0; begin < frames.size(); begin = end) {
    while (end < frames.size() && frames[end].path == frames[begin].path) ++end;
    ports_[frames[begin].path].inner->release(frames.subspan(begin, end - begin));
  }
}

}  // namespace urma::drivers::paths
