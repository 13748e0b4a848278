// SPDX-License-Identifier: Apache-2.0
// A replicated log: a leader appends entries to the memory of its followers by one-sided writes. An
// entry is committed when a majority has it (the leader counts).
//
//   example_replicated_log follow NAME              stores the log, applies committed entries
//   example_replicated_log lead COUNT NAME...       appends COUNT entries, and ends when each
//                                                   follower has all of them, or after 30 s
//
// A batch to one follower is unsignalled writes of entries, which need no order among themselves,
// since each has a slot of its own; and one signalled write behind them. That one stores the length
// of the log, and its immediate tells the follower how far the log is committed. It is *fenced*: it
// is sent when all entries of the batch have ended, and not at all if one of them failed, since the
// Jetty suspends on an error. So a length never counts an entry that is missing. (A strong work
// would save a round trip, but does not wait for an entry that ended as `unknown`.) Each follower
// has a Jetty of its own, so that none waits for another one.
//
// A failed work may have executed (`unknown`) or not. Here it need not be known: entries never
// change, so the leader writes all of them again whose batch has not completed as `ok`. If the
// follower was restarted, its memory is empty, and the leader begins at the first entry.
//
// What a service needs beyond this: the log on disk, so that a restarted follower has what it has
// acknowledged; and an election, in which followers end the old leader's token (Segment::rotate and
// retire), so that a deposed leader cannot write any longer.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <urma/urma.hpp>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint64_t capacity = 1 << 18;  // entries; a service would truncate the log
constexpr uint64_t most_in_batch = 64;
constexpr uint64_t last_batch = 1ull << 63;  // in the immediate: no entries will follow

struct Entry {
  uint64_t number;  // from 1
  std::array<char, 48> text;
  uint64_t check;
};
static_assert(sizeof(Entry) == 64);

// The follower's segment: the length of its log, then the entries.
constexpr uint64_t entries_at = 64;
uint64_t place_of(uint64_t number) { return entries_at + (number - 1) * sizeof(Entry); }

uint64_t check_of(const Entry& entry) {
  uint64_t hash = 0xcbf29ce484222325 ^ entry.number;  // FNV-1a
  for (const char letter : entry.text) hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  return hash;
}

// Prints a line immediately, since a test or a script may wait for it.
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// ---- a follower

