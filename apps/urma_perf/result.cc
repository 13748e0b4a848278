// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/result.h"

#include <algorithm>

namespace urma::apps::perf {
namespace {

template <class Member>
std::vector<double> column(const std::vector<Round>& rounds, Member member) {
  std::vector<double> values;
  for (const Round& round : rounds) {
    if (!round.discarded) values.push_back(round.*member);
  }
  return values;
}

}  // namespace

bool compared_in_messages(const Case& what) {
  constexpr uint64_t large = 1024;  // from this size on the raw loops send trains
  return what.bytes < large;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

uint64_t Result::messages() const {
  uint64_t sum = 0;
  for (const Round& round : rounds) sum += round.discarded ? 0 : round.messages;
  return sum;
}
double Result::seconds() const {
  double sum = 0;
  for (const Round& round : rounds) sum += round.discarded ? 0 : round.seconds;
  return sum;
}
double Result::messages_per_second() const {
  return median(column(rounds, &Round::messages_per_second));
}
double Result::bytes_per_second() const {
  return messages_per_second() * static_cast<double>(what.bytes);
}
double Result::lost_percent() const {
  uint64_t lost = 0;
  uint64_t all = 0;
  for (const Round& round : rounds) {
    if (round.discarded) continue;
    lost += round.lost;
    all += round.lost + round.messages;
  }
  return all == 0 ? 0 : 100 * static_cast<double>(lost) / static_cast<double>(all);
}
double Result::rate_percent() const {
  const double time = seconds();
  return time > 0 && rate > 0 ? 100 * static_cast<double>(messages()) / time / rate : 0;
}
uint64_t Result::unsent() const {
  uint64_t sum = 0;
  for (const Round& round : rounds) sum += round.discarded ? 0 : round.unsent;
  return sum;
}
bool Result::rate_reached() const {
  constexpr double most_missing = 0.02;
  // A round may have one message less than its time says.
  const auto sent = static_cast<double>(messages() + rounds.size() - discarded());
  return unsent() == 0 && sent >= (1 - most_missing) * rate * seconds();
}
double Result::waited_percent() const { return median(column(rounds, &Round::waited_percent)); }

std::optional<double> Result::limit() const {
  if (rounds.empty() || rounds.front().limit == 0) return std::nullopt;
  return median(column(rounds, &Round::limit));
}
double Result::times_limit() const { return median(column(rounds, &Round::times_limit)); }
double Result::least_times_limit() const {
  return std::ranges::min(column(rounds, &Round::times_limit));
}
double Result::most_times_limit() const {
  return std::ranges::max(column(rounds, &Round::times_limit));
}

std::string Result::limit_unit() const {
  if (!what.test->bandwidth()) return "us";
  return compared_in_messages(what) ? "messages_per_second" : "bytes_per_second";
}

void Result::settle(size_t wanted) {
  const auto bad = [](const Round& round) { return round.waited_percent > most_waited_percent; };
  const auto good = rounds.size() - static_cast<size_t>(std::ranges::count_if(rounds, bad));
  for (Round& round : rounds) {
    round.discarded = 2 * good >= wanted && bad(round);
    if (round.discarded) continue;
    times.merge(round.times);
    plan.add(round.plan);
    profiles.add(round.profiles);
  }
}

size_t Result::discarded() const {
  return static_cast<size_t>(std::ranges::count_if(rounds, &Round::discarded));
}

void Result::add_flow(const Flow& flow, const Result& one) {
  const Round& its = one.rounds.front();
  if (rounds.empty()) rounds.emplace_back();
  Round& sum = rounds.front();
  const bool first = flows.empty();
  const auto end_of = [](const Round& round) {
    return round.begin + static_cast<int64_t>(round.seconds * 1e9);
  };
  const int64_t begin = first ? its.begin : std::min(sum.begin, its.begin);
  const int64_t end = first ? end_of(its) : std::max(end_of(sum), end_of(its));
  all_began_ = first ? its.begin : std::max(all_began_, its.begin);
  first_ended_ = first ? end_of(its) : std::min(first_ended_, end_of(its));
  sum.begin = begin;
  sum.seconds = static_cast<double>(end - begin) / 1e9;
  overlap_percent = 100 * static_cast<double>(std::max<int64_t>(first_ended_ - all_began_, 0)) /
                    static_cast<double>(std::max<int64_t>(end - begin, 1));
  sum.messages += its.messages;
  sum.unsent += its.unsent;
  sum.messages_per_second += its.messages_per_second;
  sum.waited_percent = std::max(sum.waited_percent, its.waited_percent);
  times.merge(one.times);
  sum.p50_us = us(0.5);
  verdict.add(one.verdict);
  device = one.device;
  mapped = one.mapped;
  flows.push_back({.flow = flow,
                   .p50_us = one.us(0.5),
                   .p99_us = one.us(0.99),
                   .messages_per_second = one.messages_per_second(),
                   .bytes_per_second = one.bytes_per_second(),
                   .wrong = one.verdict.wrong});
}

void Result::compare(Round& round) const {
  if (round.limit == 0) return;
  if (!what.test->bandwidth()) {
    round.times_limit = round.p50_us / round.limit;
    return;
  }
  const double unit = compared_in_messages(what) ? 1 : static_cast<double>(what.bytes);
  const double rate = round.messages_per_second * unit;
  round.times_limit = rate > 0 ? round.limit / rate : 0;
}

void Result::borrow_limit(const Result& other) {
  const auto borrowed = other.limit();
  if (!borrowed) return;
  limit_of_clean_network = true;
  limit_pattern = other.limit_pattern;
  for (Round& round : rounds) {
    round.limit = *borrowed;
    compare(round);
  }
}

}  // namespace urma::apps::perf
