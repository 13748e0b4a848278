// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_notify/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "apps/common/output.h"
#include "apps/urma_notify/lines.h"

namespace urma::apps::notify {
namespace {

using namespace std::chrono_literals;

std::string time_text(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

int columns() {
  const size_t found = apps::terminal_columns(STDERR_FILENO);
  return found > 0 ? static_cast<int>(found) : 80;
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array units = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  const int digits = unit == 0 || bytes >= 99.95 ? 0 : 1;
  return fmt::format("{:.{}f} {}", bytes, digits, units[unit]);
}

Progress::Progress(const std::string& name, uint64_t bytes, const Voice& voice)
    : voice_(voice),
      name_(apps::printable(name)),
      bytes_(bytes),
      terminal_(voice.bar && isatty(STDERR_FILENO) == 1) {}

void Progress::begin(uint64_t bytes) {
  resumed_ = shown_ = bytes;
  began_ = last_ = Clock::now();
  if (bytes > 0) {
    voice_.say(fmt::format("{}: resumes at {} of {}", name_, bytes_text(static_cast<double>(bytes)),
                           bytes_text(static_cast<double>(bytes_))));
  }
}

void Progress::at(uint64_t bytes) {
  const auto now = Clock::now();
  if (now - last_ < (terminal_ ? Clock::duration(200ms) : Clock::duration(5s))) return;
  const double fresh =
      static_cast<double>(bytes - shown_) / std::chrono::duration<double>(now - last_).count();
  // A moving average, so that the time left does not jump.
  rate_ = rate_ == 0 ? fresh : 0.8 * rate_ + 0.2 * fresh;
  last_ = now;
  shown_ = bytes;
  if (!terminal_) return voice_.say(line(bytes));
  on_screen_ = apps::write_all(STDERR_FILENO, "\r\033[K" + bar(bytes));
}

double Progress::done() {
  wipe();
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  const auto sent = static_cast<double>(bytes_ - resumed_);
  voice_.say(fmt::format("{}: {} sent and verified in {:.1f} s, {}/s", name_, bytes_text(sent),
                         seconds, bytes_text(sent / std::max(seconds, 1e-3))));
  return seconds;
}

void Progress::wipe() {
  if (on_screen_) apps::write_all(STDERR_FILENO, "\r\033[K");
  on_screen_ = false;
}

std::string Progress::line(uint64_t bytes) const {
  const double left = rate_ > 0 ? static_cast<double>(bytes_ - bytes) / rate_ : 0;
  return fmt::format("{}: {:3} %, {} of {}, {}/s, {} left", name_,
                     bytes_ == 0 ? 100 : bytes * 100 / bytes_,
                     bytes_text(static_cast<double>(bytes)),
                     bytes_text(static_cast<double>(bytes_)), bytes_text(rate_), time_text(left));
}

// The bar takes the width that is left behind the words.
std::string Progress::bar(uint64_t bytes) const {
  std::string text = line(bytes);
  const int room = columns() - static_cast<int>(text.size()) - 4;
  if (room < 8) return text.substr(0, static_cast<size_t>(std::max(columns() - 1, 0)));
  const auto width = static_cast<uint64_t>(std::min(room, 40));
  const uint64_t full = bytes_ == 0 ? width : bytes * width / bytes_;
  return text + " [" + std::string(full, '#') + std::string(width - full, ' ') + "]";
}

}  // namespace urma::apps::notify
