// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/recording.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/servers.h"
#include "apps/urma_notify/incoming.h"
#include "urma/urma.hpp"

namespace urma::apps::notify {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr uint64_t works = 8;
constexpr uint32_t demo_berths = 3;
constexpr size_t text_bytes = 32;

uint64_t calendar_time() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Failure demo_failed(std::string_view what) {
  return {Exit::error, fmt::format("the demonstration: {}. Fix: see urma_info --doctor", what)};
}

// A folder for the captures, which disappears with this object.
class Captured {
 public:
  Captured() : path_(make()) {}
  Captured(const Captured&) = delete;
  ~Captured() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path file(const char* name) const { return path_ / name; }

 private:
  static fs::path make() {
    const char* const named = std::getenv("TMPDIR");
    std::string pattern =
        std::string(named != nullptr && *named != '\0' ? named : "/tmp") + "/urma_notify-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
      throw demo_failed(pattern + ": " + std::strerror(errno));
    }
    return pattern;
  }
  const fs::path path_;
};

// One immediate, as the receiver has polled it.
struct Arrival {
  uint64_t nanoseconds = 0;
  uint64_t number = 0;
  std::array<char, text_bytes> memory{};
};

// The child: publishes its memory and its Jetty through `out`, waits for the immediates, and then
// writes what it has seen.
void receive_in_child(const fs::path& capture, int out) {
  std::vector<Arrival> seen;
  {
    Device device =
        apps::open_device(fmt::format("pcap(file={}):udp:127.0.0.1:0", capture.string()));
    Segment memory = must(device.allocate(works * text_bytes), "memory");
    Jetty jetty = must(device.jetty({.receives = 16}), "a Jetty");
    apps::write_all(out, memory.descriptor() + "\n" + jetty.descriptor() + "\n");
    for (const uint64_t until = calendar_time() + 20'000'000'000;
         seen.size() < works && calendar_time() < until && !apps::interrupted();) {
      for (const Completion& arrived : jetty.wait(100ms)) {
        if (!arrived.ok() || arrived.immediate == 0 || arrived.immediate > works) continue;
        Arrival& arrival = seen.emplace_back();
        arrival.nanoseconds = calendar_time();
        arrival.number = arrived.immediate;
        std::memcpy(arrival.memory.data(),
                    memory.bytes().data() + (arrived.immediate - 1) * text_bytes, text_bytes);
      }
    }
    // The answers to the last works leave before the device closes.
    (void)jetty.wait(50ms);
  }
  apps::write_all(out, {reinterpret_cast<const char*>(seen.data()), seen.size() * sizeof(Arrival)});
}

std::string read_line(int in) {
  std::string line;
  for (char c = 0; ::read(in, &c, 1) == 1 && c != '\n' && line.size() < 4096;) line += c;
  return line;
}

std::vector<Arrival> read_arrivals(int in) {
  std::string bytes;
  std::array<char, 4096> some;
  for (ssize_t got = 0; (got = ::read(in, some.data(), some.size())) > 0;) {
    bytes.append(some.data(), static_cast<size_t>(got));
  }
  std::vector<Arrival> seen(bytes.size() / sizeof(Arrival));
  std::memcpy(seen.data(), bytes.data(), seen.size() * sizeof(Arrival));
  return seen;
}

