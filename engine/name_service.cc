#include "engine/name_service.h"

#include <array>

#include "base/assert.h"
#include "jetty/channel_status.h"

namespace urma::engine {
namespace {

// Any process may ask; whether it gets a name is decided by the audience of the name.
constexpr TokenValue open_token{0x6e616d65};

// The device that has the UB port of an address answers for all processes at that address.
PublishedNames::Options names_of(const Endpoint& self, bool one_process) {
  PublishedNames::Options options{.address = self.address, .all_admitted = one_process};
  if (!one_process && self.port == ub_port) options.neighbours = NameFiles::of_this_user();
  return options;
}

}  // namespace

NameService::NameService(jetty::Jetties& jetties, transport::Transport& transport, DirtySet& dirty,
                         bool one_process)
    : transport_(transport),
      dirty_(dirty),
      jfc_(std::make_shared<jetty::Jfc>(jetty::Queues::entries_of(slots, slots))),
      queues_(std::make_shared<jetty::Queues>(slots, slots, jfc_)),
      receive_buffers_(slots * line_bytes),
      sending_(slots),
      published_(names_of(transport.self(), one_process)) {
  jfc_->reserve(queues_->entries());
  const jetty::Jetty* jetty = jetties.create(names_jetty, open_token, {queues_, {}});
  URMA_ASSERT(jetty != nullptr, "the first Jetty of an engine finds room");
  index_ = jetties.index_of(*jetty);
  for (uint16_t i = 0; i < slots; ++i) {
    sending_[i].reserve(line_bytes);
    free_to_send_.push_back(i);
    post_receive(i);
  }
}

void NameService::post_receive(uint16_t slot) {
  const Buffer buffer{receive_buffers_.data() + slot * line_bytes, line_bytes};
  queues_->receive({&buffer, 1}, slot);
}

bool NameService::check(Question& question, Time now) {
  if (!question.ended(now)) {
    if (!question.take_due(now)) return false;
    // If the peer has left, it is looked up again, because the publisher may have been restarted.
    if (!transport_.knows(question.peer)) {
      question.peer = transport_.know({}, question.at, {});
      if (question.retransmission) transport_.choose(question.peer, *question.retransmission, now);
    }
    if (question.peer) {
      send(question.peer, {NameMessage::Kind::find, question.number, question.name});
    }
    return false;
  }
  questions_.remove(question);
  if (question.done) return true;
  // If the peer answers but does not accept a channel, its reason is reported, because asking again
  // would not help.
  const transport::Why why_not = transport_.why_not(question.peer);
  if (why_not != transport::Why::unreachable) question.status = jetty::status_of(why_not);
  return true;
}

void NameService::send(PeerId to, const NameMessage& message) {
  if (bytes_of(message) > line_bytes) return;
  if (free_to_send_.empty() || queues_->vacant_berths() == 0) return;
  const uint16_t slot = free_to_send_.back();
  free_to_send_.pop_back();
  write_name_message(message, sending_[slot]);
  const RemoteJetty target{.peer = to, .id = names_jetty, .token = open_token};
  const Work work = urma::send(std::as_bytes(std::span(sending_[slot])), target).tag(slot);
  queues_->post({&work, 1});
  dirty_.mark(index_);
}

bool NameService::pass(Time now) {
  if (!jfc_->ready()) return false;
  std::array<Completion, 16> completions;
  const size_t count = jfc_->poll(completions);
  for (const Completion& completion : std::span(completions).first(count)) {
    const auto slot = static_cast<uint16_t>(completion.tag);
    if (completion.operation != Operation::receive) {
      free_to_send_.push_back(slot);
      continue;
    }
    if (completion.ok()) {
      const auto* text = reinterpret_cast<const char*>(receive_buffers_.data() + slot * line_bytes);
      const auto message = read_name_message({text, completion.bytes});
      if (message) handle(completion, *message, now);
    }
    post_receive(slot);
  }
  return true;
}

void NameService::handle(const Completion& arrival, const NameMessage& message, Time now) {
  if (message.kind == NameMessage::Kind::find) {
    answer(arrival, message, now);
  } else {
    questions_.take_answer(arrival.from, message);
  }
}

void NameService::answer(const Completion& arrival, const NameMessage& question, Time now) {
  const auto asker = transport_.facts(arrival.from);
  if (!asker || arrival.from_jetty != names_jetty || !valid_name(question.rest)) return;
  // If the audience of a name does not include the asker, the answer is the same as if the name did
  // not exist.
  const Publication* const publication = published_.find(question.rest, asker->eid, now);
  if (publication != nullptr) {
    send(arrival.from, {NameMessage::Kind::found, question.number, publication->line});
  } else {
    send(arrival.from, {NameMessage::Kind::none, question.number});
  }
}

}  // namespace urma::engine
