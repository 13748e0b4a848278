// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_info/help.h"

#include <fmt/format.h>

#include "apps/common/failure.h"
#include "apps/urma_info/wrap.h"

namespace urma::apps::info {
namespace {

constexpr std::string_view first_screen =
    R"(urma_info - shows devices, their settings, and problems of this machine

  urma_info                    the devices of this build: whether each opens, and its features
  urma_info udp:10.0.0.5       one device: its address, MTU, features, congestion controls
  urma_info --config udp:      each of its settings, with its value and where the value comes from
  urma_info --doctor           checks this machine: each line says ok, warn or fix, with the fix
  urma_info --error unknown    a status, by name or number: its meaning, its causes, the cure
  urma_info --help udp         the options in a driver's device strings

  DEVICE             {}  --config [DEVICE]  the settings of a device ({})
  -v, --verbose      with --config: also print what each setting means
  --doctor           check this machine; exit code 3 if something needs a fix
  --error [STATUS]   describe one status; without STATUS a line for each
  --help [DRIVER]    print this help, or the options of a driver
  URMA_DEVICE, URMA_LOG, URMA_CONFIG (a file) set the device, the log and more: see --config
  --json             one JSON object on stdout instead of text
  --version

Devices are opened briefly. A window that does not exist is not made for that.

Exit codes: 0 ok   1 error   2 usage   3 --doctor found something that needs a fix
)";

}  // namespace

std::string help() {
  std::string forms;
  for (const DriverInfo& driver : list_drivers()) {
    for (const FormInfo& form : driver.forms) forms += (forms.empty() ? "" : ", ") + form.text;
  }
  return fmt::format(first_screen, wrap(forms, 21, 21), default_device);
}

std::string to_text(const FormInfo& form) {
  constexpr size_t indent = 21;
  std::string out = fmt::format("  {}\n", form.text) + wrap_after("      ", form.meaning, 6);
  for (const OptionInfo& option : form.options) {
    out += wrap_after(fmt::format("      {:<14} ", option.key + "="),
                      fmt::format("{}; {} [{}]", option.meaning, option.values, option.by_default),
                      indent);
  }
  return out;
}

std::string help_on(std::string_view name) {
  std::string names;
  for (const DriverInfo& driver : list_drivers()) {
    names += (names.empty() ? "" : ", ") + driver.name;
    if (driver.name != name) continue;
    std::string out = fmt::format("{} - {}\n\n", driver.name, driver.summary);
    for (const FormInfo& form : driver.forms) {
      out += to_text(form);
      if (form.options.empty()) continue;
      const std::string& key = form.options.front().key;
      out += form.wraps ? fmt::format("  options are in the parentheses: {}({}=...,...):\n\n",
                                      driver.name, key)
                        : fmt::format("  options follow a question mark: {}?{}=...&...\n\n",
                                      form.example, key);
    }
    return out;
  }
  throw apps::Failure(
      apps::Exit::usage,
      fmt::format("--help: there is no driver \"{}\" in this build. Fix: name one of {}",
                  name.substr(0, 80), names));
}

}  // namespace urma::apps::info
