// SPDX-License-Identifier: Apache-2.0
#include "transport/rtp/sent_window.h"

#include <algorithm>
#include <utility>

namespace urma::transport {
namespace {

constexpr int stamp_shift = 8;  // units of 256 ns; 32 bits wrap after 18 minutes
constexpr Duration stamp_unit{1 << stamp_shift};

}  // namespace

uint32_t SentWindow::stamp(Time now) {
  return static_cast<uint32_t>(now.time_since_epoch().count() >> stamp_shift);
}

Duration SentWindow::age(const Packet& packet, Time now) {
  return Duration(static_cast<int64_t>(stamp(now) - packet.sent) << stamp_shift);
}

// An acknowledgement that comes sooner than an answer can come is for the first copy. So is an
// acknowledgement that comes later, because then the peer was not running.
bool SentWindow::may_answer(const Packet& packet, Duration since, const AnswerTimes& answer) const {
  return since + 2 * stamp_unit >= answer.least &&
         since <= answer.longest + 2 * routes_.took(packet.route);
}

SentWindow::Packet* SentWindow::push(const Packet& packet, Time now, Pool& pool) {
  static_assert(sizeof(Packet) == 24);
  if (!packets_.push(pool, packet)) return nullptr;
  Packet& back = packets_.back(pool);
  back.sent = stamp(now);
  inflight_bytes_ += back.bytes;
  routes_.left(back.route, back.bytes);
  return &back;
}

void SentWindow::sending(Packet& packet, uint16_t bytes, Time now) {
  if (packet.lost) {
    packet.lost = false;
    --lost_packets_;
    routes_.left(packet.route, bytes);
  } else {
    inflight_bytes_ -= packet.bytes;
    routes_.resized(packet.route, int64_t{bytes} - packet.bytes);
  }
  packet.bytes = bytes;
  packet.sent = stamp(now);
  inflight_bytes_ += bytes;  // UB 4.6.1: from the transport header to the ICRC
}

// The evidence that `acknowledge` has found so far.
struct SentWindow::Findings {
  Acknowledgement news;
  bool sent_again = false;           // a packet that was sent more than once was acknowledged
  const Packet* answered = nullptr;  // a question; the arrival of its second copy may be evidence
  Time asked{};                      // when that copy left
  bool may_be_answer = false;        // a question is acknowledged as soon as an answer may come
};

SentWindow::Acknowledgement SentWindow::acknowledge(Psn through, const Saetph* selective,
                                                    const AnswerTimes& answer, Time now,
                                                    Pool& pool) {
  Findings found;
  Acknowledgement& news = found.news;
  Psn psn = first_;
  auto at = begin(pool);
  if (!routes_.several()) acknowledge_run(at, psn, through, now, news);
  const Psn end = selective ? through + selective->bit_count : through + 1;
  for (; at && psn < end; ++at, ++psn) {
    if (at->acknowledged) continue;
    if (psn > through && !selective->bit(static_cast<uint32_t>(psn - through))) continue;
    at->acknowledged = true;
    const bool lost = at->lost;
    at->lost = false;
    const Duration since = age(*at, now);
    routes_.arrived(at->route, lost ? 0 : at->bytes, now - since, now);
    if (lost) {
      --lost_packets_;
      ++news.spurious;
    } else {
      inflight_bytes_ -= at->bytes;
    }
    news.bytes += at->bytes;
    news.highest = psn;
    found.sent_again = found.sent_again || lost || at->copies > 1;
    if (at->copies > 1) {
      learn_from_repeated(*at, since, lost, answer, now, found);
    } else {
      learn_from_single(*at, psn, since, now, found);
    }
  }
  if (found.answered != nullptr) {
    news.newest_sent = std::max(news.newest_sent, found.asked);
    routes_.note_arrival(found.answered->route, found.asked, now);
  }
  // Without a TPSACK, the acknowledgement of packets behind a hole had to wait until the hole was
  // filled, so it does not measure a round trip.
  if (found.sent_again && selective == nullptr) news.rtt.reset();
  // The answer to a question also acknowledges packets whose acknowledgement was lost. Their time
  // includes the wait for the question, and longer waits would follow from it.
  if (found.may_be_answer) news.rtt.reset();
  return news;
}

// The fast path of most packets, which does to all of them what `acknowledge` does to each: their
// times rise with their numbers, so the first and the last one show everything.
inline void SentWindow::acknowledge_run(Queue::Cursor& at, Psn& psn, Psn through, Time now,
                                        Acknowledgement& news) {
  const auto plain = [](const Packet& packet) {
    return packet.copies == 1 && !packet.acknowledged && !packet.lost;
  };
  if (!at || psn > through || !plain(*at)) return;
  news.overtaken = psn < highest_acknowledged_;
  news.oldest_first_copy = now - age(*at, now);
  const Packet* last = nullptr;
  for (; at && psn <= through && plain(*at); ++at, ++psn) {
    at->acknowledged = true;
    news.bytes += at->bytes;
    last = &*at;
  }
  inflight_bytes_ -= static_cast<uint32_t>(news.bytes);
  news.highest = psn - 1;
  news.rtt = age(*last, now);
  news.newest_sent = now - *news.rtt;
  highest_acknowledged_ = std::max(highest_acknowledged_, news.highest);
}

// If the acknowledgement comes sooner than any answer can come, it is for the first copy. If it
// comes later, it may be for either copy, but most often it is for the second.
inline void SentWindow::learn_from_repeated(const Packet& packet, Duration since, bool lost,
                                            const AnswerTimes& answer, Time now, Findings& found) {
  Acknowledgement& news = found.news;
  const bool first_copy = since + 2 * stamp_unit < answer.least;
  if (first_copy && !packet.asked) {
    news.in_vain = true;
    if (!lost) ++news.spurious;
    routes_.note_in_vain(packet.route);
  }
  if (packet.asked) {
    const bool in_time = may_answer(packet, since, answer);
    news.answered = news.answered.value_or(false) || in_time;
    found.may_be_answer = found.may_be_answer || since <= answer.longest;
    if (in_time && now - since >= found.asked) {
      found.answered = &packet;
      found.asked = now - since;
    }
  } else if (!first_copy) {
    news.newest_sent = std::max(news.newest_sent, now - since);
    routes_.note_arrival(packet.route, now - since, now);
  }
}

inline void SentWindow::learn_from_single(const Packet& packet, Psn psn, Duration since, Time now,
                                          Findings& found) {
  Acknowledgement& news = found.news;
  // A packet with a higher number that left before the question has arrived, so the first copy of
  // the question probably has, too: its second copy is not evidence.
  if (now - since < found.asked) found.answered = nullptr;
  routes_.note_arrival(packet.route, now - since, now);
  if (psn < highest_acknowledged_) {
    news.overtaken = true;
  } else {
    highest_acknowledged_ = psn;
  }
  news.rtt = since;
  news.newest_sent = std::max(news.newest_sent, now - since);
  news.oldest_first_copy = std::min(news.oldest_first_copy, now - since);
}

size_t SentWindow::retire(std::span<SliceRef> delivered, Pool& pool) {
  size_t count = 0;
  while (!packets_.empty() && packets_.front(pool).acknowledged && count < delivered.size()) {
    const Packet& packet = packets_.front(pool);
    if (packet.last) delivered[count++] = packet.slice;
    packets_.pop(pool);
    ++first_;
  }
  return count;
}

// UB 4.6.2: lost packets are not in flight.
void SentWindow::lose(Packet& packet, Time sent, bool asked) {
  packet.lost = true;
  packet.asked = asked;
  ++lost_packets_;
  inflight_bytes_ -= packet.bytes;
  routes_.lose(packet.route, packet.bytes, sent, asked);
}

SentWindow::Missing SentWindow::mark_lost(const LossEvidence& evidence, Duration tolerance,
                                          Time now, Pool& pool) {
  Missing out;
  Psn psn = first_;
  const JudgedRoutes routes = routes_.judged();
  routes.judge(tolerance, now);
  for (auto at = begin(pool); at && psn <= evidence.through; ++at, ++psn) {
    if (at->acknowledged || at->lost) continue;
    const Time sent = now - age(*at, now);
    // For comparison with packets of other routes, the packet counts as sent later by as much as
    // its route is slower than theirs.
    const Time as_if = sent + routes.later(at->route);
    if (routes.overtaken(at->route, sent) || is_lost(psn, as_if, at->copies > 1, evidence)) {
      out.lost_bytes += at->bytes;
      lose(*at, sent);
      continue;
    }
    out.oldest_sent = std::min(out.oldest_sent, as_if);
    out.until = std::min(out.until, routes.patience(at->route, sent, tolerance));
  }
  return out;
}

uint64_t SentWindow::mark_all_lost(Duration least_age, Time now, Pool& pool) {
  uint64_t bytes = 0;
  bool first = true;
  for (auto at = begin(pool); at; ++at) {
    if (at->acknowledged) continue;
    const bool believed = std::exchange(first, false) || age(*at, now) >= least_age;
    if (at->lost || !believed) continue;
    bytes += at->bytes;
    lose(*at, now - age(*at, now));
  }
  return bytes;
}

void SentWindow::ask_last(Time now, Pool& pool) {
  Packet* last = nullptr;
  for (auto at = begin(pool); at; ++at) {
    if (!at->acknowledged && !at->lost) last = &*at;
  }
  if (last != nullptr) lose(*last, now - age(*last, now), true);
}

unsigned SentWindow::ask_first(unsigned most_packets, uint64_t most_bytes, Time now, Pool& pool) {
  unsigned count = 0;
  uint64_t bytes = 0;
  for (auto at = begin(pool); at && count < most_packets; ++at) {
    if (at->acknowledged) continue;
    bytes += at->bytes;
    if (count > 0 && bytes > most_bytes) break;
    ++count;
    if (!at->lost) lose(*at, now - age(*at, now), true);
  }
  return count;
}

void SentWindow::release(Pool& pool) {
  packets_.clear(pool);
  routes_.forget_packets();
  inflight_bytes_ = 0;
  lost_packets_ = 0;
}

bool SentWindow::check(Pool& pool) {
  uint64_t inflight = 0;
  uint32_t lost = 0;
  for (auto at = begin(pool); at; ++at) {
    if (at->acknowledged && at->lost) return false;
    if (at->lost) ++lost;
    if (!at->acknowledged && !at->lost) inflight += at->bytes;
  }
  return inflight == inflight_bytes_ && lost == lost_packets_;
}

}  // namespace urma::transport
