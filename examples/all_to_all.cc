// SPDX-License-Identifier: Apache-2.0
// The all-to-all of a mixture of experts: each of N processes has tokens and hosts one expert. In
// each round every process sends each token to the expert that its router chose (dispatch), and
// gets it back when the expert has computed it (combine).
//
//   example_all_to_all GROUP RANK N ROUNDS    one of N processes; they may start in any order
//
// No process knows how many tokens it will get, so the counts come first. Counts and tokens need no
// order: each write has an immediate that says what it brings, and a receiver is done with a source
// when it has as many tokens as the count said. Tokens to one expert are scattered in memory, so a
// write gathers up to 16 of them. The memory is reserved for the worst case, as in DeepEP: a source
// may send all of its tokens to one expert.
//
// The memory of a source's tokens may be used again in the next round: that source begins the next
// round when it has its computed tokens back, so they have been read.
//
// If a process dies, the others cannot finish the round. So each process that notices it ends,
// within the deadline, and names the ranks that it lacks; then the group is started again as a
// whole.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <urma/urma.hpp>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr uint32_t tokens = 256;  // of each process, in each round
constexpr auto deadline = 5s;     // of a round

struct Token {
  uint32_t source;
  uint32_t index;
  std::array<float, 30> values;
};
static_assert(sizeof(Token) == 128);

// The meaning of an arrival, in the 64 bits of its immediate.
enum class Kind : uint8_t { count, some, computed, done };
struct Note {
  Kind kind;
  uint32_t round;
  uint32_t rank;   // that wrote it
  uint32_t value;  // how many tokens: in all (count, computed), or in this write (some)

  uint64_t packed() const {
    return uint64_t(kind) << 56 | uint64_t(round & 0xffffff) << 32 | rank << 16 | value;
  }
  static Note unpacked(uint64_t from) {
    return {Kind(from >> 56), uint32_t(from >> 32) & 0xffffff, uint32_t(from >> 16) & 0xffff,
            uint32_t(from) & 0xffff};
  }
};

// Prints a line immediately, since a test or a script may wait for it.
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

float computed(float value, size_t expert) { return value * 2 + static_cast<float>(expert); }

class Rank {
 public:
  Rank(const std::string& group, uint32_t rank, uint32_t ranks)
      : rank_(rank),
        ranks_(ranks),
        device_(urma::open().value()),
        memory_(device_.allocate(2 * ranks * tokens * sizeof(Token), urma::Rights::write).value()),
        // A fast peer may be a round ahead of this process.
        jetty_(device_
                   .jetty({.berths = 128,
                           .receives = 2 * ranks * (tokens / 16 + 4),
                           .operation_timeout = 2s})
                   .value()) {
    device_.publish(group + std::to_string(rank), memory_, jetty_).value();
    for (uint32_t i = 0; i < ranks; ++i) {
      const bool self = i == rank;
      peers_.push_back(
          self ? urma::Imported{memory_.local(), jetty_.local()}
               : device_.import("urma://localhost/" + group + std::to_string(i), 30s).value());
    }
    for (auto& half : got_) half.resize(ranks);
  }

  void run(uint32_t rounds) {
    for (round_ = 0; round_ < rounds; ++round_) {
      until_ = Clock::now() + deadline;
      route();
      dispatch();
      await_round();
      check();
      std::fill(now().begin(), now().end(), Got{});
      if ((round_ + 1) % 100 == 0)
        say("rank " + std::to_string(rank_) + ": round " + std::to_string(round_ + 1));
    }
    finish();
    say("rank " + std::to_string(rank_) + ": rounds " + std::to_string(rounds) + ", sent " +
        std::to_string(uint64_t{tokens} * rounds) + ", computed " + std::to_string(total_) +
        ", wrong " + std::to_string(wrong_));
  }
  uint64_t wrong() const { return wrong_; }

