// SPDX-License-Identifier: Apache-2.0
// Hands the KV cache of prompts over from a process that computes it (prefill) into the paged cache
// of a process that uses it (decode), block by block, as vLLM does over Mooncake or NIXL. Either
// process may be killed and started again at any time: each block is taken exactly once.
//
//   example_block_mover prefill NAME [MS]          serves requests, MS milliseconds for each layer
//   example_block_mover decode NAME COUNT [LOG]    asks for COUNT prompts, and checks each block
//
// Decode owns the cache: for each layer an array of blocks, and a block holds the keys and values
// of 16 tokens. For each prompt it reserves blocks and asks prefill to write them. Prefill writes
// each layer when it is computed, while it computes the next one. Each block is a write with an
// immediate that names it, so the notification arrives once, when the block is in place. If such a
// write ends as `unknown`, decode either has the block and its notification, or neither.
//
// If no notification comes by the deadline, prefill may be dead, or slow and still writing. So
// decode first ends the token of these writes: then no late write can reach blocks that belong to
// another prompt. Then it asks again, for the blocks that it lacks.
//
// A block is taken when its line is in the log. A decode that is started again with the same log
// asks for the other blocks only.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <list>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <urma/urma.hpp>
#include <vector>

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr size_t layers = 4;
constexpr size_t block_bytes = 16 * 256;  // 16 tokens
constexpr size_t cache_blocks = 256;      // of each layer
constexpr size_t prompt_blocks = 16;      // a prompt has up to 256 tokens
constexpr size_t at_once = 4;             // prompts that decode waits for
constexpr size_t most_notices = at_once * layers * prompt_blocks;
constexpr auto deadline = 2s;

// Decode's request. Blocks need not be contiguous in the cache. The lines contain the tokens of the
// cache and of the Jetty to notify.
using Line = std::array<char, urma::max_descriptor_bytes>;
struct Request {
  uint64_t prompt;
  uint32_t blocks;
  std::array<uint32_t, prompt_blocks> ids;
  std::array<uint16_t, layers> wanted;  // bit i: block i of this layer is to be written
  Line cache;
  Line notify;
};
void set(Line& line, const std::string& text) {
  std::strncpy(line.data(), text.data(), line.size());
}
std::string_view text_of(const Line& line) {
  return {line.data(), strnlen(line.data(), line.size())};
}

// Prompt i has 1 to 16 blocks in each layer.
uint32_t blocks_of(uint64_t prompt) { return static_cast<uint32_t>(1 + prompt % prompt_blocks); }

// A block of a prompt, as an immediate names it.
struct Name {
  uint64_t prompt;
  size_t layer;
  size_t block;

  uint64_t pack() const { return prompt << 16 | layer << 8 | block; }
  static Name unpack(uint64_t value) { return {value >> 16, value >> 8 & 0xff, value & 0xff}; }
  bool valid() const { return layer < layers && block < blocks_of(prompt); }
};

size_t place_of(size_t layer, size_t block) { return (layer * cache_blocks + block) * block_bytes; }

// Prints a line immediately, since a test or a script may wait for it.
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// The "attention keys" of a block: each byte depends on prompt, layer, block and position.
std::byte value_of(uint64_t prompt, size_t layer, size_t block, size_t at) {
  return std::byte((prompt * 131 + layer * 31 + block * 7 + at) % 251);
}

// ---- prefill

class Prefill {
 public:
  Prefill(const std::string& name, std::chrono::milliseconds layer_time)
      : layer_time_(layer_time),
        blocks_(layers * prompt_blocks * block_bytes),
        device_(urma::open().value()),
        inbox_(device_.jetty({.berths = 0, .receives = at_once * 2}).value()),
        // A dead decode process ends the writes after this time at the latest.
        mover_(device_.jetty({.berths = 64, .operation_timeout = 1s}).value()) {
    for (size_t i = 0; i < messages_.size(); ++i) receive(i);
    device_.publish(name, inbox_).value();
    say("prefill is ready");
  }

