// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/demo.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_notify/recording.h"

namespace urma::apps::notify {
namespace {

constexpr size_t log_lines = 13;
constexpr size_t width = 79;  // the last column stays free: some terminals would begin a line there

// The alternate screen of the terminal, without a cursor, until this object is destroyed.
class Screen {
 public:
  Screen() { apps::print("\033[?1049h\033[?25l"); }
  Screen(const Screen&) = delete;
  ~Screen() { apps::write_all(STDOUT_FILENO, "\033[?25h\033[?1049l"); }

  static void show(const std::vector<std::string>& lines) {
    std::string text = "\033[H";
    for (const std::string& line : lines) text += line.substr(0, width) + "\033[K\r\n";
    apps::print(text + "\033[J");
  }
};

std::string sentence(const Event& event) {
  const char* const to = event.to_receiver ? "receiver" : "sender";
  switch (event.kind) {
    case Event::Kind::post:
      return fmt::format("the sender posts write {} with immediate {}; berths held: {}",
                         event.number, event.number, event.berths);
    case Event::Kind::completion:
      return fmt::format("the sender polls the completion of write {}; berths held: {}",
                         event.number, event.berths);
    case Event::Kind::immediate:
      return fmt::format("the receiver polls immediate {}; its memory has \"{}\"", event.number,
                         event.text);
    case Event::Kind::leaves:
      return fmt::format("a packet leaves for the {}: {}", to, event.text);
    case Event::Kind::arrives:
      return fmt::format("it arrives at the {}: {}", to, event.text);
    default:
      return fmt::format("a packet for the {} is LOST: {}", to, event.text);
  }
}

// The state of both processes at one moment of the recording.
class Scene {
 public:
  explicit Scene(const Recording& recording) : recording_(recording) {}

  // The next event has happened. Returns its line.
  std::string add(const Event& event) {
    const double us =
        static_cast<double>(event.nanoseconds - recording_.events[0].nanoseconds) / 1e3;
    log_.push_back(fmt::format("{:>10.1f} us  {}", us, sentence(event)));
    last_ = event;
    if (event.kind == Event::Kind::post) held_.insert(event.number);
    if (event.kind == Event::Kind::completion) {
      held_.erase(event.number);
      completions_ += fmt::format(" {}", event.number);
    }
    if (event.kind == Event::Kind::immediate) {
      immediates_ += fmt::format(" {}", event.number);
      memory_ = event.text;
    }
    return log_.back();
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> out = {
        fmt::format("urma_notify --demo: a replay of {} events, recorded just now at full speed",
                    recording_.events.size()),
        "Times are the recorded ones; the pauses between events are not to scale.",
        "",
        columns(fmt::format("SENDER, process {}", recording_.sender),
                fmt::format("RECEIVER, process {}", recording_.receiver)),
        columns("berths      " + berths(), "immediates " + immediates_),
        columns("completions" + completions_, "memory      " + memory_),
        "",
        lane(),
        ""};
    const size_t first = log_.size() > log_lines ? log_.size() - log_lines : 0;
    out.insert(out.end(), log_.begin() + static_cast<ptrdiff_t>(first), log_.end());
    return out;
  }

 private:
  static std::string columns(const std::string& left, const std::string& right) {
    return fmt::format("  {:<42.42}  {}", left, right);
  }
  std::string berths() const {
    std::string text;
    for (const uint64_t number : held_) text += fmt::format("[{}]", number);
    for (size_t i = held_.size(); i < recording_.berths; ++i) text += "[ ]";
    return text;
  }
  // The packet of the last event, between the two processes.
  std::string lane() const {
    const bool ends = last_.kind == Event::Kind::arrives;
    if (!ends && last_.kind != Event::Kind::leaves && last_.kind != Event::Kind::lost) return "";
    const std::string name = "( " + last_.text + " )";
    const std::string way(ends ? 40 : 12, '-');
    if (last_.kind == Event::Kind::lost) return "    " + way + name + "   x  lost";
    if (last_.to_receiver) return "    " + way + name + ">";
    return fmt::format("    {:>70}", "<" + name + way);
  }

  const Recording& recording_;
  std::vector<std::string> log_;
  std::set<uint64_t> held_;
  std::string completions_;
  std::string immediates_;
  std::string memory_;
  Event last_{};
};

// Returns false after Ctrl-C.
bool pause(uint64_t milliseconds) {
  pollfd interrupt = {.fd = apps::interrupt_descriptor(), .events = POLLIN, .revents = 0};
  ::poll(&interrupt, 1, static_cast<int>(milliseconds));
  return !apps::interrupted();
}

// Longer gaps of the recording become longer pauses, within limits.
uint64_t pause_after(const Event& event, const Event& next, uint64_t speed) {
  constexpr uint64_t slower = 2000;
  const uint64_t gap_ms = (next.nanoseconds - event.nanoseconds) * slower / 1'000'000;
  return std::clamp<uint64_t>(gap_ms, 350, 2000) / speed;
}

std::string summary(const Recording& recording) {
  const auto count = [&](Event::Kind kind) {
    return std::ranges::count(recording.events, kind, &Event::kind);
  };
  const auto& events = recording.events;
  const double ms =
      static_cast<double>(events.back().nanoseconds - events.front().nanoseconds) / 1e6;
  const auto lost = count(Event::Kind::lost);
  return fmt::format(
      "{} writes, {} immediates, {} completions in {:.1f} ms; {} packets, {} of them lost\n",
      count(Event::Kind::post), count(Event::Kind::immediate), count(Event::Kind::completion), ms,
      count(Event::Kind::leaves) + lost, lost);
}

void show_slowly(const Recording& recording, Scene& scene, uint64_t speed) {
  const Screen screen;
  const auto& events = recording.events;
  for (size_t i = 0; i < events.size(); ++i) {
    scene.add(events[i]);
    Screen::show(scene.lines());
    const Event& next = events[std::min(i + 1, events.size() - 1)];
    if (!pause(pause_after(events[i], next, speed))) return;
  }
  pause(2000 / speed);
}

}  // namespace

Exit demo(const Options& options) {
  const Recording recording = record();
  Scene scene(recording);
  if (isatty(STDOUT_FILENO) == 1) {
    show_slowly(recording, scene, options.speed);
  } else {
    std::string text = scene.lines()[0] + "\n";
    for (const Event& event : recording.events) text += scene.add(event) + "\n";
    apps::print(text);
  }
  apps::print(summary(recording));
  return apps::interrupted() ? Exit::interrupted : Exit::ok;
}

}  // namespace urma::apps::notify
