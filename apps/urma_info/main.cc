// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "apps/common/failure.h"
#include "apps/common/output.h"
#include "apps/common/program.h"
#include "apps/urma_info/checks.h"
#include "apps/urma_info/device_view.h"
#include "apps/urma_info/errors.h"
#include "apps/urma_info/help.h"
#include "apps/urma_info/options.h"
#include "apps/urma_info/wrap.h"

namespace urma::apps::info {
namespace {

using nlohmann::json;

// The output, as text and as JSON. It is complete before any of it is printed.
struct Answer {
  std::string text;
  json object = {{"schema", "urma_info/1"}, {"version", library_version()}};
  Exit exit = Exit::ok;
};

Answer devices() {
  Answer out;
  out.text = fmt::format("liburma {}: the drivers of this build\n", library_version());
  out.object["devices"] = json::array();
  for (const DriverInfo& driver : list_drivers()) {
    out.text += fmt::format("\n{} - {}\n", driver.name, driver.summary);
    for (const FormInfo& form : driver.forms) {
      const DeviceView view = view_device(form.example);
      out.text += fmt::format("  {}{}{}\n", form.example, form.wraps ? "   (a wrapper)" : "",
                              form.example == default_device ? "   (the default)" : "");
      out.text += to_text(view);
      json one = to_json(view);
      one.update({{"driver", driver.name},
                  {"summary", driver.summary},
                  {"form", form.text},
                  {"meaning", form.meaning},
                  {"wraps", form.wraps}});
      for (const OptionInfo& option : form.options) {
        one["options"].push_back({{"key", option.key},
                                  {"values", option.values},
                                  {"default", option.by_default},
                                  {"meaning", option.meaning}});
      }
      out.object["devices"].push_back(std::move(one));
    }
  }
  out.text += "\nMore: urma_info --help DRIVER, urma_info --config DEVICE, urma_info --doctor\n";
  return out;
}

Answer device(const Options& options, bool config) {
  const Configuration chosen = must(configuration(), "settings");
  const std::string text = options.what.empty() ? chosen.settings.front().value : options.what;
  const DeviceView view = view_device(text, config);
  // Without --json an error is printed on stderr; with --json, the object contains it.
  if (view.error && !options.json) {
    throw apps::Failure(apps::exit_for(view.error->status), view.error->message);
  }
  Answer out;
  if (view.error) out.exit = apps::exit_for(view.error->status);
  // Settings that the device also lists are shown once.
  SettingList all = chosen.settings;
  std::erase_if(all, [&](const Setting& one) {
    return std::ranges::find(view.settings, one.name, &Setting::name) != view.settings.end();
  });
  all.insert(all.end(), view.settings.begin(), view.settings.end());
  out.text = config ? to_text(all, options.verbose)
                    : fmt::format("  {}\n{}{}", text, to_text(view), congestion_text(view));
  json one = to_json(view);
  if (!view.error) one["settings"] = to_json(view.settings);
  out.object["device"] = std::move(one);
  out.object["configuration"] = to_json(chosen.settings);
  return out;
}

Answer doctor() {
  Answer out;
  std::array<size_t, 3> counts{};
  const Host host = this_host();
  out.object["checks"] = json::array();
  for (const Check& check : all_checks()) {
    const Finding finding = check.run(host);
    ++counts[static_cast<size_t>(finding.level)];
    constexpr size_t indent = 24;
    out.text += wrap_after(fmt::format("{:<4}  {:<17} ", name(finding.level), check.name),
                           finding.what, indent);
    // The user copies the command, so no line of it may be broken.
    if (!finding.fix.empty()) out.text += fmt::format("{:<{}}Fix: {}\n", "", indent, finding.fix);
    out.object["checks"].push_back({{"check", check.name},
                                    {"level", name(finding.level)},
                                    {"what", finding.what},
                                    {"fix", finding.fix}});
  }
  for (const Level level : {Level::ok, Level::warn, Level::fix}) {
    out.object[name(level)] = counts[static_cast<size_t>(level)];
  }
  out.text += fmt::format("{} ok, {} warn, {} fix\n", counts[0], counts[1], counts[2]);
  if (counts[static_cast<size_t>(Level::fix)] > 0) out.exit = Exit::threshold;
  return out;
}

Answer statuses(const std::string& wanted) {
  Answer out;
  out.object["statuses"] = json::array();
  const auto add = [&](const StatusInfo& info) {
    out.text += wanted.empty() ? to_line(info) : to_text(info);
    out.object["statuses"].push_back(to_json(info));
  };
  if (!wanted.empty()) {
    add(find_status(wanted));
    return out;
  }
  for (const StatusInfo& info : all_statuses()) add(info);
  out.text += "More: urma_info --error STATUS\n";
  return out;
}

Answer answer(const Options& options) {
  using Mode = Options::Mode;
  switch (options.mode) {
    case Mode::devices:
      return devices();
    case Mode::device:
      return device(options, false);
    case Mode::config:
      return device(options, true);
    case Mode::doctor:
      return doctor();
    case Mode::error:
      return statuses(options.what);
    case Mode::help: {
      Answer out;
      out.text = options.what.empty() ? help() : help_on(options.what);
      out.object["help"] = out.text;
      return out;
    }
    case Mode::version:
      break;
  }
  Answer out;
  out.text = fmt::format("urma_info {}\n", library_version());
  return out;
}

}  // namespace
}  // namespace urma::apps::info

int main(int count, char** arguments) {
  return urma::apps::run_program("urma_info", [&] {
    const urma::apps::info::Options options = urma::apps::info::parse_options(count, arguments);
    const urma::apps::info::Answer whole = urma::apps::info::answer(options);
    if (options.json) {
      urma::apps::print_json(whole.object);
    } else {
      urma::apps::print(whole.text);
    }
    return whole.exit;
  });
}
