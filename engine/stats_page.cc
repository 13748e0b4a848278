// SPDX-License-Identifier: Apache-2.0
#include "engine/stats_page.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "base/crc32.h"
#include "base/failed.h"

namespace urma::engine {
namespace {

constexpr uint64_t magic = 0x7461'7473'616d'7275;  // "urmastat"
constexpr uint32_t this_layout = 1;
constexpr uint32_t most_metrics = 1000;
constexpr size_t most_text = 1000;  // bytes of each

struct Header {
  uint64_t magic;
  uint32_t layout;
  uint32_t text_bytes;
  uint32_t metrics;
  uint32_t checksum;  // of the header up to here, and of the text
};
struct SlotHead {
  uint32_t checksum;  // of what follows
  uint32_t unused;
  uint64_t reports;
  int64_t moment;
};

size_t slot_bytes(size_t metrics) { return sizeof(SlotHead) + metrics * sizeof(uint64_t); }

// Reads a number at an offset that need not be aligned.
template <class T>
T load(std::span<const std::byte> bytes, size_t offset) {
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

uint32_t checksum(std::span<const std::byte> bytes, uint32_t begun = crc32_start) {
  return crc32_finish(crc32_update(begun, bytes.data(), bytes.size()));
}
uint32_t checksum_of(const Header& header, std::span<const std::byte> text) {
  return checksum(text, crc32_update(crc32_start, &header, offsetof(Header, checksum)));
}
uint32_t checksum_of_slot(std::span<const std::byte> slot) {
  return checksum(slot.subspan(sizeof(uint32_t)));
}

// Replaces characters that could move a cursor, or are invalid in JSON, by '?'.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, most_text));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string text_of(const ObservedDevice& facts) {
  std::string out;
  const auto line = [&](std::string_view key, std::string_view value) {
    out += std::string(key) + "\t" + printable(value) + "\n";
  };
  line("pid", std::to_string(facts.pid));
  line("process", facts.process);
  line("process_started", std::to_string(facts.process_started));
  line("opened", std::to_string(facts.opened));
  line("device", facts.device);
  line("description", facts.description);
  line("endpoint", facts.endpoint);
  line("eid", facts.eid);
  line("congestion", facts.congestion);
  line("congestion_used", facts.congestion_used);
  line("congestion_why", facts.congestion_why);
  out += "channels\t" + ChannelSlots::format() + "\n";
  out += "objects\t" + ObjectSlots::format() + "\n";
  const auto metric_line = [&](std::initializer_list<std::string_view> parts) {
    out += "metric";
    for (const std::string_view part : parts) out.append(1, '\t').append(printable(part));
    out += "\n";
  };
  for (const Metric& metric : all_metrics()) {
    metric_line({metric.name, metric.unit, name(metric.window), metric.part, metric.meaning});
  }
  for (const ObservedMetric& metric : facts.metrics) {
    metric_line({metric.name, metric.unit, metric.window, metric.part, metric.meaning});
  }
  return out;
}

// Removes and returns the text up to the next `at`.
std::string_view cut(std::string_view& rest, char at) {
  const size_t end = std::min(rest.find(at), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failure == std::errc{} && end == text.data() + text.size();
}

// The slots behind the values, as the text describes them.
struct Slots {
  ChannelSlots channels;
  ObjectSlots objects;
};

// Returns false if the line is malformed. Skips keys that a later version has added.
bool read_line(std::string_view line, ObservedDevice& out, Slots& slots) {
  const std::string_view key = cut(line, '\t');
  if (key == "metric") {
    ObservedMetric metric;
    for (std::string* part :
         {&metric.name, &metric.unit, &metric.window, &metric.part, &metric.meaning}) {
      *part = cut(line, '\t').substr(0, most_text);
    }
    out.metrics.push_back(std::move(metric));
    return !out.metrics.back().name.empty();
  }
  if (key == "pid") return read_number(line, out.pid);
  if (key == "process_started") return read_number(line, out.process_started);
  if (key == "channels") return slots.channels.read_format(line);
  if (key == "objects") return slots.objects.read_format(line);
  if (key == "opened") return read_number(line, out.opened);
  const std::pair<std::string_view, std::string*> texts[] = {
      {"process", &out.process},
      {"device", &out.device},
      {"description", &out.description},
      {"endpoint", &out.endpoint},
      {"eid", &out.eid},
      {"congestion", &out.congestion},
      {"congestion_used", &out.congestion_used},
      {"congestion_why", &out.congestion_why}};
  for (const auto& [name, text] : texts) {
    if (key == name) *text = line.substr(0, most_text);
  }
  return true;
}

// Returns whether two metrics have the same name, which no version of the library writes. What
// reads metrics by name, such as a scrape of Prometheus, would be ambiguous or refused.
bool names_one_twice(const ObservedDevice& device) {
  std::vector<std::string_view> names;
  for (const ObservedMetric& metric : device.metrics) names.push_back(metric.name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

bool read_text(std::string_view text, ObservedDevice& out, Slots& slots) {
  for (const char c : text) {
    if ((c < ' ' || c > '~') && c != '\t' && c != '\n') return false;
  }
  while (!text.empty()) {
    if (!read_line(cut(text, '\n'), out, slots)) return false;
  }
  return true;
}

// Reads the channels and the objects, which begin at `behind`. Errors: would_block.
Result<void> read_slots(const Slots& slots, std::span<const std::byte> behind,
                        ObservedDevice& out) {
  if (slots.channels.total_bytes() > 0) {
    auto seen = slots.channels.parse(behind.first(slots.channels.total_bytes()), out);
    if (!seen) return seen.error();
    out.channels = std::move(*seen);
    behind = behind.subspan(slots.channels.total_bytes());
  }
  if (slots.objects.total_bytes() > 0) {
    auto seen = slots.objects.parse(behind.first(slots.objects.total_bytes()));
    if (!seen) return seen.error();
    out.objects = std::move(*seen);
  }
  return {};
}

Error damaged() {
  return {Status::io_error,
          "is damaged: its checksum or its text is wrong. Fix: remove it; the device is shown "
          "again when it is opened again"};
}

Error truncated() {
  return {Status::io_error,
          "was truncated. Fix: remove it; the device is shown again when it is opened again"};
}

}  // namespace

StatsPage::StatsPage(const ObservedDevice& facts) : own_metrics_(facts.metrics.size()) {
  const std::string text = text_of(facts);
  const auto text_bytes = std::as_bytes(std::span(text));
  Header header{.magic = magic,
                .layout = this_layout,
                .text_bytes = static_cast<uint32_t>(text.size()),
                .metrics = static_cast<uint32_t>(all_metrics().size() + own_metrics_),
                .checksum = 0};
  header.checksum = checksum_of(header, text_bytes);
  slots_at_ = sizeof header + text.size();
  channels_at_ = slots_at_ + 2 * slot_bytes(header.metrics);
  objects_at_ = channels_at_ + ChannelSlots::bytes();
  bytes_.resize(objects_at_ + ObjectSlots::bytes());
  URMA_ASSERT(bytes_.size() <= most_bytes, "each of its texts has at most 1000 bytes");
  std::memcpy(bytes_.data(), &header, sizeof header);
  std::memcpy(bytes_.data() + sizeof header, text.data(), text.size());
  next({}, {});
  next_channels({}, 0);
  next_objects(ObjectViews{});
}

StatsPage::Write StatsPage::next(const Statistics& statistics, Time moment,
                                 std::span<const uint64_t> more) {
  const size_t size = slot_bytes(all_metrics().size() + own_metrics_);
  const size_t offset = slots_at_ + ++reports_ % 2 * size;
  const std::span<std::byte> slot = std::span(bytes_).subspan(offset, size);
  SlotHead head{
      .checksum = 0, .unused = 0, .reports = reports_, .moment = moment.time_since_epoch().count()};
  std::memcpy(slot.data(), &head, sizeof head);
  std::byte* at = slot.data() + sizeof head;
  for (const Metric& metric : all_metrics()) {
    std::memcpy(at, &(statistics.*metric.value), sizeof(uint64_t));
    at += sizeof(uint64_t);
  }
  const auto own = std::as_bytes(more.first(std::min(more.size(), own_metrics_)));
  if (!own.empty()) std::memcpy(at, own.data(), own.size());
  head.checksum = checksum_of_slot(slot);
  std::memcpy(slot.data(), &head.checksum, sizeof head.checksum);
  return {slot, offset};
}

StatsPage::Write StatsPage::next_channels(std::span<const transport::ChannelView> rows,
                                          uint32_t more) {
  const auto slots = std::span(bytes_).subspan(channels_at_);
  const auto slot = ChannelSlots::fill(slots, ++channel_reports_, rows, more);
  return {slot, static_cast<size_t>(slot.data() - bytes_.data())};
}

StatsPage::Write StatsPage::next_objects(const ObjectViews& objects) {
  const auto slots = std::span(bytes_).subspan(objects_at_);
  const auto slot = ObjectSlots::fill(slots, ++object_reports_, objects);
  return {slot, static_cast<size_t>(slot.data() - bytes_.data())};
}

Result<ObservedDevice> StatsPage::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) || load<uint64_t>(bytes, 0) != magic) {
    return Error{Status::invalid_argument,
                 "is not a file with a device's counters. Fix: remove it"};
  }
  const auto header = load<Header>(bytes, 0);
  if (header.layout != this_layout) {
    return failed(Status::version_mismatch, "has layout ", header.layout,
                  ", and this program knows ", this_layout)
        .fix("use the urma_stat of that process's version");
  }
  const size_t slots_at = sizeof header + size_t{header.text_bytes};
  const size_t size = slot_bytes(header.metrics);
  if (header.metrics > most_metrics || slots_at > bytes.size() ||
      bytes.size() - slots_at < 2 * size) {
    return truncated();
  }
  const auto text = bytes.subspan(sizeof header, header.text_bytes);
  ObservedDevice out;
  Slots slots;
  if (checksum_of(header, text) != header.checksum ||
      !read_text({reinterpret_cast<const char*>(text.data()), text.size()}, out, slots) ||
      out.metrics.size() != header.metrics) {
    return damaged();
  }
  if (names_one_twice(out)) {
    return Error{Status::invalid_argument,
                 "names a counter twice, so this library did not write it. Fix: remove it"};
  }
  const auto behind = bytes.subspan(slots_at + 2 * size);
  if (behind.size() < slots.channels.total_bytes() + slots.objects.total_bytes()) {
    return truncated();
  }
  std::span<const std::byte> newest;
  for (const size_t offset : {slots_at, slots_at + size}) {
    const auto slot = bytes.subspan(offset, size);
    const auto head = load<SlotHead>(slot, 0);
    if (head.checksum != checksum_of_slot(slot) || head.reports <= out.reports) continue;
    newest = slot;
    out.reports = head.reports;
    out.moment = Time(Duration(head.moment));
  }
  if (newest.empty()) {
    return Error{Status::would_block, "is damaged, or being written. Fix: run urma_stat again"};
  }
  for (size_t i = 0; i < out.metrics.size(); ++i) {
    out.metrics[i].value = load<uint64_t>(newest, sizeof(SlotHead) + i * sizeof(uint64_t));
  }
  if (auto read = read_slots(slots, behind, out); !read) return read.error();
  return out;
}

}  // namespace urma::engine
