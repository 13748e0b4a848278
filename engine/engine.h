#pragma once

#include <array>
#include <memory>
#include <optional>

#include "base/dirty_set.h"
#include "base/entropy.h"
#include "base/shuffle.h"
#include "base/turns.h"
#include "drivers/driver.h"
#include "engine/command.h"
#include "engine/event_queue.h"
#include "engine/name_service.h"
#include "engine/news.h"
#include "engine/token_judge.h"
#include "jetty/transactions.h"
#include "memseg/segment_table.h"
#include "transport/transport.h"
#include "urma/core/options.h"
#include "urma/core/path.h"

namespace urma::engine {

struct EngineSettings {
  Incarnation life{};
  Duration operation_timeout = std::chrono::seconds(2);  // also for making a channel
  Duration idle_timeout{};
  const congestion::ControllerKind* controller = nullptr;
  Retransmission retransmission{};
  Balance balance = Balance::slice;
  Limits limits{};
};

// One driver queue and all that runs on it. Only the thread that holds the engine token calls it,
// except for `mailbox` and `dirty`, which any thread may use.
class Engine {
 public:
  Engine(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
         std::unique_ptr<Entropy> entropy);
  ~Engine();

  // Runs one bounded pass. Returns true if it did something, so that there may be more.
  // `polled`: what an application polls by this pass, for the shortest way (Answers::flush).
  bool pass(Time now, const jetty::Jfc* polled);

  // Returns whether the last pass was a look that found nothing, and changed nothing.
  bool looked_only() const { return looked_only_; }
  // Returns whether the last pass showed the application a completion.
  bool told() const { return told_; }
  // Nothing needs a pass before this time, unless something arrives or is posted.
  Time next_deadline() const;
  // Returns whether something was posted or commanded since the last pass. Called by any thread
  // that has executed a full fence.
  bool has_work() const { return dirty_.any() || mailbox_.any(); }
  // Commands that are not done are looked at in every pass, so passes must not be far apart.
  bool commands_wait() const { return waiting_ != nullptr; }
  // Sends the work that was just posted to this Jetty immediately, if nothing else waits. The
  // engine records the work afterwards, in `take_sent_ahead`. Returns false if it was not sent: the
  // caller marks the Jetty, and the next pass sends it.
  bool send_ahead(uint32_t jetty);
  void take_sent_ahead(uint32_t jetty, Time now);
  // Returns whether an application's thread that sleeps at the engine's own descriptors must be
  // woken, and clears this mark.
  bool take_kick() { return std::exchange(kick_, false); }

  // Called by any thread.
  Mailbox& mailbox() { return mailbox_; }
  std::span<const int> descriptors() const { return port_->descriptors(); }
  DirtySet& dirty() { return dirty_; }

  // ---- inside a pass, for commands

  jetty::Transactions& transactions() { return transactions_; }
  transport::Transport& transport() { return transport_; }
  memseg::SegmentTable& segments() { return segments_; }
  NameService& names() { return names_; }
  drivers::PacketPort& port() { return *port_; }
  Entropy& entropy() { return *entropy_; }
  EventQueue& events() { return events_; }  // its other end: any thread, one at a time
  const EngineSettings& settings() const { return settings_; }
  // Writes the paths to this peer; returns how many, 0 if there is one only, and nothing once the
  // peer has exited or restarted.
  std::optional<size_t> paths(PeerId peer, std::span<Path, most_paths> out);
  Statistics statistics();
  Snapshot snapshot();

  // ---- control operations; those that return bool are called again in later passes until true

  struct JettyMade {
    JettyId id{};
    TokenValue token{};
    Handle handle;
  };
  // Returns nothing if there are Limits::jetties of them already.
  std::optional<JettyMade> create_jetty(jetty::JettyParts parts);
  bool flush_jetty(uint32_t index, Time now);
  void reset_jetty(uint32_t index, Time now);
  bool destroy_jetty(uint32_t index, Time now);
  using Lease = drivers::SegmentMemory::Lease;
  using Segments = memseg::SegmentTable;
  // `with`: whose TokenID it shares; otherwise it gets one of its own.
  Segments::Added add_segment(const Segments::Segment& segment, TokenPolicy policy, Handle with,
                              Segments::Made& made);
  // The state of a withdrawal in progress.
  struct Withdrawal {
    Handle segment;
    bool all = false;       // that share its TokenID; their holders are not looked at
    Segments::Segment own;  // the segment, also when it was withdrawn before
    bool fenced = true;     // no: a peer holds it, and it cannot be moved
    std::optional<Lease> held = std::nullopt;  // a peer held it for longer than is waited

    bool begun = false;
    uint32_t withdrawn = Segments::none;  // a tree
    uint64_t fill = 0;
    Time since{};
  };
  // When it has returned true with something held, that is to be moved, or it was not fenced; then
  // it is called again.
  bool withdraw_segments(Withdrawal& what, Time now);
  // The end of an older TokenValue in progress.
  struct Retirement {
    Handle segment;
    bool fenced = true;

