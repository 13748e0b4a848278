// SPDX-License-Identifier: Apache-2.0
#include "engine/channel_slots.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32.h"
#include "drivers/port_facts.h"

namespace urma::engine {
namespace {

using transport::ChannelView;

constexpr uint32_t least_row_bytes = 56;  // without values; bounds the memory that a page can cost

struct SlotStart {
  uint32_t checksum;  // of what follows, up to the last row
  uint32_t rows;
  uint64_t reports;
  uint64_t more;
};

// The values of a row, in this order. All are UINT64_MAX if they are not known.
enum Value : size_t {
  rtt,
  least_rtt,
  age,
  unheard,
  window_bytes,
  inflight_bytes,
  bytes_per_second,
  sent,
  lost,
  retransmitted,
  spurious,
  not_ready,
  acknowledged_bytes,
  values
};

struct Row {
  std::array<std::byte, 16> to;
  std::array<std::byte, 16> from;
  uint16_t to_port;
  uint16_t from_port;
  uint8_t path;
  uint8_t state;
  uint8_t instead;
  uint8_t unused;
  std::array<char, 16> congestion;
  std::array<uint64_t, values> value;
};
static_assert(sizeof(Row) == 160);

size_t bytes_of(uint32_t rows, uint32_t row_bytes) {
  return sizeof(SlotStart) + size_t{rows} * row_bytes;
}

uint32_t slot_checksum(std::span<const std::byte> slot) {
  const auto covered = slot.subspan(sizeof(SlotStart::checksum));
  return crc32_finish(crc32_update(crc32_start, covered.data(), covered.size()));
}

uint64_t nanoseconds_of(Duration time) {
  if (time == ChannelView::unknown_time) return ChannelView::unknown;
  return static_cast<uint64_t>(std::max<Duration::rep>(time.count(), 0));
}

Row row_of(const ChannelView& view) {
  Row row{.to = view.to.address.bytes,
          .from = view.from.address.bytes,
          .to_port = view.to.port,
          .from_port = view.from.port,
          .path = view.path,
          .state = static_cast<uint8_t>(view.state),
          .instead = static_cast<uint8_t>(view.instead),
          .unused = 0,
          .congestion = {},
          .value = {}};
  view.congestion.copy(row.congestion.data(), row.congestion.size());
  row.value[rtt] = nanoseconds_of(view.rtt);
  row.value[least_rtt] = nanoseconds_of(view.least_rtt);
  row.value[age] = nanoseconds_of(view.age);
  row.value[unheard] = nanoseconds_of(view.unheard);
  row.value[window_bytes] = view.window_bytes;
  row.value[inflight_bytes] = view.inflight_bytes;
  row.value[bytes_per_second] = view.bytes_per_second;
  row.value[sent] = view.sent;
  row.value[lost] = view.lost;
  row.value[retransmitted] = view.retransmitted;
  row.value[spurious] = view.spurious;
  row.value[not_ready] = view.not_ready;
  return row;
}

// Returns whether both rows are about the same path to the same peer.
bool same_path(const Row& a, const Row& b) {
  return a.to == b.to && a.from == b.from && a.to_port == b.to_port && a.from_port == b.from_port &&
         a.path == b.path;
}

// The rows of the previous report.
class RowsBefore {
 public:
  // `slot`: where that report is, whole or not yet written.
  explicit RowsBefore(std::span<const std::byte> slot) : slot_(slot) {
    SlotStart start;
    std::memcpy(&start, slot.data(), sizeof start);
    count_ = std::min(start.rows, ChannelSlots::most_rows);
  }

  // Returns the count of acknowledged bytes of the path that is at `place` of this report. The
  // channel has the count modulo 2^32: `count`. A channel is usually at the same place as before.
  uint64_t continued(const Row& row, uint32_t place, uint64_t count) const {
    if (count == ChannelView::unknown) return count;
    Row before = at(place);
    for (uint32_t i = 0; i < count_ && !same_path(before, row); ++i) before = at(i);
    const uint64_t total = before.value[acknowledged_bytes];
    // A younger channel to the same peer begins anew.
    const bool same = same_path(before, row) && before.value[age] <= row.value[age];
    if (!same || total == ChannelView::unknown) return count;
    return total + static_cast<uint32_t>(count - total);
  }

 private:
  Row at(uint32_t place) const {
    Row row{};
    if (place >= count_) return row;
    std::memcpy(static_cast<void*>(&row), slot_.data() + bytes_of(place, sizeof row), sizeof row);
    return row;
  }

