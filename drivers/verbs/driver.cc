// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <utility>

#include "drivers/driver.h"
#include "drivers/verbs/loader.h"

namespace urma::drivers {
namespace {

template <class Number>
void read_number(OptionReader& options, std::string_view key, Number& value, uint64_t least,
                 uint64_t most, OptionSays says) {
  uint64_t read = value;
  options.number(key, read, says);
  if (read < least || read > most) {
    options.refuse(key, "from " + std::to_string(least) + " to " + std::to_string(most));
  }
  value = static_cast<Number>(read);
}

void read_gid(OptionReader& options, verbs::GidWish& wish) {
  std::string text = "auto";
  options.text(
      "gid", text,
      {"the GID that is the device's address: auto (one that routers forward, IPv4 first), "
       "its number in the port's table, or its address"});
  if (text == "auto") return;
  uint32_t index = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, index);
  if (failure == std::errc{} && stop == end) {
    wish.index = index;
  } else if (const Result<Eid> address = parse_address(text); address && *address != Eid{}) {
    wish.address = *address;
  } else {
    options.refuse("gid", "auto, a number, or an address such as 10.0.0.5");
  }
}

void read_reliable(OptionReader& options, verbs::Reliable& wish) {
  constexpr std::pair<std::string_view, verbs::Reliable> wishes[] = {
      {"auto", verbs::Reliable::automatic},
      {"never", verbs::Reliable::never},
      {"always", verbs::Reliable::always}};
  std::string text = "auto";
  options.text("rc", text,
               {"whether the adapters move the data of writes and reads between registered "
                "segments by themselves (RC): auto (from 16 KiB on), never, or always"});
  for (const auto& [word, value] : wishes) {
    if (text != word) continue;
    wish = value;
    return;
  }
  options.refuse("rc", "auto, never or always");
}

void read_options(OptionReader& options, verbs::Settings& settings) {
  read_number(options, "port", settings.port, 1, 255, {"the port of the adapter"});
  read_gid(options, settings.gid);
  read_number(options, "service", settings.service, 0, 65535,
              {"the number under which peers find the device, which they write behind its address",
               "4792, or any free one if that is taken"});
  read_reliable(options, settings.reliable);
  options.flag("gather", settings.gather,
               {"send data from registered memory, without a copy; other data is copied"});
}

// Opens, by `open`, what the device string describes.
template <class Open>
auto open_with(const DeviceString& device, Open&& open)
    -> decltype(open(std::declval<const verbs::Plugin&>(), verbs::Settings())) {
  verbs::Settings settings;
  OptionReader options(device);
  read_options(options, settings);
  if (auto done = options.finish(); !done) return done.error();
  settings.options = options.settings();
  settings.adapter = device.address;
  const Result<const verbs::Plugin*> plugin = verbs::load_plugin();
  if (!plugin) return plugin.error();
  return open(**plugin, settings);
}

Result<std::unique_ptr<PacketPort>> open(const DeviceString& device) {
  return open_with(device, [](const verbs::Plugin& plugin, const verbs::Settings& settings) {
    return plugin.open(settings);
  });
}

constexpr Driver::Form forms[] = {
    {"verbs:ADAPTER",
     "an RDMA adapter, as ibv_devices lists it: InfiniBand, RoCE v2, or the software adapter rxe. "
     "Without ADAPTER it is the first one with an active port",
     "verbs:rxe0", [](OptionReader& options) {
       verbs::Settings settings;
       read_options(options, settings);
     }}};

}  // namespace

namespace verbs {

Result<std::unique_ptr<RawDatagramPort>> open_raw_port(std::string_view device) {
  const Result<DeviceString> parsed = parse_device_string(device);
  if (!parsed) return parsed.error();
  return open_with(*parsed, [](const Plugin& plugin, const Settings& settings) {
    return plugin.open_raw(settings);
  });
}

}  // namespace verbs

extern const Driver verbs_driver;
const Driver verbs_driver = {
    "verbs", "RDMA adapters: datagrams of InfiniBand and RoCE", {}, open, forms};

}  // namespace urma::drivers
