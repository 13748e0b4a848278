// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/device_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/urma_info/look.h"
#include "apps/urma_info/split_error.h"
#include "apps/urma_info/wrap.h"

namespace urma::apps::info {

using nlohmann::json;

namespace {

std::string value_of(const SettingList& settings, std::string_view name) {
  for (const Setting& setting : settings) {
    if (setting.name == name) return setting.value;
  }
  return {};
}

std::string reach_of(const DeviceView& view, const Eid& address) {
  if (value_of(view.settings, "virtual_time") == "yes") return "this process";
  if (in_window(address)) return "processes that open the same window, on this host";
  const bool v4 = Endpoint{address, 0}.is_ipv4();
  const Eid loopback6 = parse_address("::1").value();
  if (address == loopback6 || (v4 && address.bytes[12] == std::byte{127})) return "this host";
  return v4 ? "every IPv4 host that has a way here" : "every IPv6 host that has a way here";
}

// Reads the abilities from the settings if they are there, and tries the others.
std::vector<Ability> abilities_of(Device& device, const SettingList& settings) {
  std::vector<Ability> out;
  const bool lossless = value_of(settings, "lossless") == "yes";
  out.push_back(
      {"lossless", lossless,
       lossless ? "loses nothing and keeps the order" : "may lose packets: they are sent again"});
  const bool mapped = value_of(settings, "mapped_memory") == "yes";
  out.push_back({"mapped_memory", mapped,
                 mapped ? "writes and reads of what it allocates are copies by the initiator alone"
                        : "writes and reads go by packets, which the target's device executes"});
  Result<Jetty> jetty = device.jetty();
  const Result<int> descriptor = jetty ? jetty->fd() : jetty.error();
  out.push_back({"descriptor", descriptor.ok(),
                 descriptor ? "completions can be waited for in epoll (Jetty::fd)"
                            : "completions cannot be waited for in epoll: " +
                                  split_error(descriptor.error().message).what});
  out.push_back(
      {"atomics", true,
       mapped ? "atomics of 1 to 8 bytes, by the initiator's instructions where memory is mapped"
              : "atomics of 1 to 8 bytes, executed by the target's engine"});
  return out;
}

// Imports a large segment of the device itself, which makes the device measure its copies.
void have_it_measured(Device& device) {
  constexpr size_t large = 8 << 20;
  const Result<Segment> segment = device.allocate(large);
  if (segment && segment->mapped()) (void)device.import(segment->descriptor());
}

}  // namespace

DeviceView view_device(const std::string& text, bool measure) {
  DeviceView view;
  view.text = text;
  Look look(text);
  Result<Device>& device = look.device();
  if (!device) {
    view.error = device.error();
    return view;
  }
  if (measure) have_it_measured(*device);
  Result<SettingList> settings = look.settings();
  if (!settings) {
    view.error = settings.error();
    return view;
  }
  view.settings = std::move(*settings);
  view.description = look.description();
  view.reach = reach_of(view, device->endpoint().address);
  view.abilities = abilities_of(*device, view.settings);
  view.congestion = device->congestion_choices();
  return view;
}

json to_json(const SettingList& settings) {
  json out = json::array();
  for (const Setting& setting : settings) {
    out.push_back({{"name", setting.name},
                   {"value", setting.value},
                   {"origin", name(setting.origin)},
                   {"source", setting.source},
                   {"meaning", setting.meaning}});
  }
  return out;
}

json to_json(const DeviceView& view) {
  json out = {{"device", view.text},
              {"default", view.text == default_device},
              {"usable", !view.error.has_value()}};
  if (view.error) {
    const SplitError error = split_error(view.error->message);
    out["status"] = name(view.error->status);
    out["why"] = error.what;
    out["fix"] = error.fix;
    return out;
  }
  out["description"] = view.description;
  out["reach"] = view.reach;
  for (const char* fact : {"address", "eid", "mtu", "receive_buffer"}) {
    out[fact] = value_of(view.settings, fact);
  }
  for (const Ability& ability : view.abilities) out["abilities"][ability.name] = ability.able;
  for (const char* fact : {"carries", "port_meters", "line_rate"}) {
    out[fact] = value_of(view.settings, fact);
  }
  for (const CongestionChoice& choice : view.congestion) {
    out["congestion"].push_back({{"name", choice.name},
                                 {"summary", choice.summary},
                                 {"used", choice.used},
                                 {"why", choice.why}});
  }
  return out;
}

std::string to_text(const DeviceView& view) {
  constexpr size_t indent = 6;
  if (view.error) {
    const SplitError error = split_error(view.error->message);
    return wrap_after("    not here: ", error.what, indent) +
           wrap_after("    Fix: ", error.fix, indent);
  }
  // The device string is printed above, so it is removed here.
  const std::string chose = view.description.substr(view.text.size() + 2);
  std::string out = wrap_after("    opens: ", chose, indent);
  const auto value = [&](const char* name) { return value_of(view.settings, name); };
  const bool same = value("address").find(value("eid")) != std::string::npos;
  out += wrap_after("    ",
                    fmt::format("at {}{}; MTU {}, receive buffer {}; reaches {}", value("address"),
                                same ? "" : ", EID " + value("eid"), value("mtu"),
                                value("receive_buffer"), view.reach),
                    indent);
  std::string abilities;
  for (const Ability& ability : view.abilities) {
    abilities += (abilities.empty() ? "" : "; ") + ability.what;
  }
  out += wrap_after("    ", abilities, indent);
  return out;
}

std::string congestion_text(const DeviceView& view) {
  constexpr size_t indent = 8;
  if (view.error || view.congestion.empty()) return "";
  if (view.congestion.front().used == "none") {
    return wrap_after("    --cc NAME: ", view.congestion.front().why, indent);
  }
  std::string out = wrap_after(
      "    ",
      fmt::format("packets carry {}; port meters {}; link {}; what --cc NAME uses, if the peer "
                  "reports what that needs:",
                  value_of(view.settings, "carries"), value_of(view.settings, "port_meters"),
                  value_of(view.settings, "line_rate")),
      indent);
  for (const CongestionChoice& choice : view.congestion) {
    const bool first = &choice == &view.congestion.front();
    const std::string name =
        fmt::format("      {}{}: ", choice.name, first ? " (the default)" : "");
    out += wrap_after(name,
                      choice.why.empty() ? choice.summary
                                         : fmt::format("{}, because {}", choice.used, choice.why),
                      indent);
  }
  return out;
}

std::string to_text(const SettingList& settings, bool meanings) {
  size_t names = 0, values = 0;
  constexpr size_t widest = 32;
  for (const Setting& setting : settings) {
    names = std::max(names, setting.name.size());
    values = std::clamp(setting.value.size(), values, widest);
  }
  std::string out;
  for (const Setting& setting : settings) {
    std::string origin(name(setting.origin));
    if (!setting.source.empty()) origin += ": " + setting.source;
    out += wrap_after(fmt::format("{:<{}}  {:<{}}  ", setting.name, names, setting.value, values),
                      origin, names + values + 4);
    if (meanings && !setting.meaning.empty()) {
      out += fmt::format("{:<{}}  {}\n", "", names, setting.meaning);
    }
  }
  return out;
}

}  // namespace urma::apps::info
