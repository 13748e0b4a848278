// SPDX-License-Identifier: Apache-2.0
// Two devices on a window of shared memory, and a hostile process that writes anything into it:
// into its header, slots, bells, records and rings, and their contents. It also opens the window
// repeatedly, and truncates it. Oracle: no device crashes or writes where it may not, and each work
// ends once, in time.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "congestion/controller.h"
#include "drivers/cxl/cxl_port.h"
#include "engine/engine.h"
#include "tests/fuzz/input.h"

namespace urma::fuzz {
namespace {

namespace cxl = drivers::cxl;

constexpr uint64_t window_bytes = cxl::least_with_segments;
constexpr Duration in_time = std::chrono::seconds(12);

const std::string& path() {
  static const std::string one = "/dev/shm/urma-test-fuzz-" + std::to_string(getpid());
  return one;
}

Result<std::unique_ptr<drivers::PacketPort>> open_port() {
  return cxl::CxlPort::open({.path = path(), .bytes = 0});
}

// Makes a window in a part of a sparse file: allocating the whole file would take most of a
// fuzzer's time.
Result<std::unique_ptr<drivers::PacketPort>> make_window() {
  unlink(path().c_str());
  const int file = open(path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  require(ftruncate(file, window_bytes) == 0, "a file can be made");
  close(file);
  return open_port();
}

// A process with a device: an engine that runs in the test's own time, a segment and a Jetty.
class Host {
 public:
  Host(std::unique_ptr<drivers::PacketPort> port, uint64_t life)
      : life_(life),
        engine_(std::move(port), settings(life), std::make_unique<SeededEntropy>(life)),
        jfc_(std::make_shared<jetty::Jfc>(jetty::Queues::entries_of(berths, receives))),
        queues_(std::make_shared<jetty::Queues>(berths, receives, jfc_)) {
    jfc_->reserve(queues_->entries());
    made_ =
        *engine_.jetty_control().create({queues_, {.receiver = std::chrono::milliseconds(100)}});
    token_ = register_segment({.base = segment().data(),
                               .bytes = segment().size(),
                               .rights = Rights::read | Rights::write})
                 .token;
    for (uint64_t tag = 0; tag < receives; ++tag) receive(tag);
    take_mapped();
  }

  bool pass(Time now) { return engine_.pass<engine::NoStages>(now, nullptr, {}); }
  Time next_deadline() const { return engine_.next_deadline(); }

  void meet(Host& other) {
    const drivers::PortFacts& facts = other.engine_.port().facts();
    const PeerId peer = engine_.transport().know(facts.eid, facts.self, Incarnation(other.life_));
    there_ = {.peer = peer,
              .address = reinterpret_cast<uint64_t>(other.segment().data()),
              .bytes = other.segment().size(),
              .token_id = other.token_.id,
              .token = other.token_.value,
              .rights = Rights::read | Rights::write};
    jetty_there_ = {.peer = peer, .id = other.made_.id, .token = other.made_.token};
    mapped_there_ = there_;
    mapped_there_.address = other.mapped_.lease.address;
    mapped_there_.token_id = other.mapped_.made.token.id;
    mapped_there_.token = other.mapped_.made.token.value;
  }
  void post(uint32_t kind, uint32_t bytes) {
    const std::span<std::byte> data = std::span(own_).first(bytes);
    const RemoteSegment& there = kind >= 4 ? mapped_there_ : there_;
    kind %= 4;
    Work work = kind == 0   ? write(data, there)
                : kind == 1 ? read(data, there)
                : kind == 2
                    ? write(data, there).to(jetty_there_).immediate(1)
                    : send(data.first(std::min<size_t>(bytes, max_send_bytes)), jetty_there_);
    posted_ += queues_->post({&work, 1});
    engine_.dirty().mark(made_.handle.index);
  }
  void poll() {
    std::array<Completion, 8> out;
    size_t count = 0;
    while ((count = jfc_->poll(out)) > 0) {
      for (const Completion& one : std::span(out).first(count)) {
        if (one.operation != Operation::receive) {
          ++ended_;
        } else if (!one.with_immediate) {
          receive(one.tag);
        }
      }
    }
    require(ended_ <= posted_, "a work ends once");
  }
  // Unregisters the mapped segment, gives its memory back, and allocates another one.
  void renew(Time now) {
    if (mapped_.lease.bytes == 0) return take_mapped();
    engine::Registrations::Withdrawal what{.segment = mapped_.made.segment,
                                           .own = {.base = mapped_.lease.base,
                                                   .bytes = segment_bytes,
                                                   .rights = Rights::local_only,
                                                   .address = mapped_.lease.address,
                                                   .lease = mapped_.lease.number}};
    do {
      while (!engine_.registrations().withdraw(what, now)) {
        engine_.pass<engine::NoStages>(now, nullptr, {});
        poll();
        now += std::chrono::microseconds(100);
      }
      if (what.held) what.fenced = false;
    } while (what.held);
    engine_.port().memory()->give_back(mapped_.lease);
    mapped_ = {};
    take_mapped();
  }
  // Stores to the other one's mapped segment as an application's thread does, or ends that.
  void use_lane(Time now, bool ends) {
    Ways& ways = *engine_.port().ways();
    if (lane_ && ends) {
      ways.close_lane(*lane_);
      lane_.reset();
    } else if (lane_) {
      if (lane_->take()) std::memcpy(lane_->base, own_.data(), 64);
      lane_->let_go();
    } else if (transport::Channel* const channel =
                   engine_.transport().channel(mapped_there_.peer, now)) {
      MappedLane lane;
      const Laned opened = channel->open_lane({.address = mapped_there_.address,
                                               .bytes = mapped_there_.bytes,
                                               .id = mapped_there_.token_id,
                                               .token = mapped_there_.token,
                                               .wanted = Rights::write},
                                              lane);
      if (opened == Laned::opened) lane_ = lane;
    }
  }
  bool all_ended() const { return ended_ == posted_; }

  void check() const {
    const auto same = [](std::byte byte) { return byte == untouched; };
    require(std::all_of(memory_.begin(), memory_.begin() + guard, same) &&
                std::all_of(memory_.end() - guard, memory_.end(), same),
            "nothing is written around a segment");
  }

 private:
  static constexpr size_t guard = 256;
  static constexpr size_t segment_bytes = 96 * 1024;
  static constexpr std::byte untouched{0xcd};
  static constexpr uint16_t berths = 16;
  static constexpr uint16_t receives = 4;
  static constexpr size_t receive_bytes = 2048;

  static engine::EngineSettings settings(uint64_t life) {
    return {.life = Incarnation(life),
            .controller = &congestion::controllers().front(),
            .limits = {.jetties = 2, .peers = 8, .segments = 2}};
  }
  memseg::SegmentTable::Made register_segment(const memseg::SegmentTable::Segment& segment) {
    memseg::SegmentTable::Made made;
    engine_.registrations().add(segment, TokenPolicy::plain_text, {}, made);
    return made;
  }
  void take_mapped() {
    drivers::SegmentMemory* const memory = engine_.port().memory();
    drivers::SegmentMemory::Lease lease;
    if (memory == nullptr ||
        memory->take(segment_bytes, lease) != drivers::SegmentMemory::Taken::taken) {
      return;
    }
    if (!memory->prepare(lease)) return memory->give_back(lease);
    mapped_.lease = lease;
    mapped_.made = register_segment({.base = lease.base,
                                     .bytes = segment_bytes,
                                     .rights = Rights::read | Rights::write,
                                     .address = lease.address,
                                     .lease = lease.number});
  }
  std::span<std::byte> segment() { return std::span(memory_).subspan(guard, segment_bytes); }
  void receive(uint64_t tag) {
    const Buffer buffer{buffers_.data() + tag % receives * receive_bytes, receive_bytes};
    queues_->receive({&buffer, 1}, tag % receives);
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(segment_bytes + 2 * guard, untouched);
  std::vector<std::byte> own_ = std::vector<std::byte>(segment_bytes);
  std::vector<std::byte> buffers_ = std::vector<std::byte>(receives * receive_bytes);
  const uint64_t life_;
  engine::Engine engine_;
  std::shared_ptr<jetty::Jfc> jfc_;
  std::shared_ptr<jetty::Queues> queues_;
  engine::JettyControl::Made made_;
  memseg::SegmentTable::Token token_;
  struct Mapped {
    engine::Registrations::Lease lease;
    memseg::SegmentTable::Made made;
  } mapped_;
  RemoteSegment there_;
  RemoteSegment mapped_there_;
  RemoteJetty jetty_there_;
  std::optional<MappedLane> lane_;
  uint64_t posted_ = 0;
  uint64_t ended_ = 0;
};

// The mapping of the window that the hostile process has.
class Scribbler {
 public:
  Scribbler() {
    const int file = open(path().c_str(), O_RDWR | O_CLOEXEC);
    base_ = static_cast<std::byte*>(
        mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
    guard_ = cxl::Guard(base_, window_bytes);
  }
  Scribbler(const Scribbler&) = delete;
  Scribbler& operator=(const Scribbler&) = delete;
  ~Scribbler() {
    guard_ = cxl::Guard();
    munmap(base_, window_bytes);
  }

  void scribble(Input& input) {
    for (uint32_t times = 1 + input.below(4); times > 0; --times) change(input, word_in(input));
  }

 private:
  static constexpr cxl::Parts parts = cxl::Parts::of(window_bytes);

  // Returns an offset in the window, mostly of bytes that have a meaning.
  static uint64_t word_in(Input& input) {
    // In most cases it is a ring that two or three devices use.
    const uint32_t ring = input.chance(230) ? input.below(4) : input.below(parts.rings);
    const uint32_t slot = input.chance(230) ? input.below(3) : input.below(cxl::slot_count);
    const uint64_t ring_at = parts.rings_at + uint64_t{ring} * cxl::ring_bytes;
    const uint64_t lines_at = ring_at + sizeof(cxl::RingControl);
    const uint32_t segment = input.chance(230) ? input.below(6) : input.below(parts.granules);
    switch (input.below(12)) {
      case 10:
        if (input.chance(64)) {
          return parts.lanes_at + sizeof(cxl::LaneHold) * (slot * max_lanes + input.below(2));
        }
        [[fallthrough]];
      case 11:
        return parts.segments_at + segment * sizeof(cxl::SegmentRecord) + 4 * input.below(10);
      case 0:
        return 4 * input.below(8);
      case 1:
        return cxl::line_bytes + 8 * input.below(2);
      case 2:
        return cxl::slots_at + slot * sizeof(cxl::Slot) + cxl::line_bytes * input.below(3) +
               4 * input.below(3);
      case 3:
        return cxl::records_at + ring * sizeof(cxl::RingRecord) + 4 * input.below(5);
      case 4:
        return ring_at + 4 * std::array{0, 2, 32, 33}[input.below(4)];
      case 5:
      case 6:
        return lines_at + cxl::line_bytes * input.below(64);
      case 7:
      case 8:
        return lines_at + 4 * input.below(1024);
      default:
        return uint64_t{input.take<uint32_t>()} * 4 % window_bytes;
    }
  }
  void change(Input& input, uint64_t at) {
    auto& word = *reinterpret_cast<std::atomic<uint32_t>*>(base_ + at);
    const uint32_t now = word.load();
    constexpr uint32_t telling[] = {0,          1,          2,          60,
                                    61,         65'792,     65'793,     0x7fffffff,
                                    0x80000000, 0xfffffffe, UINT32_MAX, cxl::slot_count};
    const uint32_t kind = input.below(8);
    word.store(kind == 0   ? input.take<uint32_t>()
               : kind == 1 ? now + 1
               : kind == 2 ? now - 1
               : kind == 3 ? input.below(256)
               : kind < 6  ? now ^ 1u << input.below(32)
                           : telling[input.below(std::size(telling))]);
  }

  std::byte* base_ = nullptr;
  cxl::Guard guard_;
};

class Script {
 public:
  Script(const uint8_t* data, size_t size) : input_(data, size) {
    auto first = make_window();
    require(first.ok(), "a window is made where there is none");
    hosts_[0].emplace(std::move(*first), 1);
    auto second = open_port();
    require(second.ok(), "a window is found where there is one");
    hosts_[1].emplace(std::move(*second), 2);
    meet();
    scribbler_ = std::make_unique<Scribbler>();
  }
  ~Script() { unlink(path().c_str()); }

  void run() {
    // Makes a channel in each direction, so that there is something to damage.
    for (auto& host : hosts_) host->post(0, 100);
    for (int i = 0; i < 8; ++i) pass(1);
    while (!input_.empty()) step();
    heal();
  }

 private:
  void meet() {
    hosts_[0]->meet(*hosts_[1]);
    hosts_[1]->meet(*hosts_[0]);
  }

  void step() {
    Host& host = *hosts_[input_.below(2)];
    switch (input_.below(16)) {
      case 0:
      case 1:
        return host.post(input_.below(8), input_.below(64));
      case 2:
        return host.post(input_.below(8), input_.below(90'000));
      case 3:
        for (int i = 0; i < 8; ++i) host.post(input_.below(8), 64);
        return;
      case 4:
      case 5:
      case 6:
        return pass(input_.below(64));
      case 7:
        host.pass(now_);
        return;
      case 8:
        now_ += std::chrono::milliseconds(input_.take());
        return;
      case 9:
        return visit();
      case 10:
        if (input_.chance(16)) cut();
        return;
      case 11:
        if (input_.chance(32)) return restart();
        if (!input_.chance(64)) return;
        host.renew(now_);
        return meet();
      case 12:
        return host.use_lane(now_, input_.chance(32));
      default:
        return scribbler_->scribble(input_);
    }
  }

  void pass(uint32_t microseconds) {
    for (auto& host : hosts_) {
      host->pass(now_);
      host->poll();
      now_ += std::chrono::microseconds(microseconds);
    }
  }

  // Opens another device on the window in its present state.
  void visit() {
    auto port = open_port();
    if (!port) {
      require(port.error().message.find("Fix: ") != std::string::npos, "an error has its cure");
      return;
    }
    TxFrame* frame = nullptr;
    if ((*port)->lend({&frame, 1}) == 0) return;
    const auto bytes = input_.bytes(64);
    std::copy(bytes.begin(), bytes.end(), frame->head);
    frame->head_bytes = static_cast<uint8_t>(bytes.size());
    frame->piece_count = frame->tail_bytes = 0;
    frame->to = (*port)->facts().self;
    frame->to.address.bytes[15] = static_cast<std::byte>(1 + input_.below(4));
    (*port)->send({&frame, 1}, now_);
    RxFrame got;
    if ((*port)->receive({&got, 1}, now_) == 1) (*port)->release({&got, 1});
  }
  void cut() {
    const uint64_t left = input_.chance(128) ? 0 : input_.take<uint32_t>() % window_bytes;
    require(truncate(path().c_str(), static_cast<off_t>(left)) == 0, "a file can be cut off");
  }
  // Ends the second process without a goodbye, and starts it again if the window allows that.
  void restart() {
    hosts_[1]->check();
    hosts_[1].reset();
    auto port = open_port();
    if (!port) {
      // Otherwise the process opens another window, and the first device is alone.
      port = make_window();
      require(port.ok(), "a window is made where there is none");
    }
    hosts_[1].emplace(std::move(*port), ++life_);
    scribbler_.reset();
    scribbler_ = std::make_unique<Scribbler>();
    meet();
  }

  // Waits until all works have ended; the hostile process does nothing from here on.
  void heal() {
    const Time until = now_ + in_time;
    const auto ended = [&] { return hosts_[0]->all_ended() && hosts_[1]->all_ended(); };
    for (int steps = 0; !ended(); ++steps) {
      require(now_ < until && steps < 100'000, "each work ends in time");
      pass(20);
      const Time next = std::min(hosts_[0]->next_deadline(), hosts_[1]->next_deadline());
      if (steps % 16 == 15) now_ = std::clamp(next, now_, now_ + std::chrono::milliseconds(10));
    }
    for (auto& host : hosts_) host->check();
  }

  Input input_;
  std::optional<Host> hosts_[2];
  std::unique_ptr<Scribbler> scribbler_;
  uint64_t life_ = 2;
  Time now_{std::chrono::seconds(100)};
};

}  // namespace
}  // namespace urma::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  urma::fuzz::Script(data, size).run();
  return 0;
}
