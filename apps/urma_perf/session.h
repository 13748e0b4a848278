// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "apps/urma_perf/limit.h"
#include "apps/urma_perf/messages.h"
#include "apps/urma_perf/responder.h"

namespace urma::apps::perf {

// One client of the server, from its hello to its bye, or until it is lost.
class Session {
 public:
  struct Client {
    PeerId peer;  // the peer that sends the client's messages
    JettyId jetty{};
    friend bool operator==(const Client&, const Client&) = default;
  };

  // The caller has checked the version in `hello`. `queues`: the server's, of which each is handled
  // by a thread. `alone`: no engine runs beside this thread.
  Session(uint64_t number, Device& device, std::span<Jfc* const> queues, bool alone,
          const Client& client, const Hello& hello);

  uint64_t number() const { return number_; }
  const Client& client() const { return client_; }
  const RemoteJetty& answers_to() const { return answers_to_; }

  // Answers a question of the client, or throws the Failure with which to answer.
  Message answer(const Message& question);
  // Returns false if the completion is not of the running case. Called by the thread of the queue,
  // and only while no thread calls another function.
  bool handle(size_t queue, const Completion& completion) {
    return running_ && running_->responders[queue].handle(completion);
  }

  // How the server's loop must run for this session.
  enum class Pace : uint8_t { idle, asleep, measured, in_limit };
  Pace pace() const {
    if (in_limit_) return Pace::in_limit;
    if (!running_) return Pace::idle;
    // In a test that wakes a side, that side must sleep first.
    return running_->side.what().test->asleep ? Pace::asleep : Pace::measured;
  }
  // Runs this side's part of the limit for this long, if the limit is being measured.
  void run_limit(int64_t time);

  bool over() const { return over_; }
  // Ends the session: its client has exited, or takes no messages.
  void lose();
  // Returns a read of memory that exists as long as the client lives, if the client has been silent
  // for long enough.
  std::optional<Work> probe(int64_t time, std::span<std::byte> to);
  void handle_probe(const Completion& completion);

 private:
  struct Running {
    Running(Device& device, const Setup& setup, std::span<Jfc* const> queues, bool alone);

    Side side;                          // declared first, because the others use it
    std::vector<Responder> responders;  // of each queue
    std::unique_ptr<Limit> limit;
    Statistics begin;
  };

  nlohmann::json setup(const Setup& setup);
  void begin(const Begin& begin);
  Report end();
  std::optional<SideProfile> profile_of_round();
  Totals finish();

  const uint64_t number_;  // tells the server's sessions apart
  Device& device_;
  const std::span<Jfc* const> queues_;  // of all sessions
  const bool alone_;                    // no engine runs beside this thread
  const Client client_;
  RemoteJetty answers_to_;
  RemoteSegment presence_;            // read to see whether a silent client still lives
  std::unique_ptr<Running> running_;  // the test that was set up last
  bool in_limit_ = false;             // the raw limit runs, not the test
  std::optional<Profile> profile_;    // when the round began; nothing if the device has none
  int64_t waited_ = 0;                // for a processor, when the run began; in nanoseconds
  bool over_ = false;
  int64_t heard_;  // when the client's latest message or answer came
  bool probing_ = false;
  int unanswered_ = 0;  // probes in a row
};

}  // namespace urma::apps::perf