    bool begun = false;
    uint64_t fill = 0;
    Time since{};
  };
  bool retire_token(Retirement& what, Time now);
  // Returns false if there are two values already, it needs none, or the segment is gone.
  bool rotate_token(Handle segment);
  // Returns false if the device has eight paths.
  bool add_path(drivers::PathPorts::Joining& joining, Time now);
  struct PathRemoval {
    Endpoint place;

    enum class Found : uint8_t { there, nowhere, last } found = Found::there;
    std::unique_ptr<drivers::PacketPort> port;  // at the end
    bool begun = false;
    bool closed = false;
    uint8_t number = 0;
    uint64_t fill = 0;
    Time since{};
    Time look_at{};
  };
  bool remove_path(PathRemoval& what, Time now);
  // Flushes all Jetties and removes all segments.
  bool end_everything(Time now);

 private:
  // Sets `id` to an unused Jetty id that cannot be predicted. Returns false if all are in use.
  bool new_jetty_id(JettyId& id);
  void retire_jetty_id(JettyId id);
  // Returns whether the driver has read all memory that fills up to this one named.
  bool settled(uint64_t fill) const { return settled_fill_ >= fill; }

  static constexpr size_t burst = 64;
  static constexpr uint32_t works_per_pass = 64;
  static constexpr uint32_t commands_per_pass = 8;
  static constexpr uint32_t looks_at_once = 4;
  // After so long between two passes, more may have arrived than one pass reads.
  static constexpr Duration stood_still = std::chrono::microseconds(500);
  static constexpr uint32_t most_batches_behind = 32;

  template <class Function>
  void for_each_part(const Withdrawal& what, Function&& function);
  std::optional<Lease> held(const Segments::Segment& segment);
  bool is_released(const Lease& lease);
  static std::optional<Lease> lease_of(const Segments::Segment& segment);
  void grant_all(Handle segment);
  bool quiet(Time now) const;
  bool receive(Time now);
  bool catch_up(Time now);
  [[gnu::cold]] bool run_commands(Time now);
  bool take_posted(Time now);
  bool send(Time now, bool polled, bool posted);
  void drop_sent(size_t taken);
  void settle(Time now);

  std::unique_ptr<drivers::PacketPort> port_;
  Ways* const ways_;  // the port's, if it has any
  const EngineSettings settings_;
  std::unique_ptr<Entropy> entropy_;
  // Knows where a peer is, as long as the transport does.
  class Events final : public jetty::EventSink {
   public:
    explicit Events(Engine& engine) : engine_(engine) {}
    void raise(const Event& event) override;

   private:
    Engine& engine_;
  };

  EventQueue events_;
  Events located_events_{*this};
  memseg::SegmentTable segments_;
  TokenJudge judge_{segments_, events_};
  jetty::Transactions transactions_;
  transport::Transport transport_;

  Mailbox mailbox_;
  DirtySet dirty_;
  NameService names_;
  Command* waiting_ = nullptr;  // commands that are not done

  // Jetties with posted works that the last pass did not reach, in turn.
  Turns ready_;

  std::array<RxFrame, burst> received_;  // within `receive` only
  // Frames lent by the driver: [0, filled_) wait to be taken by it, the others are empty.
  std::array<TxFrame*, burst> frames_{};
  size_t lent_ = 0;
  size_t filled_ = 0;
  uint64_t frames_filled_ = 0;  // ever

  // Fills whose memory the driver may still read.
  struct Unsettled {
    uint64_t fill;
    uint64_t until;  // frames
  };
  static constexpr size_t most_unsettled = 1024;
  std::array<Unsettled, most_unsettled> unsettled_;
  size_t unsettled_first_ = 0;
  size_t unsettled_count_ = 0;
  uint64_t fill_ = 0;
  uint64_t settled_fill_ = 0;

  // Jetty ids of the past: used again before new ones (the numbering of their slices goes on).
  RegionArray<uint32_t> retired_ids_;
  uint32_t retired_count_ = 0;
  uint32_t ids_drawn_ = 0;
  Shuffle id_order_{entropy_->next(), entropy_->next()};

  Time rest_until_{};        // what is left to do can wait until then
  Time timers_due_{};        // the transport's next deadline, as of the last pass
  Time passed_at_{};         // when that was
  bool sent_ahead_ = false;  // since the last `send`
  bool received_last_ = false;
  bool looked_only_ = false;
  bool told_ = false;
  bool kick_ = false;
  bool ending_ = false;                     // no more segments
  std::array<bool, most_paths> leaving_{};  // places whose port is not given back yet
  uint64_t passes_ = 0;
  uint64_t not_fenced_ = 0;
};

}  // namespace urma::engine