 private:
  // The arrivals from one rank in one round.
  struct Got {
    bool counted = false;
    uint32_t count = 0;
    uint32_t tokens = 0;
    bool served = false;    // its tokens were computed and are on their way back
    bool computed = false;  // the own tokens are back
  };
  std::vector<Got>& now() { return got_[round_ % 2]; }

  // In a segment: the tokens that `rank` sent to the owner's expert, and those that the expert
  // `rank` has computed for the owner.
  static size_t sent_by(uint32_t rank) { return rank * tokens * sizeof(Token); }
  size_t computed_by(uint32_t rank) const { return (ranks_ + rank) * tokens * sizeof(Token); }
  std::span<Token> tokens_at(size_t offset, size_t count) const {
    return {reinterpret_cast<Token*>(memory_.bytes().data() + offset), count};
  }

  // Makes the tokens of this round, and chooses an expert for each.
  void route() {
    chosen_.assign(ranks_, {});
    for (uint32_t i = 0; i < tokens; ++i) {
      own_[i].source = rank_;
      own_[i].index = i;
      own_[i].values.fill(static_cast<float>(round_ % 1000 + i));
      // Some experts are chosen more often than others.
      const uint32_t draw = (round_ * 2654435761u + rank_ * 40503u + i * 97u) >> 3;
      chosen_[std::min(draw % (ranks_ + 2), ranks_ - 1)].push_back(i);
    }
  }

  void dispatch() {
    for (uint32_t to = 0; to < ranks_; ++to) {
      note(to, Kind::count, static_cast<uint32_t>(chosen_[to].size()));
    }
    for (uint32_t to = 0; to < ranks_; ++to) {
      for (size_t first = 0; first < chosen_[to].size(); first += urma::max_buffers) {
        const size_t count = std::min(chosen_[to].size() - first, urma::max_buffers);
        std::array<urma::Buffer, urma::max_buffers> pieces;
        for (size_t i = 0; i < count; ++i) {
          pieces[i] = {&own_[chosen_[to][first + i]], sizeof(Token)};
        }
        post(to,
             urma::write(std::span<const urma::Buffer>(pieces).first(count), peers_[to].segment,
                         sent_by(rank_) + first * sizeof(Token)),
             Kind::some, static_cast<uint32_t>(count));
      }
    }
  }

  // The expert of this process computes the tokens of a source, and writes them back.
  void compute(uint32_t from, uint32_t count) {
    const auto all = tokens_at(sent_by(from), count);
    for (Token& token : all) {
      if (token.source != from) ++wrong_;
      for (float& value : token.values) value = computed(value, rank_);
    }
    total_ += count;
    post(from, urma::write(std::as_bytes(all), peers_[from].segment, computed_by(rank_)),
         Kind::computed, count);
  }

  void check() {
    for (uint32_t expert = 0; expert < ranks_; ++expert) {
      const auto& sent = chosen_[expert];
      const auto back = tokens_at(computed_by(expert), sent.size());
      for (size_t i = 0; i < sent.size(); ++i) {
        const float wanted = computed(own_[sent[i]].values[0], expert);
        const bool right = back[i].source == rank_ && back[i].index == sent[i] &&
                           std::all_of(back[i].values.begin(), back[i].values.end(),
                                       [&](float value) { return value == wanted; });
        wrong_ += right ? 0 : 1;
      }
    }
  }

  // A process that ends takes its memory with it. So each waits until all others have finished; how
  // these last works end does not matter.
  void finish() {
    until_ = Clock::now() + deadline;
    finishing_ = true;
    for (uint32_t to = 0; to < ranks_; ++to) note(to, Kind::done, 0);
    const auto done = [](const Got& got) { return got.computed; };
    while (!std::all_of(now().begin(), now().end(), done)) take_some();
  }

  // ---- works and arrivals

  void note(uint32_t to, Kind kind, uint32_t value) {
    const std::span<const std::byte> nothing;
    post(to, urma::write(nothing, peers_[to].segment), kind, value);
  }

