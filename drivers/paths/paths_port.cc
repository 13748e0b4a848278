#include "drivers/paths/paths_port.h"

#include <algorithm>
#include <initializer_list>

namespace urma::drivers::paths {

PathsPort::PathsPort(std::vector<std::unique_ptr<PacketPort>> ports, Balance balance,
                     const SettingList& options)
    : ports_(ports.size()), facts_(ports[0]->facts()), sent_(most_unsettled) {
  std::string description = std::to_string(ports.size()) + " paths";
  facts_.mapped = {};
  facts_.balance = balance;
  facts_.settings = options;
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortFacts& facts = ports[i]->facts();
    facts_.paths.push_back(facts.self);
    facts_.mtu = std::min(facts_.mtu, facts.mtu);
    facts_.buffer_bytes = std::min(facts_.buffer_bytes, facts.buffer_bytes);
    facts_.reorders = facts_.reorders || facts.reorders;
    description += (i == 0 ? ": " : "; ") + facts.description;
    for (Setting setting : facts.settings) {
      setting.name = "path" + std::to_string(i) + "." + setting.name;
      facts_.settings.push_back(std::move(setting));
    }
    const auto descriptors = ports[i]->descriptors();
    descriptors_.insert(descriptors_.end(), descriptors.begin(), descriptors.end());
    ports_[i].inner = std::move(ports[i]);
  }
  facts_.description = std::move(description);
  for (const Setting& setting : std::initializer_list<Setting>{
           {"address", to_string(facts_.self), Origin::driver, "the first path's",
            "where others reach this device"},
           {"eid", to_string(facts_.eid), Origin::driver, "the first path's", "who it is"},
           {"mtu", size_text(facts_.mtu), Origin::driver, "the least of its paths",
            "largest payload of a packet, in bytes"},
           {"receive_buffer", size_text(facts_.buffer_bytes), Origin::driver,
            "the least of its paths", "what waits for this device, in bytes"}}) {
    set(facts_.settings, setting);
  }
}

PathsPort::~PathsPort() = default;

PortCounters PathsPort::counters() const {
  PortCounters sum;
  for (const Port& port : ports_) {
    const PortCounters one = port.inner->counters();
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
  }
  sum.send_failures += dropped_;
  return sum;
}

void PathsPort::abandon() {
  for (Port& port : ports_) port.inner->abandon();
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
    if (port.count == most_waiting) {
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

// Gives the port what waits for it.
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

// The oldest so many wait no more.
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
  for (size_t i = 0; i < ports_.size(); ++i) inner[i] = ports_[i].inner->settled();
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
    next = std::min(next, port.inner->next_arrival());
    if (port.count > 0) next = std::min(next, port.refused_since + std::chrono::microseconds(100));
  }
  return next;
}

// Each port is the first one in its turn, so that a busy one does not keep all the room.
size_t PathsPort::receive(std::span<RxFrame> frames, Time now) {
  size_t count = 0;
  for (size_t i = 0; i < ports_.size(); ++i) {
    const size_t path = (first_to_receive_ + i) % ports_.size();
    Port& port = ports_[path];
    if (port.count > 0) pass_on(port, now);
    const size_t end = count + port.inner->receive(frames.subspan(count), now);
    for (; count < end; ++count) frames[count].path = static_cast<uint8_t>(path);
  }
  first_to_receive_ = (first_to_receive_ + 1) % ports_.size();
  return count;
}

void PathsPort::release(std::span<const RxFrame> frames) {
  for (size_t begin = 0, end = 0; begin < frames.size(); begin = end) {
    while (end < frames.size() && frames[end].path == frames[begin].path) ++end;
    ports_[frames[begin].path].inner->release(frames.subspan(begin, end - begin));
  }
}

}  // namespace urma::drivers::paths
