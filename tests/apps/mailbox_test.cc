#include "apps/urma_perf/mailbox.h"

#include <chrono>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace urma::perf {
namespace {

using namespace std::chrono_literals;

// Returns the texts that arrive at a mailbox until `count` receives have completed.
std::vector<std::string> arrivals(Mailbox& mailbox, size_t count) {
  std::vector<std::string> texts;
  size_t seen = 0;
  for (int turns = 0; turns < 500 && seen < count; ++turns) {
    for (const Completion& completion : mailbox.jetty().wait(10ms)) {
      if (completion.operation == Operation::receive) ++seen;
      if (auto text = mailbox.handle(completion)) texts.push_back(std::move(*text));
    }
  }
  REQUIRE(seen == count);
  return texts;
}

}  // namespace

TEST_CASE("writes and sends with an immediate are not taken for control messages") {
  Device ours = urma::open("sim:mailbox").value();
  Device theirs = urma::open("sim:mailbox").value();
  Mailbox mailbox(ours, nullptr);
  // More bytes than all buffers of the mailbox together: if they were taken for the length of a
  // text, it would be out of bounds.
  std::vector<std::byte> bytes(size_t{4} << 20);
  const Segment memory = ours.allocate(bytes.size()).value();
  const RemoteSegment segment = theirs.import(memory.descriptor()).value().segment;
  const RemoteJetty jetty = theirs.import(mailbox.jetty().descriptor()).value().jetty;
  Mailbox peer(theirs, nullptr);
  REQUIRE(peer.jetty().post(urma::write(bytes, segment, 0).to(jetty).immediate(7)) == 1);
  CHECK(arrivals(mailbox, 1).empty());
  REQUIRE(peer.jetty().post(
              urma::send(std::span<const std::byte>(bytes).first(8), jetty).immediate(8)) == 1);
  CHECK(arrivals(mailbox, 1).empty());
  // More messages arrive than there are buffers, so each buffer is used again.
  for (uint64_t id = 1; id <= 70; ++id) {
    peer.send(jetty, {.id = id, .type = "bye", .body = nullptr});
    const auto texts = arrivals(mailbox, 1);
    REQUIRE(texts.size() == 1);
    CHECK(parse_message(texts[0]).id == id);
    while (!peer.idle()) {
      for (const Completion& completion : peer.jetty().wait(10ms)) peer.handle(completion);
    }
  }
}

}  // namespace urma::perf
