// SPDX-License-Identifier: Apache-2.0
#include "apps/common/servers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "apps/common/interrupt.h"

namespace urma::apps {
namespace {

constexpr std::string_view fix = ". Fix: ";

std::string with_device(const std::string& command, const std::string& device) {
  return device.empty() ? command : fmt::format("{} --device {}", command, apps::quoted(device));
}

// HOST as on a command line. Some shells take brackets for a pattern, so they are removed, and
// other special characters are quoted.
std::string host_of(std::string place) {
  const bool bracketed = place.starts_with('[') && place.ends_with(']');
  return bracketed ? place.substr(1, place.size() - 2) : apps::quoted(place);
}

// The library lists the addresses of a name as urma://HOST/NAME, separated by blanks. Each becomes
// a command.
std::string commands_in(std::string text, const Service& service) {
  constexpr std::string_view scheme = "urma://";
  for (size_t at = 0; (at = text.find(scheme, at)) != text.npos;) {
    const size_t host = at + scheme.size();
    const size_t slash = text.find('/', host);
    if (slash == text.npos) break;
    const size_t end = std::min(text.find_first_of(" ,.\"", slash), text.size());
    std::string command =
        with_device(service.ask + " " + host_of(text.substr(host, slash - host)), service.device);
    if (text.compare(end, scheme.size() + 1, " urma://") == 0) command += " or";
    text.replace(at, end - at, command);
    at += command.size();
  }
  return text;
}

// The library advises to open a device. The user of a program does that by an option.
bool advise_device(std::string& message) {
  for (const std::string_view cure : {"open cxl:", "open udp:"}) {
    const size_t at = message.find(std::string(fix) + std::string(cure));
    if (at == message.npos) continue;
    message.replace(at + fix.size(), std::string_view("open").size(), "give --device");
    message.resize(std::min(message.find(", or import "), message.size()));
    return true;
  }
  return false;
}

// Replaces the cure of the message if it is the default cure of the status, which names no command.
bool replace_cure(std::string& message, Status status, const std::string& cure) {
  const std::string general = std::string(fix) + std::string(describe(status).cure);
  if (!message.ends_with(general)) return false;
  message.resize(message.size() - general.size() + fix.size());
  message += cure;
  return true;
}

// A server without --device takes free addresses and the default window. A client that has named
// another address would not find it there, so the command names the device.
std::string command_to_serve(const Device& device, const std::string& host,
                             const Service& service) {
  const bool window = in_window(device.endpoint().address);
  if (window && service.device != default_device) return with_device(service.serve, service.device);
  const auto named = parse_endpoint(host);
  if (window || !named) return service.serve;
  const bool usual = named->port == ub_port;
  const std::string address = to_string(named->address);
  const std::string place = !usual             ? to_string(*named)
                            : named->is_ipv4() ? address
                                               : "[" + address + "]";
  return with_device(service.serve, "udp:" + place);
}

Failure not_reached(const Device& device, const std::string& host, const Service& service,
                    const Error& error) {
  std::string message = commands_in(error.message, service);
  if (!advise_device(message)) {
    std::string cure = "start it there: " + command_to_serve(device, host, service);
    const bool here = in_window(device.endpoint().address);
    if (error.status == Status::peer_unreachable && !here) {
      cure += "; if it runs, let UDP pass between the two hosts";
    }
    replace_cure(message, error.status, cure);
  }
  return {exit_for(error.status),
          fmt::format("reaching the {} at {}: {}", service.role, host, message)};
}

Result<Imported> import_by_name(Device& device, const std::string& host, const Service& service) {
  const std::string& name = service.name;
  auto found = device.import("urma://" + host + "/" + name, service.patience);
  if (found || host != "localhost" || found.status() != Status::invalid_argument) return found;
  if (auto loopback = device.import("urma://127.0.0.1/" + name, Duration{})) return loopback;
  return found;
}

}  // namespace

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("-_./:=+,@%").find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

void refuse_simulation(const std::string& device) {
  for (size_t at = 0; (at = device.find("sim", at)) != device.npos; ++at) {
    const bool begins = at == 0 || device[at - 1] == ':' || device[at - 1] == '+';
    const bool ends = device.compare(at + 3, 1, ":") == 0 || device.compare(at + 3, 1, "(") == 0;
    if (!begins || !ends) continue;
    throw Failure(Exit::usage,
                  fmt::format("\"{}\" is a network simulated within one process, and no other "
                              "process can reach it. Fix: for a bad network between processes, "
                              "give --device 'fault(loss=1%):udp:'",
                              device));
  }
}

Device open_device(const std::string& device) {
  refuse_simulation(device);
  return must(urma::open(device), "opening the device");
}

Imported find_server(Device& device, const std::string& host, const Service& service) {
  const auto found = [&] {
    std::optional<EndsAtOnce> on_interrupt;
    if (!service.reports) on_interrupt.emplace();
    return import_by_name(device, host, service);
  }();
  if (!found) throw not_reached(device, host, service, found.error());
  return *found;
}

Failure not_published(const Device& device, const Service& service, const Error& error) {
  if (error.status != Status::address_in_use) {
    return {exit_for(error.status),
            fmt::format("publishing the name {}: {}", service.name, error.message)};
  }
  return {Exit::error,
          fmt::format("another {} serves at {} already. Fix: end that one (urma_stat shows its "
                      "process), or serve at a vacant address of this host: {} --device udp:",
                      service.name, to_string(device.endpoint().address), service.serve)};
}

std::string command_to_reach(Device& device, const std::string& text, const Service& service) {
  const Endpoint at = device.endpoint();
  if (!in_window(at.address)) {
    return service.ask + " " + host_of(at.port == ub_port ? to_string(at.address) : to_string(at));
  }
  // Several servers share a window, so another server may have this name.
  const auto found = device.import("urma://localhost/" + service.name, Duration{});
  const bool alone = found || found.status() != Status::invalid_argument;
  const std::string command = alone ? service.ask : service.ask + " " + to_string(at.address);
  return text == default_device ? command : with_device(command, text);
}

}  // namespace urma::apps