int follow(const std::string& name) {
  auto device = urma::open().value();
  auto memory = device.allocate(place_of(capacity + 1), urma::Rights::write).value();
  auto jetty = device.jetty({.berths = 0, .receives = 4}).value();
  device.publish(name, memory, jetty).value();
  say(name + " is ready");

  uint64_t applied = 0;
  uint64_t wrong = 0;
  const std::byte* const log = memory.bytes().data();
  for (bool ended = false; !ended;) {
    const auto arrivals = jetty.wait(60s);
    if (arrivals.empty()) throw std::runtime_error("the leader is silent for 60 s");
    for (const auto& arrival : arrivals) {
      if (!arrival.ok()) throw std::runtime_error(urma::describe(arrival.status).meaning.data());
      ended = (arrival.immediate & last_batch) != 0;
      const uint64_t committed = arrival.immediate & ~last_batch;
      const uint64_t before = applied;
      // The number comes from another process, so it is not trusted.
      for (; applied < std::min(committed, capacity); ++applied) {
        Entry entry;
        std::memcpy(&entry, log + place_of(applied + 1), sizeof entry);
        wrong += entry.number != applied + 1 || entry.check != check_of(entry) ? 1 : 0;
      }
      if (ended || applied / 10000 > before / 10000) {
        say(name + " applied " + std::to_string(applied) + ", wrong " + std::to_string(wrong) +
            (ended ? ", the end" : ""));
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}

// ---- the leader

// The leader's knowledge of one follower. No call here waits for it, so a dead one delays nothing.
class Follower {
 public:
  Follower(urma::Device& device, const std::string& name, const std::vector<Entry>& log)
      : device_(device),
        name_(name),
        log_(log),
        jetty_(device
                   .jetty({.berths = most_in_batch + 1,
                           .operation_timeout = 500ms,
                           .suspend_on_error = true})
                   .value()) {
    import();
  }

  // Returns how many entries are certainly in the follower's memory, the first ones of the log.
  uint64_t stored() const { return stored_; }
  bool has_all(uint64_t appended) const {
    return stored_ == appended && told_ == (appended | last_batch);
  }
  void print() const {
    say(name_ + ": stored " + std::to_string(stored_) + ", found " + std::to_string(found_) +
        " times, unknown " + std::to_string(unknown_));
  }

  // Takes completions, and sends the next batch if none is on its way. `appended`: how many entries
  // the log has. `news`: how many are committed, and whether that is all.
  void step(uint64_t appended, uint64_t news) {
    if (import_) return find();
    std::array<urma::Completion, 8> completions;
    for (size_t count; (count = jetty_.poll(completions)) > 0;) {
      for (size_t i = 0; i < count; ++i) take(completions[i]);
    }
    if (failed_) return recover();
    if (sending_ || (stored_ == appended && told_ == news)) return;
    send(std::min(appended, stored_ + most_in_batch), news);
  }

 private:
  void import() {
    import_ = device_.start_import("urma://localhost/" + name_, {.limit = 1h}).value();
  }

  void find() {
    const auto found = import_->poll();
    if (!found) return;
    import_.reset();
    if (!*found) return import();
    // The peer names one incarnation of the process. A new one has none of the entries.
    if (!(found->value().segment.peer == memory_.peer)) stored_ = told_ = 0;
    memory_ = found->value().segment;
    inbox_ = found->value().jetty;
    ++found_;
  }

  void send(uint64_t until, uint64_t news) {
    std::vector<urma::Work> batch;
    for (uint64_t number = stored_ + 1; number <= until; ++number) {
      const auto bytes = std::as_bytes(std::span(&log_[number - 1], 1));
      batch.push_back(urma::write(bytes, memory_, place_of(number)).unsignalled());
    }
    length_ = until;
    sent_news_ = news;
    // The follower must have what it is told is committed.
    const uint64_t committed = std::min(news & ~last_batch, until);
    const bool last = (news & last_batch) != 0 && committed == (news & ~last_batch);
    batch.push_back(urma::write(std::as_bytes(std::span(&length_, 1)), memory_, 0)
                        .to(inbox_)
                        .immediate(committed | (last ? last_batch : 0))
                        .fenced());
    // There is a berth for each work of a batch, so only a closed device accepts fewer.
    if (jetty_.post(batch) != batch.size()) throw std::runtime_error("the device is closed");
    sending_ = true;
  }

  // The one signalled work of the batch implies that the others have succeeded. Of the others only
  // those that failed complete.
  void take(const urma::Completion& done) {
    if (done.ok()) {
      sending_ = false;
      stored_ = length_;
      told_ = sent_news_;
      return;
    }
    failed_ = true;
    unknown_ += done.status == urma::Status::unknown ? 1 : 0;
  }

  void recover() {
    // Ends what is left of the batch, which is then ours again. All of these completions say that
    // the work failed, or is `unknown`, so they say nothing that is not known already.
    jetty_.flush().value();
    std::array<urma::Completion, 8> completions;
    while (jetty_.poll(completions) > 0) {
    }
    jetty_.reset().value();
    failed_ = sending_ = false;
    import();
  }

  urma::Device& device_;
  const std::string name_;
  const std::vector<Entry>& log_;
  urma::Jetty jetty_;
  std::optional<urma::Import> import_;
  urma::RemoteSegment memory_;
  urma::RemoteJetty inbox_;
  uint64_t stored_ = 0;
  uint64_t told_ = 0;       // the news that the follower has
  uint64_t length_ = 0;     // of the follower's log after the batch; borrowed while `sending_`
  uint64_t sent_news_ = 0;  // with the batch
  bool sending_ = false;
  bool failed_ = false;
  uint64_t found_ = 0;
  uint64_t unknown_ = 0;
};

int lead(uint64_t count, const std::vector<std::string>& names) {
  auto device = urma::open().value();
  std::vector<Entry> log(count);   // never moves, because works borrow its memory
  std::deque<Follower> followers;  // never moves them, since works borrow their memory
  for (const auto& name : names) followers.emplace_back(device, name, log);

  uint64_t appended = 0;
  uint64_t committed = 0;
  const auto limit = Clock::now() + 30s;
  const auto all_have = [&] {
    return std::all_of(followers.begin(), followers.end(),
                       [&](const Follower& one) { return one.has_all(count); });
  };
  // The leader polls without a pause, for the lowest latency. One that has nothing to append would
  // sleep at the descriptors of the Jetties (urma::poll_and_arm) and imports.
  while (!all_have() && Clock::now() < limit) {
    // Entries that are not committed are bounded, as memory for answers of clients would be.
    for (; appended < count && appended < committed + 2 * most_in_batch; ++appended) {
      Entry& entry = log[appended];
      entry.number = appended + 1;
      std::snprintf(entry.text.data(), entry.text.size(), "set key%llu",
                    static_cast<unsigned long long>(appended * 7919 % 1000));
      entry.check = check_of(entry);
    }
    const uint64_t news = committed | (committed == count ? last_batch : 0);
    std::vector<uint64_t> stored{appended};  // the leader's own log
    for (Follower& one : followers) {
      one.step(appended, news);
      stored.push_back(one.stored());
    }
    // The entry that more than half of the logs have: the middle one of an odd number.
    std::sort(stored.rbegin(), stored.rend());
    const uint64_t majority = std::max(committed, stored[stored.size() / 2]);
    if (majority / 10000 > committed / 10000) say("committed " + std::to_string(majority));
    committed = majority;
  }
  say("committed " + std::to_string(committed) + " of " + std::to_string(count));
  for (const Follower& one : followers) one.print();
  return committed == count ? 0 : 1;
}

}  // namespace

int main(int count, char** words) try {
  const std::vector<std::string> all(words + 1, words + count);
  uint64_t number = 0;
  if (all.size() == 2 && all[0] == "follow") return follow(all[1]);
  if (all.size() >= 3 && all[0] == "lead" &&
      std::from_chars(all[1].data(), all[1].data() + all[1].size(), number).ec == std::errc{} &&
      number <= capacity) {
    return lead(number, {all.begin() + 2, all.end()});
  }
  std::fprintf(stderr, "usage: example_replicated_log follow NAME | lead COUNT NAME...\n");
  return 2;
} catch (const std::exception& why) {
  std::fprintf(stderr, "example_replicated_log: %s\n", why.what());
  return 1;
}