  [[noreturn]] void serve() {
    for (;;) {
      for (const auto& arrival : inbox_.wait(1h)) {
        if (!arrival.ok()) throw std::runtime_error(urma::name(arrival.status).data());
        const Request request = messages_[arrival.tag];
        receive(arrival.tag);
        if (arrival.bytes != sizeof request || request.blocks > prompt_blocks) continue;
        const urma::Status status = move(request);
        if (status == urma::Status::ok) continue;
        // Decode will miss notifications, and ask again if it still runs.
        say("prompt " + std::to_string(request.prompt) +
            " was not moved: " + std::string(urma::name(status)));
      }
    }
  }

 private:
  void receive(size_t i) {
    const auto bytes = std::as_writable_bytes(std::span(&messages_[i], 1));
    if (!inbox_.receive(bytes, i)) throw std::runtime_error("a receive buffer was not taken");
  }

  urma::Status move(const Request& request) {
    // Another process wrote these lines; `import` refuses what is not a descriptor.
    const auto cache = device_.import(text_of(request.cache));
    const auto notify = device_.import(text_of(request.notify));
    if (!cache || !notify) return cache ? notify.status() : cache.status();
    failed_ = urma::Status::ok;
    for (size_t layer = 0; layer < layers && failed_ == urma::Status::ok; ++layer) {
      std::vector<urma::Work> works;
      for (size_t i = 0; i < request.blocks; ++i) {
        const auto block =
            std::span(blocks_).subspan((layer * prompt_blocks + i) * block_bytes, block_bytes);
        for (size_t at = 0; at < block.size(); ++at) {
          block[at] = value_of(request.prompt, layer, i, at);
        }
        if ((request.wanted[layer] >> i & 1) == 0) continue;
        // Decode chose the ids: a wrong one harms its own memory alone, and none reaches beyond the
        // segment (remote_access).
        works.push_back(urma::write(block, cache->segment, place_of(layer, request.ids[i]))
                            .to(notify->jetty)
                            .immediate(Name{request.prompt, layer, i}.pack()));
      }
      std::this_thread::sleep_for(layer_time_);
      post(works);
    }
    // The blocks are read until their writes have completed, so wait even after a failure.
    while (outstanding_ > 0) take(mover_.wait(10s));
    return failed_;
  }

  void post(std::span<const urma::Work> works) {
    for (;;) {
      const size_t accepted = mover_.post(works);
      outstanding_ += accepted;
      works = works.subspan(accepted);
      if (works.empty()) return;
      take(mover_.wait(10s));  // makes berths vacant
    }
  }

  void take(std::span<const urma::Completion> completions) {
    for (const auto& done : completions) {
      if (done.status == urma::Status::closed) throw std::runtime_error("the device is closed");
      --outstanding_;
      if (!done.ok()) failed_ = done.status;
    }
  }

  const std::chrono::milliseconds layer_time_;
  std::vector<std::byte> blocks_;
  std::array<Request, at_once * 2> messages_{};
  urma::Device device_;
  urma::Jetty inbox_;  // destroyed before the memory above, which the Jetties borrow
  urma::Jetty mover_;
  size_t outstanding_ = 0;
  urma::Status failed_ = urma::Status::ok;
};

// ---- decode

