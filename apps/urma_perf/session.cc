// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/session.h"

#include "apps/urma_perf/counters.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

constexpr int64_t silence = second;
// Two, because one may be lost while the client allocates gigabytes of memory.
constexpr int most_unanswered = 2;
// While the client's device answers: over a slow network a probe waits behind the data of the test.
constexpr int most_unanswered_alive = 6;

template <class Body>
Body understood(const Message& message) {
  try {
    return body_of<Body>(message);
  } catch (const NotUnderstood& why) {
    throw Failure(Exit::error, "\"" + message.type + "\" is not understood: " + why.what() +
                                   ". Fix: use the same urma_perf on both sides");
  }
}

}  // namespace

Session::Session(uint64_t number, Device& device, std::span<Jfc* const> queues, bool alone,
                 const Client& client, const Hello& hello)
    : number_(number),
      device_(device),
      queues_(queues),
      alone_(alone),
      client_(client),
      answers_to_(must(device.import(hello.jetty), "the client's Jetty").jetty),
      presence_(must(device.import(hello.presence), "the client's memory").segment),
      heard_(now()) {}

Message Session::answer(const Message& question) {
  heard_ = now();
  Message answer{.id = question.id, .type = "", .body = nullptr};
  if (question.type == "setup") {
    answer.type = "ready";
    answer.body = setup(understood<Setup>(question));
  } else if (question.type == "begin") {
    answer.type = "begun";
    begin(understood<Begin>(question));
  } else if (question.type == "end") {
    answer.type = "report";
    answer.body = end();
  } else if (question.type == "finish") {
    answer.type = "totals";
    answer.body = finish();
  } else if (question.type == "ping") {
    answer.type = "pong";
  } else if (question.type == "bye") {
    answer.type = "bye";
    lose();
  } else {
    throw Failure(Exit::error,
                  "\"" + question.type.substr(0, 40) +
                      "\" is not a question. Fix: use the same urma_perf on both sides");
  }
  return answer;
}

// ---- the case

namespace {

Side met(Device& device, const Setup& setup, std::span<Jfc* const> queues) {
  Side side(device, setup.what, Place::server, queues);
  side.meet(device, setup.side);
  return side;
}

}  // namespace

Session::Running::Running(Device& device, const Setup& setup, std::span<Jfc* const> queues,
                          bool alone)
    : side(met(device, setup, queues)), begin(must(device.stats(), "statistics")) {
  responders.reserve(queues.size());
  while (responders.size() < queues.size()) responders.emplace_back(side, alone);
  if (!setup.what.limit) return;
  limit = make_limit(device, side, Place::server);
  limit->meet(setup.raw);
}

nlohmann::json Session::setup(const Setup& setup) {
  if (const std::string why = objection(setup.what); !why.empty()) {
    throw Failure(Exit::usage, why);
  }
  running_.reset();  // destroys the memory of the previous case first
  running_ = std::make_unique<Running>(device_, setup, queues_, alone_);
  Ready ready{.side = running_->side.describe(), .raw = ""};
  if (running_->limit) ready.raw = running_->limit->told();
  return ready;
}

void Session::begin(const Begin& begin) {
  if (!running_ || (begin.limit && !running_->limit)) {
    throw Failure(Exit::error,
                  "a round was begun without its test. Fix: use the same urma_perf on "
                  "both sides");
  }
  in_limit_ = begin.limit;
  waited_ = waited_for_processor();
  if (in_limit_) {
    running_->limit->begin();
  } else {
    const auto profile = device_.profile();
    profile_ = profile ? std::optional(*profile) : std::nullopt;
    for (Responder& responder : running_->responders) responder.begin(profile_.has_value());
  }
}

Report Session::end() {
  if (!running_) return {};
  Report report;
  if (in_limit_) {
    report.raw_bytes_per_second = running_->limit->tally().bytes_per_second();
  } else {
    const auto profile = profile_of_round();
    report = report_of(running_->side, running_->responders);
    report.profile = profile;
  }
  in_limit_ = false;
  report.waited = waited_for_processor() - waited_;
  return report;
}

// Returns the times of the stages since the round began, before the bytes are checked.
std::optional<SideProfile> Session::profile_of_round() {
  if (!profile_) return std::nullopt;
  SideProfile out = between(*profile_, must(device_.profile(), "the times of stages"),
                            static_cast<uint32_t>(queues_.size()));
  Builds builds(true);
  for (const Responder& responder : running_->responders) builds.add(responder.builds());
  out.build = builds.time();
  return out;
}

Totals Session::finish() {
  if (!running_) return {};
  const Statistics end = must(device_.stats(), "statistics");
  Totals totals{.counters = difference(end, running_->begin)};
  running_.reset();
  return totals;
}

void Session::run_limit(int64_t time) {
  // Called after each empty poll of the server, so it must not read a clock.
  if (in_limit_) running_->limit->run(now() + time);
}

// ---- does the client still run?

std::optional<Work> Session::probe(int64_t time, std::span<std::byte> to) {
  if (probing_ || over_ || time - heard_ < silence) return std::nullopt;
  probing_ = true;
  heard_ = time;  // the next probe is not due before
  return urma::read(to, presence_);
}

void Session::handle_probe(const Completion& completion) {
  probing_ = false;
  unanswered_ = completion.ok() ? 0 : unanswered_ + 1;
  // The client's process has restarted or closed its device, so no further messages of it will
  // come.
  const bool gone =
      completion.status == Status::peer_restarted || completion.status == Status::remote_access;
  const bool lost = completion.status == Status::peer_unreachable;
  if (gone || unanswered_ >= (lost ? most_unanswered : most_unanswered_alive)) lose();
}

void Session::lose() {
  running_.reset();
  over_ = true;
}

}  // namespace urma::apps::perf