  void post(uint32_t to, urma::Work work, Kind kind, uint32_t value) {
    work.to(peers_[to].jetty).immediate(Note{kind, round_, rank_, value}.packed()).tag(to);
    ++outstanding_;
    while (jetty_.post(work) == 0) take_some();
  }

  // Waits until each rank is served, its computed tokens are there, and all works have completed.
  void await_round() {
    const auto over = [](const Got& got) { return got.served && got.computed; };
    while (!std::all_of(now().begin(), now().end(), over) || outstanding_ > 0) {
      for (uint32_t from = 0; from < ranks_; ++from) {
        Got& got = now()[from];
        if (!got.counted || got.tokens != got.count || got.served) continue;
        got.served = true;
        compute(from, got.count);
      }
      take_some();
    }
  }

  void take_some() {
    const auto completions = jetty_.wait(std::max(until_ - Clock::now(), Clock::duration()));
    if (completions.empty()) throw std::runtime_error(lacking());
    for (const auto& one : completions) {
      if (one.operation == urma::Operation::receive && one.ok()) {
        take(Note::unpacked(one.immediate));
      } else {
        --outstanding_;
        // `unknown` is a failure here, too: the peer may or may not have the tokens.
        if (one.ok() || finishing_) continue;
        throw std::runtime_error("a write to rank " + std::to_string(one.tag) + " ended as " +
                                 std::string(urma::name(one.status)));
      }
    }
  }

  void take(const Note& note) {
    if (note.rank >= ranks_ || note.value > tokens) throw std::runtime_error("a wrong immediate");
    Got& got = got_[note.round % 2][note.rank];
    if (note.kind == Kind::count) got.counted = true, got.count = note.value;
    if (note.kind == Kind::some) got.tokens += note.value;
    if (note.kind == Kind::computed || note.kind == Kind::done) got.computed = true;
  }

  std::string lacking() {
    std::string ranks;
    for (uint32_t from = 0; from < ranks_; ++from) {
      const Got& got = now()[from];
      if (!got.computed || !(got.served || finishing_)) ranks += " " + std::to_string(from);
    }
    return "at the deadline something had not come from rank" + ranks;
  }

  const uint32_t rank_;
  const uint32_t ranks_;
  std::array<Token, tokens> own_{};
  urma::Device device_;
  urma::Segment memory_;
  urma::Jetty jetty_;  // destroyed before the tokens that it borrows
  std::vector<urma::Imported> peers_;
  std::vector<std::vector<uint32_t>> chosen_;  // by expert: which of the own tokens
  std::array<std::vector<Got>, 2> got_;        // by rank, in even and odd rounds
  uint32_t round_ = 0;
  size_t outstanding_ = 0;
  bool finishing_ = false;
  Clock::time_point until_;
  uint64_t total_ = 0;
  uint64_t wrong_ = 0;
};

}  // namespace

int main(int count, char** words) try {
  std::array<uint32_t, 3> numbers{};
  bool valid = count == 5;
  for (size_t i = 0; valid && i < numbers.size(); ++i) {
    const std::string_view text = words[i + 2];
    valid = std::from_chars(text.data(), text.data() + text.size(), numbers[i]).ec == std::errc{};
  }
  const auto [rank, ranks, rounds] = numbers;
  if (!valid || ranks == 0 || ranks > 64 || rank >= ranks || rounds >= 1 << 24) {
    std::fprintf(stderr, "usage: example_all_to_all GROUP RANK N ROUNDS\n");
    return 2;
  }
  Rank self(words[1], rank, ranks);
  self.run(rounds);
  return self.wrong() == 0 ? 0 : 1;
} catch (const std::exception& why) {
  std::fprintf(stderr, "example_all_to_all: rank %s: %s\n", count > 2 ? words[2] : "?", why.what());
  return 1;
}