// The blocks that were taken, by this process and those before it: a line "PROMPT LAYER BLOCK" for
// each, and "wrong" behind it if its bytes were. One `write` appends a line, so that a process that
// is killed has taken a block or has not.
class Log {
 public:
  explicit Log(const std::string& path) {
    if (path.empty()) return;
    file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) throw std::runtime_error(path + " cannot be opened");
    std::ifstream in(path);
    size_t whole = 0;
    for (std::string line; std::getline(in, line) && !in.eof(); whole += line.size() + 1) {
      Name name{};
      std::string verdict;
      std::istringstream words(line);
      if (!(words >> name.prompt >> name.layer >> name.block) || !name.valid()) {
        throw std::runtime_error(path + " has a line that is not a block: " + line);
      }
      words >> verdict;
      note(name, verdict != "wrong");
    }
    // Part of a line, if the disk was full.
    if (ftruncate(file_, static_cast<off_t>(whole)) != 0) {
      throw std::runtime_error(path + " cannot be shortened");
    }
  }
  Log(const Log&) = delete;
  ~Log() {
    if (file_ >= 0) close(file_);
  }

  // Takes a block.
  void add(const Name& name, bool right) {
    const std::string line = std::to_string(name.prompt) + " " + std::to_string(name.layer) + " " +
                             std::to_string(name.block) + (right ? "\n" : " wrong\n");
    if (file_ >= 0 && write(file_, line.data(), line.size()) != ssize_t(line.size())) {
      throw std::runtime_error("a block cannot be noted in the log");
    }
    note(name, right);
  }

  // Bit i: block i of this layer was not taken yet.
  uint16_t missing(uint64_t prompt, size_t layer) const {
    const auto all = static_cast<uint16_t>((1u << blocks_of(prompt)) - 1);
    const auto found = taken_.find(prompt);
    return found == taken_.end() ? all : static_cast<uint16_t>(all & ~found->second[layer]);
  }
  bool complete(uint64_t prompt) const {
    for (size_t layer = 0; layer < layers; ++layer) {
      if (missing(prompt, layer) != 0) return false;
    }
    return true;
  }
  std::string summary() const {
    return "blocks " + std::to_string(blocks_) + ", twice " + std::to_string(twice_) + ", wrong " +
           std::to_string(wrong_);
  }
  bool faultless() const { return twice_ == 0 && wrong_ == 0; }

 private:
  void note(const Name& name, bool right) {
    uint16_t& mask = taken_[name.prompt][name.layer];
    const auto bit = static_cast<uint16_t>(1u << name.block);
    ++((mask & bit) != 0 ? twice_ : blocks_);
    mask |= bit;
    wrong_ += right ? 0 : 1;
  }

  int file_ = -1;
  std::map<uint64_t, std::array<uint16_t, layers>> taken_;
  uint64_t blocks_ = 0;
  uint64_t twice_ = 0;
  uint64_t wrong_ = 0;
};

class Decode {
 public:
  Decode(const std::string& name, const std::string& log)
      : where_("urma://localhost/" + name),
        log_(log),
        device_(urma::open().value()),
        cache_(device_.allocate(layers * cache_blocks * block_bytes, urma::Rights::write).value()) {
    // Neighbours in this list are not neighbours in the cache, as in a cache that has been in use.
    for (uint32_t i = 0; i < cache_blocks; ++i) free_.push_back(i * 97 % cache_blocks);
    connect();
  }

  int run(uint64_t count) {
    for (uint64_t next = 0; done_ < count;) {
      for (; next < count && asked_.size() < at_once; ++next) {
        if (log_.complete(next)) {
          ++done_;
          continue;
        }
        Request& request = asked_.emplace_back().request;
        request.prompt = next;
        request.blocks = blocks_of(next);
        for (uint32_t i = 0; i < request.blocks; ++i) {
          request.ids[i] = free_.front();
          free_.pop_front();
        }
        ask(asked_.back());
      }
      if (asked_.empty()) continue;
      const auto next_deadline =
          std::min_element(asked_.begin(), asked_.end(), [](const Asked& one, const Asked& other) {
            return one.until < other.until;
          })->until;
      const auto left = std::max(next_deadline - Clock::now(), Clock::duration());
      bool failed = left == left.zero();
      for (const auto& one : jetty_->wait(left)) {
        // A failed request has not reached prefill, or may not have.
        one.ok() ? take(one) : void(failed = true);
      }
      if (failed) recover();
    }
    say("prompts " + std::to_string(done_) + ", " + log_.summary() + ", recovered " +
        std::to_string(recovered_));
    return log_.faultless() ? 0 : 1;
  }

 private:
  struct Asked {
    Request request{};  // borrowed by the library until the send has completed
    bool sent = false;
    Clock::time_point until{};
  };

  void connect() {
    // Prefill may start later, and after its end a new process publishes the name.
    prefill_ = device_.import(where_, 30s).value().jetty;
    // Destroying the old Jetty ends its works, so the requests may be changed. A notification of an
    // earlier attempt names the old Jetty, and reaches none.
    jetty_.reset();
    jetty_.emplace(device_.jetty({.receives = most_notices, .operation_timeout = 1s}).value());
  }

