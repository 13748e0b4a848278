// SPDX-License-Identifier: Apache-2.0
#include "apps/common/dialogue.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "apps/common/asker.h"
#include "base/prng.h"
#include "tests/catch.h"

namespace urma::apps {

struct Sample {
  uint32_t number = 0;
  int64_t change = 0;
  bool whether = false;
  std::string name;
  std::vector<uint32_t> list;
  URMA_BODY(Sample, number, change, whether, name, list)
};

namespace {

using namespace std::chrono_literals;
using nlohmann::json;

Wording wording() {
  return {.program = "urma_test", .most_bytes = 16 * 1024, .shorten = "be brief"};
}

// Returns the texts that arrive until `count` receives have completed.
std::vector<std::string> arrivals(Dialogue& dialogue, size_t count) {
  std::vector<std::string> texts;
  size_t seen = 0;
  for (int turns = 0; turns < 500 && seen < count; ++turns) {
    for (const Completion& completion : dialogue.jetty().wait(10ms)) {
      if (completion.operation == Operation::receive) ++seen;
      if (auto text = dialogue.handle(completion)) texts.push_back(std::move(*text));
    }
  }
  REQUIRE(seen == count);
  return texts;
}

RemoteJetty reach(Device& from, const Dialogue& to) {
  return from.import(const_cast<Dialogue&>(to).jetty().descriptor()).value().jetty;
}

// Returns why the text is not a message; empty if it is a message.
std::string objection(std::string_view text) {
  try {
    parse_message(text);
    return "";
  } catch (const NotUnderstood& why) {
    return why.what();
  }
}

std::string objection_to_body(const json& body) {
  try {
    body_of<Sample>({.id = 1, .type = "sample", .body = body});
    return "";
  } catch (const NotUnderstood& why) {
    return why.what();
  }
}

json sample() {
  return {{"number", 7}, {"change", -7}, {"whether", true}, {"name", "n"}, {"list", {1, 2}}};
}
json sample_with(const char* field, const json& value) {
  json body = sample();
  body[field] = value;
  return body;
}

// Returns the message and the exit code of the Failure that the function must throw.
template <class Do>
std::pair<std::string, Exit> failure_of(Do&& run) {
  try {
    run();
  } catch (const Failure& failure) {
    return {failure.what(), failure.exit()};
  }
  FAIL("it did not fail");
  return {};
}

}  // namespace

TEST_CASE("writes and sends with an immediate are not taken for messages") {
  Device ours = urma::open("sim:dialogue").value();
  Device theirs = urma::open("sim:dialogue").value();
  Dialogue dialogue(ours, {.wording = wording()});
  // These are more bytes than all buffers of the dialogue have: a text of this length would exceed
  // them.
  std::vector<std::byte> bytes(size_t{4} << 20);
  const Segment memory = ours.allocate(bytes.size()).value();
  const RemoteSegment segment = theirs.import(memory.descriptor()).value().segment;
  const RemoteJetty jetty = reach(theirs, dialogue);
  Dialogue peer(theirs, {.wording = wording()});
  peer.post(jetty.peer, urma::write(bytes, segment, 0).to(jetty).immediate(7));
  CHECK(arrivals(dialogue, 1).empty());
  peer.post(jetty.peer, urma::send(std::span<const std::byte>(bytes).first(8), jetty).immediate(8));
  CHECK(arrivals(dialogue, 1).empty());
  // All buffers have been posted again: more messages arrive than there are buffers.
  for (uint64_t id = 1; id <= 70; ++id) {
    peer.send(jetty, {.id = id, .type = "bye", .body = nullptr});
    const auto texts = arrivals(dialogue, 1);
    REQUIRE(texts.size() == 1);
    CHECK(parse_message(texts[0]).id == id);
    while (!peer.idle()) {
      for (const Completion& completion : peer.jetty().wait(10ms)) peer.handle(completion);
    }
  }
}

TEST_CASE("the queue for a peer that takes nothing is bounded, and others get messages meanwhile") {
  Device ours = urma::open("sim:dialogue-bound").value();
  Device idle = urma::open("sim:dialogue-bound").value();
  Device busy = urma::open("sim:dialogue-bound").value();
  constexpr uint32_t share = 3;
  constexpr size_t most = 20;
  Dialogue dialogue(ours, {.wording = wording(),
                           .berths = share + 1,
                           .berths_one = share,
                           .most_waiting = 2 * most,
                           .most_waiting_one = most});
  Jetty deaf = idle.jetty({.receives = 4}).value();  // without buffers
  const RemoteJetty to_deaf = ours.import(deaf.descriptor()).value().jetty;
  Dialogue other(busy, {.wording = wording()});
  const RemoteJetty to_other = reach(ours, other);
  const Message message{.id = 1, .type = "checks", .body = std::string(1000, 'x')};
  size_t sent = 0;
  const auto [why, exit] = failure_of([&] {
    for (; sent < 1000; ++sent) dialogue.send(to_deaf, message);
  });
  CHECK(sent == share + most);
  CHECK(dialogue.waiting() == most);
  CHECK(exit == Exit::peer_lost);
  CHECK(why ==
        "20 messages wait for this peer, which does not take them. Fix: check whether the other "
        "side still runs");
  constexpr uint64_t answers = 10;
  for (uint64_t id = 2; id < 2 + answers; ++id) {
    dialogue.send(to_other, {.id = id, .type = "welcome", .body = nullptr});
  }
  // All answers arrive before the first work to the stalled peer has timed out. At the end all
  // works have completed.
  size_t arrived = 0, timed_out = 0;
  for (int turns = 0; turns < 6000 && !dialogue.idle(); ++turns) {
    for (const Completion& completion : dialogue.jetty().wait(5ms)) {
      timed_out += completion.status == Status::receiver_not_ready;
      dialogue.handle(completion);
    }
    for (const Completion& completion : other.jetty().wait(5ms)) {
      const auto text = other.handle(completion);
      if (!text) continue;
      CHECK(parse_message(*text).id == 2 + arrived++);
      CHECK(timed_out == 0);
    }
  }
  CHECK(arrived == answers);
  CHECK(timed_out == sent);
  CHECK(dialogue.idle());
}

TEST_CASE("peers take turns, and the messages to one peer keep their order") {
  Device ours = urma::open("sim:dialogue-turns").value();
  Device first = urma::open("sim:dialogue-turns").value();
  Device second = urma::open("sim:dialogue-turns").value();
  Dialogue dialogue(ours, {.wording = wording(), .berths = 1});
  Dialogue one(first, {.wording = wording()});
  Dialogue two(second, {.wording = wording()});
  const RemoteJetty to_one = reach(ours, one);
  const RemoteJetty to_two = reach(ours, two);
  for (const RemoteJetty& to : {to_one, to_one, to_one, to_two, to_two}) {
    dialogue.send(to, {.id = 1, .type = "x", .body = nullptr});
  }
  std::vector<uint64_t> order;
  for (int turns = 0; turns < 500 && !dialogue.idle(); ++turns) {
    for (const Completion& completion : dialogue.jetty().wait(10ms)) {
      order.push_back(completion.tag - Dialogue::message_tag);
      CHECK(completion.ok());
      dialogue.handle(completion);
    }
  }
  // When the second peer comes, the first peer's next message has its turn already.
  CHECK(order == std::vector<uint64_t>{0, 1, 3, 2, 4});
}

TEST_CASE("messages that are not understood and that cannot be answered are counted apart") {
  Device device = urma::open("sim:dialogue-complaints").value();
  Dialogue dialogue(device, {.wording = wording()});
  CHECK(dialogue.complaints().empty());
  Completion arrival;
  arrival.from.index = 3;
  arrival.from_jetty = JettyId{7};
  dialogue.leave_unanswered(arrival, "no room");
  REQUIRE(dialogue.complaints().size() == 1);
  CHECK(dialogue.complaints()[0] ==
        "1 message could not be answered; the last one from peer 3, Jetty 7: no room");
  for (const char* why : {"first", "second"}) dialogue.drop(arrival, why);
  REQUIRE(dialogue.complaints().size() == 2);
  CHECK(dialogue.complaints()[0] ==
        "2 messages were not understood and dropped; the last one from peer 3, Jetty 7: second");
}

TEST_CASE("the bound on all waiting messages holds for many peers together") {
  Device ours = urma::open("sim:dialogue-many").value();
  Dialogue dialogue(
      ours, {.wording = wording(), .berths = 1, .most_waiting = 30, .most_waiting_one = 20});
  std::vector<Device> devices;
  std::vector<Jetty> deaf;
  std::string why;
  size_t sent = 0;
  for (int peer = 0; peer < 3; ++peer) {
    devices.push_back(urma::open("sim:dialogue-many").value());
    deaf.push_back(devices.back().jetty({.receives = 4}).value());
    const RemoteJetty to = ours.import(deaf.back().descriptor()).value().jetty;
    why = failure_of([&] {
            for (;; ++sent) dialogue.send(to, {.id = 1, .type = "x", .body = nullptr});
          }).first;
  }
  CHECK(sent == 31);
  CHECK(why.starts_with("30 messages wait for peers that do not take them. Fix: "));
  CHECK(dialogue.waiting() == 30);
}

TEST_CASE("a message that is too long is refused with a cure") {
  const auto [why, exit] = failure_of(
      [] { to_text({.id = 1, .type = "offer", .body = std::string(20'000, 'x')}, wording()); });
  CHECK(exit == Exit::usage);
  CHECK(why.find("more than 16384. Fix: be brief") != std::string::npos);
}

TEST_CASE("an id that is not a whole number from 0 on is invalid") {
  CHECK(objection(R"({"id":7,"type":"x","body":null})").empty());
  CHECK(objection(R"({"id":18446744073709551615,"type":"x","body":null})").empty());
  for (const char* id : {"-1", "-9223372036854775808", "1.5", "1e3", "18446744073709551616",
                         "\"7\"", "null", "true", "[1]"}) {
    CAPTURE(id);
    const std::string why = objection(fmt::format(R"({{"id":{},"type":"x","body":{{}}}})", id));
    CHECK(why.find("\"id\" is not a whole number from 0 to 18446744073709551615") !=
          std::string::npos);
  }
}

TEST_CASE("a text that is not a message is refused, with what is wrong") {
  CHECK(objection("") == "it is not JSON");
  CHECK(objection("{") == "it is not JSON");
  CHECK(objection("\xff") == "it is not JSON");
  CHECK(objection("[]") == "it is not a JSON object");
  CHECK(objection("7") == "it is not a JSON object");
  CHECK(objection("{}") == "\"id\" is missing");
  CHECK(objection(R"({"id":1,"body":{}})") == "\"type\" is missing");
  CHECK(objection(R"({"id":1,"type":3,"body":{}})") == "\"type\" is not text");
  CHECK(objection(R"({"id":1,"type":"x"})") == "\"body\" is missing");
}

TEST_CASE("a body with a missing or wrong field is refused, and the error names the field") {
  REQUIRE(objection_to_body(sample()).empty());
  CHECK(objection_to_body(json(nullptr)) == "\"its body\" is not an object");
  CHECK(objection_to_body(json::array()) == "\"its body\" is not an object");
  for (const char* field : {"number", "change", "whether", "name", "list"}) {
    json body = sample();
    body.erase(field);
    CHECK(objection_to_body(body) == fmt::format("\"{}\" is missing", field));
    CHECK(objection_to_body(sample_with(field, nullptr))
              .starts_with(fmt::format("\"{}\" is not", field)));
    CHECK(objection_to_body(sample_with(field, json::object()))
              .starts_with(fmt::format("\"{}\" is not", field)));
  }
  CHECK(objection_to_body(sample_with("number", -1)) ==
        "\"number\" is not a whole number from 0 to 4294967295");
  CHECK(!objection_to_body(sample_with("number", uint64_t{1} << 32)).empty());
  CHECK(!objection_to_body(sample_with("number", 0.5)).empty());
  CHECK(!objection_to_body(sample_with("change", UINT64_MAX)).empty());
  CHECK(objection_to_body(sample_with("change", INT64_MIN)).empty());
  CHECK(!objection_to_body(sample_with("whether", 1)).empty());
  CHECK(!objection_to_body(sample_with("list", {1, -2})).empty());
}

TEST_CASE("whatever bytes arrive, the only exception is that they are not understood") {
  const std::string whole = to_text({.id = 3, .type = "sample", .body = sample()}, wording());
  Prng prng(24);
  size_t understood = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole.substr(0, 1 + prng.next() % whole.size());
    if (round % 2 == 0) text = whole;
    for (uint64_t changes = prng.next() % 4; changes > 0; --changes) {
      text[prng.next() % text.size()] = static_cast<char>(prng.next());
    }
    try {
      body_of<Sample>(parse_message(text));
      ++understood;
    } catch (const NotUnderstood& why) {
      REQUIRE(std::string_view(why.what()).size() > 10);
    }
  }
  CHECK(understood > 0);
  CHECK(objection(std::string(16 * 1024, '[')) == "it is not JSON");
}

TEST_CASE("\"failed\" is written with all its fields, and read also from older peers") {
  const json written = Failed{.exit = Exit::peer_lost, .message = "m", .again = true};
  CHECK(written == json{{"exit", 5}, {"message", "m"}, {"again", true}});
  const auto read = [](const json& body) {
    return body_of<Failed>({.id = 1, .type = "failed", .body = body});
  };
  CHECK(read(written).again);
  CHECK(read(written).exit == Exit::peer_lost);
  CHECK_FALSE(read({{"exit", 6}, {"message", "m"}}).again);
  CHECK(read({{"exit", 6}, {"message", "m"}}).exit == Exit::version_mismatch);
  // A failure never ends this program as if all was well, or with a code that means nothing.
  for (const int64_t exit : {int64_t{0}, int64_t{-1}, int64_t{99}, int64_t{1} << 40}) {
    CHECK(read({{"exit", exit}, {"message", "m"}}).exit == Exit::error);
  }
  CHECK_THROWS_AS(read({{"exit", 1}}), NotUnderstood);
  CHECK_THROWS_AS(read({{"exit", 1}, {"message", 7}}), NotUnderstood);
  CHECK_THROWS_AS(read({{"exit", 1}, {"message", "m"}, {"again", 1}}), NotUnderstood);
}

namespace {

// A client that has asked a question, and a server whose answer the test chooses.
struct Pair {
  Device client_device = urma::open("sim:dialogue-asker").value();
  Device server_device = urma::open("sim:dialogue-asker").value();
  Dialogue client{client_device, {.wording = wording()}};
  Dialogue server{server_device, {.wording = wording()}};
  Asker asker{client, "the server at home"};
  RemoteJetty back = reach(server_device, client);

  Pair() { asker.meet(reach(client_device, server)); }

  Message question() { return parse_message(arrivals(server, 1).at(0)); }
  void answer(const std::string& text) {
    server.post(back.peer, urma::send(std::as_bytes(std::span(text)), back));
    take();
  }
  void take() {
    for (const Completion& completion : client.jetty().wait(10ms)) handle(completion);
    for (int turns = 0; turns < 500 && !taken; ++turns) {
      for (const Completion& completion : client.jetty().wait(10ms)) handle(completion);
    }
    REQUIRE(std::exchange(taken, false));
  }
  void handle(const Completion& completion) {
    const auto text = client.handle(completion);
    if (!text) return;
    taken = true;
    asker.take(completion, *text);
  }
  bool taken = false;
};

}  // namespace

TEST_CASE("an asker returns the answer to its last question only") {
  Pair pair;
  pair.asker.ask("checks", sample());
  const Message first = pair.question();
  CHECK(first.type == "checks");
  pair.asker.ask("checks", sample());
  const Message second = pair.question();
  CHECK(second.id != first.id);
  pair.answer(to_text({.id = first.id, .type = "late", .body = sample()}, wording()));
  CHECK_FALSE(pair.asker.answer());
  pair.answer(to_text({.id = second.id, .type = "good", .body = sample()}, wording()));
  REQUIRE(pair.asker.answer());
  CHECK(pair.asker.answer()->type == "good");
  CHECK(pair.asker.read<Sample>(*pair.asker.answer()).list == std::vector<uint32_t>{1, 2});
}

TEST_CASE("an answer that is not understood is an error that names the peer and what is wrong") {
  Pair pair;
  pair.asker.ask("begin", sample());
  const Message question = pair.question();
  const auto [garbage, exit] = failure_of([&] { pair.answer("no JSON"); });
  CHECK(exit == Exit::error);
  CHECK(garbage ==
        "the answer of the server at home to \"begin\" is not understood: it is not JSON. Fix: use "
        "the same urma_test on both sides");
  pair.taken = false;
  const auto [said, code] = failure_of([&] {
    pair.answer(to_text({.id = question.id, .type = "failed", .body = nullptr}, wording()));
  });
  CHECK(said.find("the server at home") != std::string::npos);
  pair.taken = false;
  pair.answer(
      to_text({.id = question.id, .type = "begun", .body = sample_with("number", -1)}, wording()));
  REQUIRE(pair.asker.answer());
  const auto [body, other] = failure_of([&] { pair.asker.read<Sample>(*pair.asker.answer()); });
  CHECK(body.find("the answer of the server at home to \"begin\" is not understood: \"number\" is "
                  "not a whole number") == 0);
}

TEST_CASE("a peer's \"failed\" is thrown, with whether a retry may help") {
  Pair pair;
  for (const bool again : {false, true}) {
    for (const bool of_its_own : {false, true}) {
      pair.asker.ask("offer", sample());
      const uint64_t id = pair.question().id;
      pair.answer(
          to_text(failed_message(of_its_own ? 0 : id,
                                 {.exit = Exit::wrong_bytes, .message = "no room", .again = again}),
                  wording()));
      CHECK(pair.asker.refused());
      try {
        (void)pair.asker.answer();
        FAIL("it was not thrown");
      } catch (const Refused& refused) {
        CHECK(refused.again() == again);
        CHECK(refused.exit() == Exit::wrong_bytes);
        CHECK(std::string_view(refused.what()) == "the server at home: no room");
      }
    }
  }
}

TEST_CASE("a message of another peer than the one that was asked is dropped and counted") {
  Pair pair;
  Device third = urma::open("sim:dialogue-asker").value();
  Dialogue stranger(third, {.wording = wording()});
  pair.asker.ask("hello", sample());
  const uint64_t id = pair.question().id;
  stranger.send(reach(third, pair.client), failed_message(id, {.message = "give up"}));
  pair.take();
  CHECK_FALSE(pair.asker.answer());
  const auto complaints = pair.client.complaints();
  REQUIRE(complaints.size() == 1);
  CHECK(complaints[0].starts_with("1 message was not understood and dropped; the last one from"));
}

}  // namespace urma::apps