// Posts the works as berths become vacant, and records posts and completions.
void send_all(const fs::path& capture, int in, std::vector<Event>& events) {
  const std::string segment = read_line(in), target = read_line(in);
  Device device = apps::open_device(fmt::format(
      "pcap(file={}):fault(loss=25%,only=data,seed=11):udp:127.0.0.1:0", capture.string()));
  const RemoteSegment memory = must(device.import(segment), "the receiver").segment;
  const RemoteJetty there = must(device.import(target), "the receiver").jetty;
  Jetty jetty = must(device.jetty({.berths = demo_berths}), "a Jetty");
  std::array<std::array<char, text_bytes>, works> texts{};
  uint32_t held = 0;
  for (uint64_t posted = 0, done = 0; done < works;) {
    while (posted < works && jetty.vacant_berths() > 0) {
      const std::string text = fmt::format("text {} of {}", posted + 1, works);
      std::ranges::copy(text, texts[posted].begin());
      const Work work =
          urma::write(std::as_bytes(std::span(texts[posted])), memory, posted * text_bytes)
              .to(there)
              .immediate(posted + 1)
              .tag(posted + 1);
      const uint64_t now = calendar_time();
      if (jetty.post(work) != 1) break;
      events.push_back(
          {.nanoseconds = now, .kind = Event::Kind::post, .number = ++posted, .berths = ++held});
    }
    if (apps::interrupted()) throw Failure(Exit::interrupted, "interrupted. Fix: run it again");
    for (const Completion& completion : jetty.wait(100ms)) {
      if (!completion.ok()) throw apps::failed_work("the demonstration", completion.status);
      ++done;
      events.push_back({.nanoseconds = calendar_time(),
                        .kind = Event::Kind::completion,
                        .number = completion.tag,
                        .berths = --held});
    }
  }
}

// Adds the packets that one side sent, and those of them that the other side received. A packet
// that was sent again has the same bytes: what arrives is the last copy that had left by then.
void add_packets(const std::vector<CapturedPacket>& from, const std::vector<CapturedPacket>& to,
                 bool to_receiver, std::vector<Event>& events) {
  // The devices read their clocks once for several packets, so an arrival may seem a little early.
  constexpr uint64_t tolerance = 500'000;
  const size_t begin = events.size();
  std::vector<const CapturedPacket*> sent;
  for (const CapturedPacket& packet : from) {
    if (!packet.outgoing) continue;
    sent.push_back(&packet);
    events.push_back({.nanoseconds = packet.nanoseconds,
                      .kind = Event::Kind::lost,
                      .to_receiver = to_receiver,
                      .text = packet_name(packet.bytes)});
  }
  for (const CapturedPacket& packet : to) {
    if (packet.outgoing) continue;
    for (size_t i = sent.size(); i-- > 0;) {
      Event& leaves = events[begin + i];
      if (leaves.kind != Event::Kind::lost || sent[i]->bytes != packet.bytes ||
          sent[i]->nanoseconds > packet.nanoseconds + tolerance) {
        continue;
      }
      leaves.kind = Event::Kind::leaves;
      Event arrives = leaves;
      arrives.kind = Event::Kind::arrives;
      arrives.nanoseconds = std::max(packet.nanoseconds, leaves.nanoseconds);
      events.push_back(arrives);
      break;
    }
  }
}

}  // namespace

Recording record() {
  const Captured captured;
  const fs::path ours = captured.file("sender.pcapng"), theirs = captured.file("receiver.pcapng");
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) throw demo_failed(std::strerror(errno));
  const File in(ends[0]);
  File out(ends[1]);
  const pid_t child = fork();
  if (child < 0) throw demo_failed(std::strerror(errno));
  if (child == 0) {
    int code = 1;
    try {
      receive_in_child(theirs, out.get());
      code = 0;
    } catch (const std::exception& why) {
      apps::print_error(fmt::format("urma_notify: the receiver: {}", apps::printable(why.what())));
    }
    _exit(code);
  }
  out = File();
  Recording recording{.sender = getpid(), .receiver = child, .berths = demo_berths, .events = {}};
  std::vector<Arrival> seen;
  try {
    send_all(ours, in.get(), recording.events);
    seen = read_arrivals(in.get());
  } catch (const Failure&) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    throw;
  }
  waitpid(child, nullptr, 0);
  if (seen.size() != works) throw demo_failed("the receiver has ended early");
  for (const Arrival& arrival : seen) {
    recording.events.push_back(
        {.nanoseconds = arrival.nanoseconds,
         .kind = Event::Kind::immediate,
         .number = arrival.number,
         .text = std::string(arrival.memory.data(), strnlen(arrival.memory.data(), text_bytes))});
  }
  const auto sent = read_capture(ours), received = read_capture(theirs);
  add_packets(sent, received, true, recording.events);
  add_packets(received, sent, false, recording.events);
  std::ranges::stable_sort(recording.events, {}, &Event::nanoseconds);
  return recording;
}

}  // namespace urma::apps::notify