  void ask(Asked& one) {
    set(one.request.cache, cache_.descriptor());
    set(one.request.notify, jetty_->descriptor());
    for (size_t layer = 0; layer < layers; ++layer) {
      one.request.wanted[layer] = log_.missing(one.request.prompt, layer);
    }
    one.sent = false;
    one.until = Clock::now() + deadline;
    const auto bytes = std::as_bytes(std::span(&one.request, 1));
    if (jetty_->post(urma::send(bytes, prefill_).tag(one.request.prompt)) != 1) {
      throw std::runtime_error("the request was not accepted");
    }
  }

  // Notifications may be polled before the completion of the request.
  void take(const urma::Completion& one) {
    const bool arrived = one.operation == urma::Operation::receive;
    const Name name = Name::unpack(one.immediate);
    const auto asked = std::find_if(asked_.begin(), asked_.end(), [&](const Asked& each) {
      return each.request.prompt == (arrived ? name.prompt : one.tag);
    });
    if (asked == asked_.end() || (arrived && !name.valid())) {
      throw std::runtime_error("prefill notified of a block that decode did not ask for");
    }
    if (arrived) {
      log_.add(name, is_right(asked->request, name));
      asked->until = Clock::now() + deadline;
    } else {
      asked->sent = true;
    }
    if (!asked->sent || !log_.complete(asked->request.prompt)) return;
    const auto ids = std::span(asked->request.ids).first(asked->request.blocks);
    free_.insert(free_.end(), ids.begin(), ids.end());
    asked_.erase(asked);
    if (++done_ % 10 == 0) say(std::to_string(done_) + " prompts");
  }

  // The model would use the block here.
  bool is_right(const Request& request, const Name& name) {
    const auto block =
        cache_.bytes().subspan(place_of(name.layer, request.ids[name.block]), block_bytes);
    bool right = true;
    for (size_t at = 0; at < block_bytes; ++at) {
      right = right && block[at] == value_of(name.prompt, name.layer, name.block, at);
      block[at] = std::byte{255};  // no block has this value
    }
    return right;
  }

  void recover() {
    ++recovered_;
    // Ends all writes with the token that the requests so far contained. `not_fenced` means that a
    // process is still copying: wait for it.
    cache_.rotate().value();
    urma::Result<void> retired = cache_.retire();
    while (retired.status() == urma::Status::not_fenced) retired = cache_.retire();
    retired.value();
    connect();
    for (Asked& one : asked_) ask(one);
  }

  const std::string where_;
  Log log_;
  urma::Device device_;
  urma::Segment cache_;
  std::list<Asked> asked_;            // never moves them
  std::optional<urma::Jetty> jetty_;  // destroyed before the requests that it borrows
  urma::RemoteJetty prefill_;
  std::deque<uint32_t> free_;
  uint64_t done_ = 0;
  uint64_t recovered_ = 0;
};

}  // namespace

int main(int count, char** words) try {
  std::vector<std::string> all(words + 1, words + count);
  all.resize(std::max<size_t>(all.size(), 4));
  const std::string number_text = all[2].empty() ? "0" : all[2];
  uint16_t number = 0;
  const auto parsed =
      std::from_chars(number_text.data(), number_text.data() + number_text.size(), number);
  const bool valid =
      parsed.ec == std::errc{} && parsed.ptr == number_text.data() + number_text.size();
  if ((count == 3 || count == 4) && all[0] == "prefill" && valid) {
    Prefill(all[1], std::chrono::milliseconds(number)).serve();
  }
  if ((count == 4 || count == 5) && all[0] == "decode" && valid) {
    return Decode(all[1], all[3]).run(number);
  }
  std::fprintf(stderr, "usage: example_block_mover prefill NAME [MS] | decode NAME COUNT [LOG]\n");
  return 2;
} catch (const std::exception& why) {
  std::fprintf(stderr, "example_block_mover: %s\n", why.what());
  return 1;
}