  std::span<const std::byte> slot_;
  uint32_t count_ = 0;
};

std::string text_in(const std::array<char, 16>& field) {
  std::string out(field.begin(), std::find(field.begin(), field.end(), '\0'));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

std::string state_in(const Row& row) {
  switch (static_cast<ChannelView::State>(row.state)) {
    case ChannelView::State::up:
      return "up";
    case ChannelView::State::silent:
      return "silent";
    case ChannelView::State::lost:
      return "lost";
  }
  return "?";
}

std::string why_of(const Row& row, const ObservedDevice& device) {
  std::string own;
  switch (static_cast<ChannelView::Instead>(row.instead)) {
    case ChannelView::Instead::no:
      break;
    case ChannelView::Instead::lossless:
      return device.congestion.empty() ? "" : std::string(drivers::PortFacts::lossless_text);
    case ChannelView::Instead::not_reported:
      own = "the peer does not report what " + device.congestion_used +
            " needs: its device does not carry the signals, or its version is older";
      break;
    default:
      own = "for a reason that this program does not know";
  }
  if (device.congestion_why.empty() || own.empty()) return device.congestion_why + own;
  return device.congestion_why + "; " + own;
}

std::optional<uint64_t> number_in(uint64_t value) {
  return value == ChannelView::unknown ? std::nullopt : std::optional(value);
}
std::optional<Duration> time_in(uint64_t value) {
  constexpr auto most = static_cast<uint64_t>(Duration::max().count());
  if (value == ChannelView::unknown) return std::nullopt;
  return Duration(static_cast<Duration::rep>(std::min(value, most)));
}

std::string address_in(const std::array<std::byte, 16>& bytes, uint16_t port) {
  const Endpoint endpoint{Eid{bytes}, port};
  return endpoint == Endpoint{} ? "" : to_string(endpoint);
}

ObservedChannel channel_in(const Row& row, const ObservedDevice& device) {
  return {.peer = address_in(row.to, row.to_port),
          .from = address_in(row.from, row.from_port),
          .path = row.path,
          .state = state_in(row),
          .congestion = text_in(row.congestion),
          .why = why_of(row, device),
          .rtt = time_in(row.value[rtt]),
          .least_rtt = time_in(row.value[least_rtt]),
          .age = time_in(row.value[age]),
          .unheard = time_in(row.value[unheard]),
          .window_bytes = number_in(row.value[window_bytes]),
          .inflight_bytes = number_in(row.value[inflight_bytes]),
          .bytes_per_second = number_in(row.value[bytes_per_second]),
          .sent = number_in(row.value[sent]),
          .lost = number_in(row.value[lost]),
          .retransmitted = number_in(row.value[retransmitted]),
          .spurious = number_in(row.value[spurious]),
          .not_ready = number_in(row.value[not_ready]),
          .acknowledged_bytes = number_in(row.value[acknowledged_bytes])};
}

}  // namespace

std::string ChannelSlots::format() {
  return SlotFormat{.rows = most_rows, .row_bytes = sizeof(Row)}.text();
}

size_t ChannelSlots::bytes() { return 2 * bytes_of(most_rows, sizeof(Row)); }

std::span<std::byte> ChannelSlots::fill(std::span<std::byte> slots, uint64_t reports,
                                        std::span<const ChannelView> rows, uint32_t more) {
  rows = rows.first(std::min<size_t>(rows.size(), most_rows));
  const auto count = static_cast<uint32_t>(rows.size());
  const auto slot = slots.subspan(reports % 2 * (bytes() / 2), bytes_of(count, sizeof(Row)));
  SlotStart start{.checksum = 0, .rows = count, .reports = reports, .more = more};
  std::memcpy(slot.data(), &start, sizeof start);
  const RowsBefore before(slots.subspan((reports + 1) % 2 * (bytes() / 2), bytes() / 2));
  for (uint32_t i = 0; i < count; ++i) {
    Row row = row_of(rows[i]);
    row.value[acknowledged_bytes] = before.continued(row, i, rows[i].acknowledged_bytes);
    std::memcpy(slot.data() + bytes_of(i, sizeof row), &row, sizeof row);
  }
  start.checksum = slot_checksum(slot);
  std::memcpy(slot.data(), &start.checksum, sizeof start.checksum);
  return slot;
}

bool ChannelSlots::read_format(std::string_view text) {
  return format_.read(text, least_row_bytes);
}

size_t ChannelSlots::slot_bytes() const {
  return format_.rows == 0 ? 0 : bytes_of(format_.rows, format_.row_bytes);
}

Result<ObservedChannels> ChannelSlots::parse(std::span<const std::byte> slots,
                                             const ObservedDevice& device) const {
  std::span<const std::byte> newest;
  SlotStart latest{};
  for (const size_t offset : {size_t{0}, slot_bytes()}) {
    SlotStart start;
    std::memcpy(&start, slots.data() + offset, sizeof start);
    if (start.rows > format_.rows || start.reports <= latest.reports) continue;
    const auto slot = slots.subspan(offset, bytes_of(start.rows, format_.row_bytes));
    if (start.checksum != slot_checksum(slot)) continue;
    newest = slot;
    latest = start;
  }
  if (newest.empty()) {
    return Error{Status::would_block, "is damaged, or being written. Fix: run urma_stat again"};
  }
  ObservedChannels out{.shown = {}, .more = latest.more};
  for (uint32_t i = 0; i < latest.rows; ++i) {
    Row row;
    std::memset(static_cast<void*>(&row), 0xff, sizeof row);  // values that are missing
    std::memcpy(static_cast<void*>(&row), newest.data() + bytes_of(i, format_.row_bytes),
                std::min<size_t>(sizeof row, format_.row_bytes));
    out.shown.push_back(channel_in(row, device));
  }
  return out;
}

}  // namespace urma::engine
