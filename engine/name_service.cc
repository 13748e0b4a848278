#include "engine/name_service.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/assert.h"
#include "jetty/channel_status.h"

namespace urma::engine {
namespace {

// The directory of names is read at most this often, however many processes ask: reading it takes
// several system calls for each name, within a pass.
constexpr Duration look_again_after = std::chrono::milliseconds(10);

// Any process may ask; whether it gets a name is decided by the audience of the name.
constexpr TokenValue open_token{0x6e616d65};
constexpr Duration ask_again_after = std::chrono::milliseconds(100);

//   find NUMBER NAME  ->  found NUMBER LINE | none NUMBER
constexpr std::string_view find_word = "find";
constexpr std::string_view found_word = "found";
constexpr std::string_view none_word = "none";

std::string_view take_word(std::string_view& text) {
  const size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

NameService::NameService(jetty::Jetties& jetties, transport::Transport& transport, DirtySet& dirty,
                         bool one_process)
    : transport_(transport),
      dirty_(dirty),
      one_process_(one_process),
      jfc_(std::make_shared<jetty::Jfc>(jetty::Queues::entries_of(slots, slots))),
      queues_(std::make_shared<jetty::Queues>(slots, slots, jfc_)),
      receive_buffers_(slots * line_bytes),
      sending_(slots) {
  jfc_->reserve(queues_->entries());
  const jetty::Jetty* jetty = jetties.create(names_jetty, open_token, {queues_, {}});
  URMA_ASSERT(jetty != nullptr, "the first Jetty of an engine finds room");
  index_ = jetties.index_of(*jetty);
  for (uint16_t i = 0; i < slots; ++i) {
    sending_[i].reserve(line_bytes);
    free_to_send_.push_back(i);
    post_receive(i);
  }
  // The device that has the UB port of an address answers for all processes at that address.
  if (!one_process_ && transport_.self().port == ub_port) files_ = NameFiles::of_this_user();
}

void NameService::post_receive(uint16_t slot) {
  const Buffer buffer{receive_buffers_.data() + slot * line_bytes, line_bytes};
  queues_->receive({&buffer, 1}, slot);
}

void NameService::publish(Publications& names) {
  for (const auto& [name, publication] : names) unpublish(name);
  published_.merge(names);
}

void NameService::unpublish(std::string_view name) {
  if (const auto found = published_.find(name); found != published_.end()) published_.erase(found);
}

void NameService::ask(Question& question, Time now) {
  question.number = next_number_++;
  question.ask_at = now;
  question.next = std::exchange(questions_, &question);
}

bool NameService::check(Question& question, Time now) {
  if (!question.done && now < question.until) {
    if (now < question.ask_at) return false;
    // If the peer has left, it is looked up again, because the publisher may have been restarted.
    if (!transport_.knows(question.peer)) {
      question.peer = transport_.know({}, question.at, {});
      if (question.retransmission) transport_.choose(question.peer, *question.retransmission, now);
    }
    if (question.peer) send(question.peer, find_word, question.number, question.name);
    question.ask_at = now + ask_again_after;
    return false;
  }
  Question** link = &questions_;
  while (*link != &question) link = &(*link)->next;
  *link = question.next;
  if (question.done) return true;
  // If the peer answers but does not accept a channel, its reason is reported, because asking again
  // would not help.
  const transport::Why why_not = transport_.why_not(question.peer);
  if (why_not != transport::Why::unreachable) question.status = jetty::status_of(why_not);
  return true;
}

void NameService::send(PeerId to, std::string_view word, uint32_t number, std::string_view rest) {
  std::array<char, 10> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), number).ptr;
  const std::string_view number_word(digits.begin(), end);
  const size_t bytes = word.size() + 1 + number_word.size() + 1 + rest.size();
  if (bytes > line_bytes || free_to_send_.empty() || queues_->vacant_berths() == 0) return;
  const uint16_t slot = free_to_send_.back();
  free_to_send_.pop_back();
  sending_[slot].assign(word).append(" ").append(number_word);
  if (!rest.empty()) sending_[slot].append(" ").append(rest);
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
      handle(completion, {text, completion.bytes}, now);
    }
    post_receive(slot);
  }
  return true;
}

void NameService::handle(const Completion& arrival, std::string_view line, Time now) {
  const std::string_view kind = take_word(line);
  const std::string_view digits = take_word(line);
  uint32_t number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc{} || end != digits.data() + digits.size()) return;
  if (kind == find_word) {
    handle_question(arrival, number, line, now);
  } else {
    handle_answer(arrival, kind, number, line);
  }
}

// Returns the publications of other processes of this user at this address, as last read.
const Publications& NameService::neighbours(Time now) {
  if (now < look_at_) return neighbours_;
  look_at_ = now + look_again_after;
  try {
    neighbours_ = files_->all(transport_.self().address);
  } catch (const std::bad_alloc&) {
    neighbours_.clear();  // the asking process repeats its question
  }
  return neighbours_;
}

const Publication* NameService::find(std::string_view name, Time now) {
  if (const auto ours = published_.find(name); ours != published_.end()) return &ours->second;
  if (!files_) return nullptr;
  const Publications& others = neighbours(now);
  const auto found = others.find(name);
  return found != others.end() ? &found->second : nullptr;
}

void NameService::handle_question(const Completion& arrival, uint32_t number, std::string_view name,
                                  Time now) {
  const auto asker = transport_.facts(arrival.from);
  if (!asker || arrival.from_jetty != names_jetty || !valid_name(name)) return;
  const Publication* publication = find(name, now);
  // If the audience of a name does not include the asker, the answer is the same as if the name did
  // not exist.
  const bool given =
      publication != nullptr && (one_process_ || publication->audience.admits(asker->eid));
  send(arrival.from, given ? found_word : none_word, number,
       given ? std::string_view(publication->line) : std::string_view());
}

void NameService::handle_answer(const Completion& arrival, std::string_view kind, uint32_t number,
                                std::string_view line) {
  for (Question* question = questions_; question != nullptr; question = question->next) {
    if (question->number != number || !(question->peer == arrival.from)) continue;
    if (question->done) continue;
    if (kind == found_word) {
      question->done = true;
      question->status = Status::ok;
      question->line = line;
    } else if (kind == none_word) {
      // The name may still be published later: the two sides may start in any order.
      question->status = Status::not_found;
    }
  }
}

}  // namespace urma::engine
