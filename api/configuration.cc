// SPDX-License-Identifier: Apache-2.0
#include "engine/configuration.h"

#include "api/handles.h"

namespace urma {

Result<Configuration> configuration() {
  return guarded("configuration", []() -> Result<Configuration> {
    Result<engine::UserSettings> settings = engine::read_user_settings();
    if (!settings) return settings.error();
    return std::move(settings->configuration);
  });
}

Result<Device> open(const DeviceOptions& options) {
  const Result<Configuration> chosen = configuration();
  if (!chosen) return chosen.error();
  const Setting& device = chosen->settings.front();
  Result<Device> opened = open(device.value, options);
  if (opened || device.origin == Origin::by_default) return opened;
  return guarded("open", [&]() -> Result<Device> {
    return Error{opened.status(), device.source + ": " + opened.error().message};
  });
}

}  // namespace urma
