// SPDX-License-Identifier: Apache-2.0
#include "engine/questions.h"

#include <poll.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/timer_descriptor.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using engine::NameMessage;
using engine::Question;
using engine::Questions;
using Kind = NameMessage::Kind;
using std::chrono::milliseconds;

const Time asked_at{milliseconds(5000)};
const PeerId publisher{1, 1};
const PeerId restarted{1, 2};

// An open question to `publisher`, which times out one second after `asked_at`.
struct Asked {
  Questions& questions;
  Question question;

  explicit Asked(Questions& to) : questions(to) {
    question.name = "x";
    question.until = asked_at + milliseconds(1000);
    questions.add(question, asked_at);
    question.peer = publisher;
  }
  void answered(Kind kind, std::string_view rest = {}, PeerId from = publisher) {
    questions.take_answer(from, {kind, question.number, rest});
  }
};

TEST_CASE("a question is due at once, then every 100 ms") {
  Questions questions;
  Asked asked(questions);
  std::vector<int64_t> due;
  for (int at = 0; at < 350; at += 10) {
    if (asked.question.take_due(asked_at + milliseconds(at))) due.push_back(at);
  }
  CHECK(due == std::vector<int64_t>{0, 100, 200, 300});
}

TEST_CASE("a question that was repeated late is due 100 ms later") {
  Questions questions;
  Asked asked(questions);
  CHECK(asked.question.take_due(asked_at + milliseconds(170)));
  CHECK_FALSE(asked.question.take_due(asked_at + milliseconds(269)));
  CHECK(asked.question.take_due(asked_at + milliseconds(270)));
}

TEST_CASE("a question ends when it is answered or has timed out") {
  Questions questions;
  Asked asked(questions);
  CHECK_FALSE(asked.question.ended(asked_at + milliseconds(999)));
  CHECK(asked.question.ended(asked_at + milliseconds(1000)));
  CHECK(asked.question.status == Status::timed_out);
  asked.answered(Kind::found, "the descriptor");
  CHECK(asked.question.ended(asked_at));
  CHECK(asked.question.status == Status::ok);
  CHECK(asked.question.line == "the descriptor");
}

TEST_CASE("a question stays open if nothing is published yet") {
  Questions questions;
  Asked asked(questions);
  asked.answered(Kind::none);
  CHECK_FALSE(asked.question.ended(asked_at));
  CHECK(asked.question.status == Status::not_found);
  asked.answered(Kind::found, "late");
  CHECK(asked.question.status == Status::ok);
  CHECK(asked.question.line == "late");
}

TEST_CASE("the first answer is kept") {
  Questions questions;
  Asked asked(questions);
  asked.answered(Kind::found, "first");
  asked.answered(Kind::found, "second");
  asked.answered(Kind::none);
  CHECK(asked.question.status == Status::ok);
  CHECK(asked.question.line == "first");
}

TEST_CASE("an answer of another peer, with another number, or that is a question has no effect") {
  Questions questions;
  Asked asked(questions);
  asked.answered(Kind::found, "forged", restarted);
  questions.take_answer(publisher, {Kind::found, asked.question.number + 1, "forged"});
  questions.take_answer(publisher, {Kind::none, asked.question.number - 1});
  asked.answered(Kind::find, "x");
  CHECK_FALSE(asked.question.done);
  CHECK(asked.question.status == Status::timed_out);
  CHECK(asked.question.line.empty());
}

TEST_CASE("each open question gets its own answer, in whatever order they end") {
  Questions questions;
  for (const std::vector<size_t>& order :
       {std::vector<size_t>{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
    std::vector<std::unique_ptr<Asked>> open;
    for (int i = 0; i < 3; ++i) open.push_back(std::make_unique<Asked>(questions));
    for (const size_t ends : order) {
      open[ends]->answered(Kind::found, std::to_string(ends));
      CHECK(open[ends]->question.line == std::to_string(ends));
      questions.remove(open[ends]->question);
      // An answer that comes later finds nothing, although its question's memory may be gone.
      const uint32_t number = open[ends]->question.number;
      open[ends].reset();
      questions.take_answer(publisher, {Kind::found, number, "late"});
    }
  }
}

TEST_CASE("an answer makes the timer of its question readable before the time that was set") {
  Questions questions;
  Asked asked(questions);
  TimerDescriptor timer;
  REQUIRE(timer.make());
  asked.question.timer = timer.number();
  const auto readable = [&] {
    pollfd entry{timer.number(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  timer.set(never);
  asked.answered(Kind::none);
  CHECK_FALSE(readable());
  asked.answered(Kind::found, "line");
  CHECK(readable());
  timer.set(read_clock() + std::chrono::hours(1));
  CHECK_FALSE(readable());
  timer.set(read_clock());
  CHECK(readable());
}

}  // namespace
}  // namespace urma::test
