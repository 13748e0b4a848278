// Executes the counted case the given number of times, in a function of its own that callgrind
// observes.
//   counted                 the compiler that it was made by
//   counted CASE TIMES

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "memseg/segment_table.h"
#include "urma/urma.hpp"

namespace {

using namespace urma;

constexpr size_t segment_bytes = 4096;
constexpr unsigned burst = 8;  // sends that are posted together, so that few passes find nothing

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "counted: %s\n", what);
  std::exit(1);
}

// Two devices under virtual time, so that only their own instructions are counted.
struct End {
  explicit End(const std::string& text)
      : device(open(text, {.threads = Threads::inlined, .observable = false}).value()),
        jetty(device.jetty({.berths = 64, .receives = 8}).value()) {}

  // Returns how many of this operation are among them. Other completions are only checked.
  static unsigned count(Operation operation, std::span<const Completion> some) {
    unsigned count = 0;
    for (const Completion& one : some) {
      if (!one.ok()) fail("a work has failed");
      if (one.operation == operation) ++count;
    }
    return count;
  }
  unsigned look(Operation operation = Operation::receive) {
    std::array<Completion, 4> some;
    return count(operation, std::span(some).first(jetty.poll(some)));
  }
  // Returns after at most 1 us, because virtual time advances only if an end waits.
  unsigned wait(Operation operation) {
    return count(operation, jetty.wait(std::chrono::microseconds(1)));
  }
  // Takes one message. As long as there is no channel, time must pass and the other end must be
  // polled.
  void take_one(End& other) {
    for (int looks = 0; looks < 10'000; ++looks) {
      if (look() > 0 || wait(Operation::receive) > 0) return;
      (void)other.look();
    }
    fail("a message has not come");
  }
  void expect() {
    if (!jetty.receive(inbox, 0)) fail("a buffer was not taken");
  }
  void send_to(const RemoteJetty& to) {
    if (jetty.post(send(std::span(outbox).first(8), to)) != 1) fail("a send was not posted");
  }

  Device device;
  Jetty jetty;
  std::byte inbox[64]{};
  std::byte outbox[64]{};
};

// Sends 8 B on a window, where such sends must be fast.
struct Talk {
  explicit Talk(const std::string& text, unsigned expected = 1) : here(text), there(text) {
    for (unsigned i = 0; i < expected; ++i) there.expect();
  }
  // There and back, until both messages are received.
  void once() {
    here.expect();
    here.send_to(to_there);
    there.take_one(here);
    there.expect();
    there.send_to(to_here);
    here.take_one(there);
  }
  // A burst in one direction, until it is received and acknowledgements have completed the sends.
  void send_burst() {
    for (unsigned i = 0; i < burst; ++i) here.send_to(to_there);
    unsigned received = 0;
    unsigned sent = 0;
    for (int looks = 0; looks < 10'000 && (received < burst || sent < burst); ++looks) {
      for (unsigned some = there.look(); some > 0; --some, ++received) there.expect();
      sent += here.wait(Operation::send);
    }
    if (received < burst || sent < burst) fail("a send was not acknowledged");
  }

  End here;
  End there;
  RemoteJetty to_here = there.device.import(here.jetty.descriptor()).value().jetty;
  RemoteJetty to_there = here.device.import(there.jetty.descriptor()).value().jetty;
};

}  // namespace

// counts.py passes the names of these functions to callgrind.
extern "C" {

[[gnu::noinline]] void counted_register(Device& device, std::span<std::byte> memory, int times) {
  for (int i = 0; i < times; ++i) {
    Segment segment = device.register_memory(memory).value();
    if (!segment.unregister().ok()) fail("a segment was not unregistered");
  }
}

[[gnu::noinline]] void counted_access(const memseg::SegmentTable& table,
                                      const memseg::SegmentTable::Token& token, uint64_t address,
                                      int times) {
  int found = 0;
  for (int i = 0; i < times; ++i) {
    const auto offset = static_cast<uint64_t>(i % 1024);
    found += table.access(token.id, token.value, address + offset, 64, Rights::write).at != nullptr;
  }
  if (found != times) fail("an access was refused");
}

[[gnu::noinline]] void counted_send(Talk& talk, int times) {
  for (int i = 0; i < times; ++i) talk.once();
}

[[gnu::noinline]] void counted_packet(Talk& talk, int times) {
  for (int i = 0; i < times; ++i) talk.send_burst();
}

}  // extern "C"

int main(int count, char** words) {
  if (count < 3) {
#ifdef __clang__
    std::printf("clang-%d\n", __clang_major__);
#else
    std::printf("gcc-%d\n", __GNUC__);
#endif
    return 0;
  }
  const int times = std::atoi(words[2]);
  std::vector<std::byte> memory(segment_bytes);
  if (std::strcmp(words[1], "register") == 0) {
    End end("sim:counted");
    { const Segment first = end.device.register_memory(memory).value(); }
    counted_register(end.device, memory, times);
  } else if (std::strcmp(words[1], "access") == 0) {
    memseg::SegmentTable table(8, SipHash(1, 2));
    memseg::SegmentTable::Made made;
    table.add({memory.data(), memory.size(), Rights::write}, TokenPolicy::plain_text, made);
    counted_access(table, made.token, reinterpret_cast<uint64_t>(memory.data()), times);
  } else if (std::strcmp(words[1], "send") == 0) {
    const std::string path = "/dev/shm/urma-counted-" + std::to_string(getpid());
    Talk talk("sim(net=counted):cxl:" + path + "?size=8M");
    unlink(path.c_str());
    for (int i = 0; i < 16; ++i) talk.once();
    counted_send(talk, times);
  } else if (std::strcmp(words[1], "packet") == 0) {
    // This medium may lose packets, so the channel is one of RTP.
    Talk talk("sim:counted", burst);
    for (int i = 0; i < 16; ++i) talk.send_burst();
    counted_packet(talk, times);
  } else {
    fail("no such case");
  }
}
