// SPDX-License-Identifier: Apache-2.0
#include "engine/questions.h"

#include <utility>

#include "base/timer_descriptor.h"

namespace urma::engine {

bool Question::take_due(Time now) {
  if (now < ask_at) return false;
  ask_at = now + ask_again_after;
  return true;
}

void Questions::add(Question& question, Time now) {
  question.number = next_number_++;
  question.ask_at = now;
  question.next = std::exchange(first_, &question);
}

void Questions::remove(const Question& question) {
  Question** link = &first_;
  while (*link != &question) link = &(*link)->next;
  *link = question.next;
}

void Questions::take_answer(PeerId from, const NameMessage& answer) {
  for (Question* question = first_; question != nullptr; question = question->next) {
    if (question->number != answer.number || !(question->peer == from)) continue;
    if (question->done) continue;
    if (answer.kind == NameMessage::Kind::found) {
      question->done = true;
      question->status = Status::ok;
      question->line = answer.rest;
      if (question->timer >= 0) TimerDescriptor::ring(question->timer);
    } else if (answer.kind == NameMessage::Kind::none) {
      // The name may still be published later: the two sides may start in any order.
      question->status = Status::not_found;
    }
  }
}

}  // namespace urma::engine
