// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>

namespace urma::engine {
namespace {

// Returns the forms in which reports of congestion can be made of what the port carries. A form of
// C-AQM whose hints its switches would misread is left out, for packets that arrive as well: they
// come over the same switches.
ReportForms reports_over(const drivers::PortFacts& port) {
  using congestion::Metering;
  ReportForms forms;
  if (port.carries.ecn) forms = forms.with(ReportForm::ldcp).with(ReportForm::cnp);
  if (port.carries.cci && may_pass(Metering::increases, port.metering)) {
    forms = forms.with(ReportForm::caqm);
  }
  if ((port.carries.ecn || port.carries.cci) && may_pass(Metering::rates, port.metering)) {
    forms = forms.with(ReportForm::rate);
  }
  return forms;
}

transport::Settings transport_settings(const EngineSettings& settings,
                                       drivers::PacketPort& driver) {
  const drivers::PortFacts& port = driver.facts();
  PathList paths;
  for (unsigned i = 0; i < port.paths.size(); ++i) paths.set(i, port.paths[i]);
  return {.self = port.self,
          .paths = paths,
          .balance = settings.balance,
          .eid = port.eid,
          .life = settings.life,
          .mtu = port.mtu,
          .retransmission = settings.retransmission,
          .atomic_results = jetty::AtomicResults::kept,
          .buffer_bytes = port.buffer_bytes,
          .controller = settings.controller,
          .reports = reports_over(port),
          .line_bytes_per_second = port.line_bytes_per_second,
          .lateness = port.scheduling_delay,
          .setup_timeout = settings.operation_timeout,
          .idle_timeout = settings.idle_timeout,
          .ways = driver.ways(),
          .peers = settings.limits.peers};
}

// Each Jetty may send to a peer. An unused entry for a flow costs only address space.
jetty::Transactions::Limits transaction_limits(const Limits& limits) {
  jetty::Transactions::Limits out{.jetties = limits.jetties + 1, .peers = limits.peers};
  out.flows = std::max(out.flows, 2 * out.jetties);
  return out;
}

}  // namespace

Engine::Engine(std::unique_ptr<drivers::PacketPort> port, const EngineSettings& settings,
               std::unique_ptr<Entropy> entropy)
    : port_(std::move(port)),
      ways_(port_->ways()),
      settings_(settings),
      entropy_(std::move(entropy)),
      events_(settings.events),
      segments_(settings.limits.segments,
                SipHash{settings.segment_key[0], settings.segment_key[1]}),
      transactions_(transaction_limits(settings.limits), segments_, transport_, located_events_,
                    entropy_->next()),
      transport_(transport_settings(settings, *port_), *entropy_, transactions_),
      dirty_(settings.limits.jetties + 1),
      lines_(transactions_.jetties(), dirty_),
      names_(lines_, transport_, port_->clock() != nullptr),
      carriers_({*port_, lines_, transport_, transactions_.initiator().carried(), segments_, judge_,
                 *entropy_}),
      ready_(settings.limits.jetties + 1),
      jetty_control_(settings.limits.jetties, transactions_, *entropy_, settings.jetty_ids),
      registrations_(segments_, {port_->memory(), port_->device_reads()}, transactions_, fills_,
                     &carriers_),
      path_changes_(port_->path_ports(), transport_, fills_) {
  if (port_->memory() != nullptr) port_->memory()->set_judge(&judge_);
}

Engine::~Engine() {
  if (port_->memory() != nullptr) port_->memory()->set_judge(nullptr);
  frames_.give_back(*port_);
}

template <class Stages>
bool Engine::pass(Time now, const jetty::Jfc* polled, Stages stages) {
  ++passes_;
  found_nothing_ = false;
  // Works that the application posts in answer to the last pass leave first.
  const bool marked = dirty_.any();
  const bool leaves_first = received_last_ && marked;
  bool busy = leaves_first;
  // If the port receives by reading memory, calling a pass takes longer than receiving, so a pass
  // that an application runs tries several times.
  const uint32_t looks = polled != nullptr && ways_ != nullptr && !marked ? looks_at_once : 1;
  for (uint32_t i = 0; i < looks && !busy; ++i) busy = receive(now);
  if (busy && !leaves_first) stages.ended(Stage::receive);
  received_last_ = !received_last_ && busy;
  showed_completion_ = transactions_.jetties().pushed();
  if (polled != nullptr && received_last_ && showed_completion_) {
    // The polling thread sees the completion immediately. The next pass does the rest, after the
    // application's reply.
    kick_ = transactions_.jetties().wake_others(polled) || kick_;
    rest_.leave(now);
    return true;
  }
  rest_.take_up(now, busy);
  // Most passes of a polling thread find nothing, and end here.
  found_nothing_ = !busy && rest_.quiet(now);
  if (found_nothing_) return false;
  if (!busy) stages.ended(Stage::look);
  if (commands_.waits() || commands_.arrived()) busy = run_commands(now) || busy;
  busy = lines_.take([&](PeerId from, std::string_view line) {
    if (names_.handle(from, line, now)) return;
    if (Pairs* const pairs = carriers_.pairs()) pairs->handle(from, line, now);
  }) || busy;
  stages.ended(Stage::commands);
  const bool posted = take_posted(now);
  stages.ended(Stage::take);
  if (now >= rest_.timers_due() && now - passed_at_ >= stood_still) {
    busy = catch_up(now) || busy;
    stages.ended(Stage::receive);
  }
  passed_at_ = now;
  transport_.handle_timers(now);
  transactions_.initiator().handle_timers(now);
  stages.ended(Stage::timers);
  busy = send(now, polled != nullptr, posted) || posted || busy;
  if (ways_ != nullptr) ways_->notify();
  stages.ended(Stage::send);
  settle(now);
  stages.ended(Stage::settle);
  kick_ = transactions_.jetties().wake_others(polled) || kick_;
  events_.deliver(now);
  return rest_.plan(now, busy);
}

template bool Engine::pass<NoStages>(Time, const jetty::Jfc*, NoStages);
template bool Engine::pass<StageTimer&>(Time, const jetty::Jfc*, StageTimer&);

void Engine::Events::raise(const Event& event) {
  Event located = event;
  if (const auto peer = engine_.transport_.facts(event.peer)) located.from = peer->at;
  engine_.events_.raise(located);
}

bool Engine::run_commands(Time now) {
  return commands_.run([&](Command& command) { return command.run(command, *this, now); });
}

bool Engine::receive(Time now) {
  const size_t count = port_->receive(received_, now);
  Pairs* const pairs = carriers_.pairs();
  const bool carried = pairs != nullptr && pairs->pass(now);
  if (count == 0) return carried;
  const auto received = std::span(received_).first(count);
  transport_.receive(received, now);
  transactions_.staging().settle();
  port_->release(received);
  return true;
}

// While this process was not scheduled, the acknowledgements that it waits for may have arrived in
// the port: they are read before time-outs are judged. At most a send window of packets is read, so
// that a peer cannot keep the timers from running. Reading stops when set-up messages wait to be
// sent, because there is room for few of them.
bool Engine::catch_up(Time now) {
  uint32_t batches = 0;
  while (batches < most_batches_behind && !transport_.setup_waits() && receive(now)) ++batches;
  return batches > 0;
}

jetty::CopiedInPost Engine::copy_in_post(uint32_t index, std::span<const Work> works,
                                         uint32_t budget) {
  if (!transactions_.jetties().live(index)) return {};
  const jetty::CopiedInPost copied = transactions_.initiator().copy_in_post(
      transactions_.jetties().at(index), works, std::min(budget, works_per_pass));
  if (copied.works > 0) kick_ = transactions_.jetties().wake() || kick_;
  return copied;
}

jetty::DoneAhead Engine::send_ahead(uint32_t index) {
  const bool first =
      ways_ != nullptr && frames_.waiting() == 0 && ready_.size() == 0 && !dirty_.any();
  if (!first || !transactions_.jetties().live(index)) return {};
  return transactions_.initiator().send_ahead(transactions_.jetties().at(index));
}

void Engine::take_sent_ahead(uint32_t index, const jetty::DoneAhead& done, Time now) {
  jetty::Jetty& jetty = transactions_.jetties().at(index);
  transactions_.initiator().take(jetty, works_per_pass, now, done);
  if (jetty.queues->jfs().waiting() > 0) ready_.add(index);
  ways_->notify();
  transactions_.target().answers().note_reply(now);
  rest_.leave(now);
}

bool Engine::take_posted(Time now) {
  dirty_.take([&](uint32_t jetty) { ready_.add(jetty); });
  uint32_t budget = works_per_pass;
  bool any = false;
  for (uint32_t turns = ready_.size(); turns > 0 && budget > 0; --turns) {
    const uint32_t index = ready_.take();
    if (!transactions_.jetties().live(index)) continue;
    jetty::Jetty& jetty = transactions_.jetties().at(index);
    const uint32_t taken = transactions_.initiator().take(jetty, budget, now);
    any = any || taken > 0;
    budget -= taken;
    if (jetty.queues->jfs().waiting() > 0) ready_.add(index);
  }
  return any;
}

bool Engine::send(Time now, bool polled, bool posted) {
  bool any = transactions_.initiator().cut(works_per_pass, now);
  if (Pairs* const pairs = carriers_.pairs()) pairs->flush();
  if (any || posted) transactions_.target().answers().note_reply(now);
  transactions_.target().answers().flush(polled, now);
  if (frames_.waiting() == 0 && transport_.wants_to_send() && fills_.room() &&
      transactions_.staging().room_for(burst)) {
    fill(now);
  }
  if (frames_.waiting() == 0) return any;
  return frames_.send(*port_, now) > 0 || any;
}

void Engine::fill(Time now) {
  const std::span<TxFrame* const> empty = frames_.borrow(*port_);
  const uint64_t number = fills_.latest() + 1;
  transactions_.initiator().begin_fill(number);
  transactions_.staging().begin_fill(number);
  const size_t filled = transport_.fill(transactions_, empty, now);
  transactions_.staging().end_fill();
  if (filled == 0) return;
  frames_.fill(filled);
  fills_.add(filled);
}

void Engine::settle(Time now) {
  const uint64_t frames = port_->settled();
  const bool any = fills_.settle(frames);
  if (any) transactions_.staging().settled(fills_.settled());
  transactions_.initiator().settled(fills_.settled(), now);
  transport_.settled(frames);
}

bool Engine::end_everything(Time now) {
  const bool ended = jetty_control_.flush_all(now);
  registrations_.end();
  Pairs* const pairs = carriers_.pairs();
  const bool fenced = pairs == nullptr || pairs->passive().end_all_keys(now);
  return ended && fenced && fills_.has_settled(fills_.latest());
}

Time Engine::next_deadline() const {
  const Time next = std::min(rest_.until(), port_->next_arrival());
  const Pairs* const pairs = carriers_.pairs();
  return pairs != nullptr ? std::min(next, pairs->next_deadline()) : next;
}

}  // namespace urma::engine
