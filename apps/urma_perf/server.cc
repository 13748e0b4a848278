// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_perf/completions.h"
#include "apps/urma_perf/devices.h"
#include "apps/urma_perf/machine.h"

namespace urma::apps::perf {
namespace {

// For all sessions together. A Jetty that does not fit is refused with an error that shows the
// numbers.
constexpr uint32_t completion_entries = 1 << 18;
// While no client measures, the loop sleeps this long before it checks clients and signals.
constexpr Duration idle_wait = std::chrono::milliseconds(100);
constexpr uint32_t look_around_every = 4096;

// Returns the address in the line that describes a Jetty: "urma1 at=10.0.0.5:4792 eid=...".
std::string address_in(const std::string& jetty) {
  constexpr std::string_view before = " at=";
  const size_t at = jetty.find(before);
  if (at == jetty.npos) return printable(jetty);
  const size_t begin = at + before.size();
  return printable(jetty.substr(begin, jetty.find(' ', begin) - begin));
}

}  // namespace

Dialogue::Options Server::dialogue_options(Jfc& completions) {
  constexpr uint32_t berths_one = 4;
  return {.wording = wording(),
          .berths = 2 * most_clients * berths_one,
          .berths_one = berths_one,
          .most_waiting = 16 * most_clients,
          .most_waiting_one = 8,  // a client asks one question at a time
          .completions = &completions};
}

Server::Server(const Options& options, const std::string& device, std::atomic<bool>& over)
    : options_(options),
      device_text_(device),
      over_(over),
      says_clients_(options.verbose || (!options.report_to && isatty(STDERR_FILENO) == 1)),
      device_(captures_.watch(open_device(device, {*options.threads_mode, options.retransmit,
                                                   options.congestion, options.profile}))),
      engine_threads_(device_, completion_entries, options.threads_mode->polls,
                      [this](size_t queue, const Completion& completion) {
                        (void)handle_of_case(queue, completion);
                      }),
      completions_(*engine_threads_.queues().front()),
      dialogue_(device_, dialogue_options(completions_)),
      taker_(options.threads_mode->polls) {
  const Service service = service_for("write_lat", options.report_to.has_value());
  const auto published = device_.publish(service.name, dialogue_.jetty(), everyone());
  if (!published) throw apps::not_published(device_, service, published.error());
}

void Server::say_where() {
  const Endpoint at = device_.endpoint();
  if (options_.report_to) {
    const std::string line = to_string(at) + "\n";
    if (::write(*options_.report_to, line.data(), line.size()) < 0) {
      throw Failure(Exit::error,
                    "--report-to: no process reads there. Fix: give an open descriptor");
    }
    close(*options_.report_to);
    return;
  }
  fmt::print("urma_perf server at {}; measure it by: {}\n", to_string(at),
             apps::command_to_reach(device_, device_text_, service_for("write_lat")));
  std::fflush(stdout);
}

void Server::run() {
  if (options_.verbose) print_error(device_.description());
  for (uint32_t turns = 1; !interrupted() && !over_; ++turns) {
    const Session::Pace pace = this->pace();
    const bool idle = pace <= Session::Pace::asleep;
    engine_threads_.set_pace(pace == Session::Pace::idle ? EngineThreads::Pace::idle
                             : idle                      ? EngineThreads::Pace::asleep
                                                         : EngineThreads::Pace::measured);
    const auto taken = idle                              ? completions_.wait(idle_wait)
                       : pace == Session::Pace::in_limit ? taker_.look(completions_)
                                                         : taker_.take(completions_);
    for (const Completion& completion : taken) handle(completion);
    if (!idle && taken.empty()) {
      run_limits();
      spin();
    }
    if (!idle && turns % look_around_every != 0) continue;
    look_after_clients();
    if (options_.once && clients_ > 0 && sessions_.empty()) break;
  }
  say_goodbye();
}

// Returns the pace of the busiest client.
Session::Pace Server::pace() const {
  Session::Pace most = Session::Pace::idle;
  for (const auto& session : sessions_) most = std::max(most, session->pace());
  return most;
}

bool Server::handle_of_case(size_t queue, const Completion& completion) {
  for (const auto& session : sessions_) {
    if (session->handle(queue, completion)) return true;
  }
  return false;
}

void Server::handle(const Completion& completion) {
  if (handle_of_case(0, completion)) return;
  // Otherwise it belongs to a case that has ended.
  if (completion.jetty == dialogue_.jetty().id()) handle_dialogue(completion);
}

void Server::handle_dialogue(const Completion& completion) {
  engine_threads_.catch_up();
  const auto paused = engine_threads_.pause();
  const auto text = dialogue_.handle(completion);
  if (completion.operation == Operation::read) {
    for (const auto& session : sessions_) {
      if (session->number() == completion.tag) session->handle_probe(completion);
    }
    return;
  }
  if (!text) return;
  try {
    handle_message({.peer = completion.from, .jetty = completion.from_jetty}, parse_message(*text));
  } catch (const NotUnderstood& why) {
    // An invalid message of one client must not end the service for the others.
    dialogue_.drop(completion, why.what());
    if (options_.verbose) print_error(fmt::format("a message is not understood: {}", why.what()));
  } catch (const std::exception& why) {
    dialogue_.leave_unanswered(completion, why.what());
    if (options_.verbose) print_error(fmt::format("a message is not answered: {}", why.what()));
  }
}

void Server::handle_message(const Session::Client& from, const Message& question) {
  if (question.type == "hello") return greet(from, question);
  for (const auto& session : sessions_) {
    if (!(session->client() == from)) continue;
    Message reply;
    try {
      reply = session->answer(question);
      if (says_clients_ && question.type == "setup") {
        print_error(fmt::format("client {}: {}", session->number(),
                                parameters_text(body_of<Setup>(question).what)));
      }
    } catch (const Failure& failure) {
      reply = failed_message(question.id, {failure.exit(), failure.what()});
    }
    return dialogue_.send(session->answers_to(), reply);
  }
}

// Reads first where answers go, so that a client that is refused learns the reason.
void Server::greet(const Session::Client& from, const Message& question) {
  std::string line;
  read_field(question.body, "jetty", line);
  const RemoteJetty client = must(device_.import(line), "the client's Jetty").jetty;
  Message reply;
  try {
    reply = welcome(from, question);
  } catch (const NotUnderstood& why) {
    reply = failed_message(
        question.id, {Exit::error, fmt::format("\"hello\" is not understood: {}. Fix: use the "
                                               "same urma_perf on both sides",
                                               why.what())});
  } catch (const Failure& failure) {
    reply = failed_message(question.id, {failure.exit(), failure.what()});
  }
  dialogue_.send(client, reply);
}

Message Server::welcome(const Session::Client& from, const Message& question) {
  const std::string version = check_version(
      question, {.protocol = protocol, .self = "server", .peer = "client"}, dialogue_.wording());
  if (sessions_.size() >= most_clients) {
    throw Failure(
        Exit::error,
        fmt::format("the server serves at most {} clients at a time. Fix: repeat this command when "
                    "a client has ended",
                    most_clients));
  }
  const auto hello = body_of<Hello>(question);
  sessions_.push_back(std::make_unique<Session>(++clients_, device_, engine_threads_.queues(),
                                                options_.threads_mode->alone, from, hello));
  if (says_clients_) {
    print_error(fmt::format("client {} (liburma {}): {}", clients_, version,
                            options_.verbose ? hello.jetty : address_in(hello.jetty)));
  }
  return {.id = question.id,
          .type = "welcome",
          .body = Welcome{.version = library_version(), .device = device_.description()}};
}

// Runs in slices, because the engine and other clients need this thread, too.
void Server::run_limits() {
  for (const auto& session : sessions_) session->run_limit(millisecond);
}

void Server::look_after_clients() {
  const auto paused = engine_threads_.pause();
  const int64_t time = now();
  for (const auto& session : sessions_) {
    auto probe = session->probe(time, probed_);
    if (!probe) continue;
    try {
      dialogue_.post(session->client().peer, probe->tag(session->number()));
    } catch (const Failure&) {
      session->lose();  // its client takes nothing
    }
  }
  std::erase_if(sessions_, [&](const auto& session) {
    if (session->over() && says_clients_) {
      print_error(fmt::format("client {} is gone", session->number()));
    }
    return session->over();
  });
}

// Sends the last answers before the device closes.
void Server::say_goodbye() {
  constexpr int64_t patience = 300 * millisecond;
  for (const int64_t until = now() + patience; !dialogue_.idle() && now() < until;) {
    for (const Completion& completion : completions_.wait(std::chrono::milliseconds(10))) {
      if (completion.jetty == dialogue_.jetty().id()) dialogue_.handle(completion);
    }
  }
  for (const std::string& line : dialogue_.complaints()) print_error("urma_perf server: " + line);
}

}  // namespace urma::apps::perf
