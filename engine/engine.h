// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "base/dirty_set.h"
#include "base/turns.h"
#include "engine/carriers.h"
#include "engine/command_queue.h"
#include "engine/event_queue.h"
#include "engine/fills.h"
#include "engine/jetty_control.h"
#include "engine/lent_frames.h"
#include "engine/name_service.h"
#include "engine/path_changes.h"
#include "engine/registrations.h"
#include "engine/rest.h"
#include "engine/stage_times.h"
#include "engine/token_judge.h"
#include "urma/core/options.h"

namespace urma::engine {

// The options of one device, from the application and the device string, after all checks.
struct EngineSettings {
  Incarnation life{};                                    // of this opening of the device
  Duration operation_timeout = std::chrono::seconds(2);  // also for making a channel
  Duration idle_timeout{};  // after which an unused channel ends; zero if it never does
  const congestion::ControllerKind* controller = nullptr;
  Retransmission retransmission{};
  Balance balance = Balance::slice;
  Limits limits{};
  bool profile = false;      // the stages of the device are timed
  EventKinds events{};       // the kinds that the application has asked for
  JettyIdShare jetty_ids{};  // the ids of Jetties that this engine of the device has
  // The key of the segments' tokens, which several engines of a device have in common.
  std::array<uint64_t, 2> segment_key{};
};

// Runs passes, and says when the next one is needed. An engine owns one port and everything that
// runs on it: the transport, the transaction layer and the parts below. It does not know which
// thread runs a pass or why, reads no clock, and never sleeps. Owned by `Runner`. Only the thread
// that holds the engine token may call it, except for functions that are marked as called by any
// thread.
class Engine {
 public:
  Engine(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
         std::unique_ptr<Entropy> entropy);
  ~Engine();

  // Runs one bounded pass. Returns true if it did something, so that there may be more. `polled`:
  // the JFC for which an application runs this pass, which then uses the fast path
  // (Answers::flush); null if there is none. `Stages` times the pass: StageTimer&, or NoStages in a
  // device that is not profiled.
  template <class Stages>
  bool pass(Time now, const jetty::Jfc* polled, Stages stages);

  // Returns whether the last pass found and changed nothing.
  bool found_nothing() const { return found_nothing_; }
  // Returns whether the last pass showed the application a completion.
  bool showed_completion() const { return showed_completion_; }
  // Returns what the last pass or post has left to the next one, so that the application need not
  // wait for it.
  const Rest& rest() const { return rest_; }
  // Returns the time before which no pass is needed, unless something arrives or is posted.
  Time next_deadline() const;
  // Returns whether something was posted or commanded since the last pass. Called by any thread
  // that has executed a full fence.
  bool has_work() const { return dirty_.any() || commands_.arrived(); }
  // Copies works that are being posted to this Jetty immediately, and shows their completions: no
  // more than a pass takes, nor than `budget` allows. The caller posts the others.
  jetty::CopiedInPost copy_in_post(uint32_t jetty, std::span<const Work> works, uint32_t budget);
  // Sends the work that was just posted to this Jetty immediately, if nothing else waits. If so,
  // the engine records the work afterwards, in `take_sent_ahead`; if not, the caller marks the
  // Jetty, and the next pass sends it.
  jetty::DoneAhead send_ahead(uint32_t jetty);
  void take_sent_ahead(uint32_t jetty, const jetty::DoneAhead& done, Time now);
  // Returns whether the application's thread that sleeps at the engine's descriptors must be woken,
  // and resets this to false.
  bool take_kick() { return std::exchange(kick_, false); }

  // Called by any thread.
  CommandQueue& commands() { return commands_; }
  std::span<const int> descriptors() const { return port_->descriptors(); }
  DirtySet& dirty() { return dirty_; }

  // ---- inside a pass: the parts, for commands

  jetty::Transactions& transactions() { return transactions_; }
  transport::Transport& transport() { return transport_; }
  memseg::SegmentTable& segments() { return segments_; }
  NameService& names() { return names_; }
  drivers::PacketPort& port() { return *port_; }
  EventQueue& events() { return events_; }  // the application's side: any thread, one at a time
  const EngineSettings& settings() const { return settings_; }
  uint64_t passes() const { return passes_; }

  // ---- inside a pass: what control calls change

  JettyControl& jetty_control() { return jetty_control_; }
  Registrations& registrations() { return registrations_; }
  // Call it only if the port has `path_ports`.
  PathChanges& path_changes() { return path_changes_; }
  // Flushes all Jetties and removes all segments. Returns false until it is done, and is then
  // called again in later passes.
  bool end_everything(Time now);

 private:
  static constexpr size_t burst = LentFrames::most;
  static constexpr uint32_t works_per_pass = 64;
  static constexpr uint32_t looks_at_once = 4;
  // If two passes are further apart than this, more may have arrived than one pass reads.
  static constexpr Duration stood_still = std::chrono::microseconds(500);
  static constexpr uint32_t most_batches_behind = 32;

  [[gnu::cold]] bool run_commands(Time now);
  bool receive(Time now);
  bool catch_up(Time now);
  bool take_posted(Time now);
  bool send(Time now, bool polled, bool posted);
  void fill(Time now);
  void settle(Time now);

  std::unique_ptr<drivers::PacketPort> port_;
  Ways* const ways_;  // the port's, if it has any
  const EngineSettings settings_;
  std::unique_ptr<Entropy> entropy_;
  // Adds the peer's address to each event, if the transport knows the peer.
  class Events final : public jetty::EventSink {
   public:
    explicit Events(Engine& engine) : engine_(engine) {}
    void raise(const Event& event) override;
    void forget(JettyId jetty) override { engine_.events_.forget(jetty); }

   private:
    Engine& engine_;
  };

  EventQueue events_;
  Events located_events_{*this};
  memseg::SegmentTable segments_;
  TokenJudge judge_{segments_, events_};
  jetty::Transactions transactions_;
  transport::Transport transport_;

  CommandQueue commands_;
  DirtySet dirty_;
  LineJetty lines_;
  NameService names_;
  Carriers carriers_;

  // Jetties with posted works that the last pass did not reach, in turn.
  Turns ready_;

  std::array<RxFrame, burst> received_;  // within `receive` only
  LentFrames frames_;
  Fills fills_;

  JettyControl jetty_control_;
  Registrations registrations_;
  PathChanges path_changes_;

  Rest rest_{{.transactions = transactions_,
              .transport = transport_,
              .events = events_,
              .lines = lines_,
              .frames = frames_,
              .ready = ready_,
              .fills = fills_,
              .commands = commands_,
              .dirty = dirty_}};
  Time passed_at_{};  // the time of the last pass that was not cut short
  bool received_last_ = false;
  bool found_nothing_ = false;
  bool showed_completion_ = false;
  bool kick_ = false;
  uint64_t passes_ = 0;
};

}  // namespace urma::engine
