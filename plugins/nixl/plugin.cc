// SPDX-License-Identifier: Apache-2.0
// What NIXL calls when it loads the plugin.
#include <dlfcn.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "plugins/nixl/engine.h"
#include "plugins/nixl/nixl.h"
#include "plugins/nixl/options.h"

namespace urma::nixl {
namespace {

nixlBackendEngine* create(const nixlBackendInitParams* params) {
  try {
    auto engine = std::make_unique<Engine>(params);
    return engine->getInitErr() ? nullptr : engine.release();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "NIXL backend URMA: %s. Fix: free memory\n", failure.what());
    return nullptr;
  }
}

void destroy(nixlBackendEngine* engine) { delete engine; }
const char* plugin_version() { return URMA_VERSION; }
nixl_mem_list_t memories() { return {DRAM_SEG, VRAM_SEG}; }

// A copy of this file stands in for the backend of its name: libplugin_UCX.so is "UCX", for
// programs that name that backend in their code.
std::string name_of_file() {
  constexpr std::string_view begin = "libplugin_";
  constexpr std::string_view end = ".so";
  Dl_info file{};
  if (dladdr(reinterpret_cast<const void*>(&memories), &file) == 0) return "URMA";
  std::string_view name = file.dli_fname;
  name.remove_prefix(name.rfind('/') + 1);
  if (!name.starts_with(begin) || !name.ends_with(end)) return "URMA";
  name.remove_prefix(begin.size());
  name.remove_suffix(end.size());
  return std::string(name);
}

const char* plugin_name() {
  static const std::string name = name_of_file();
  return name.c_str();
}

nixl_b_params_t options() {
  nixl_b_params_t out = default_options();
  // Programs look whether UCX reports the end of a peer. This plugin always does.
  if (std::string_view(plugin_name()) == "UCX") out["ucx_error_handling_mode"] = "peer";
  return out;
}

}  // namespace
}  // namespace urma::nixl

nixlBackendPlugin* nixl_plugin_init() {
  using namespace urma::nixl;
  static nixlBackendPlugin plugin = {NIXL_PLUGIN_API_VERSION, create,  destroy, plugin_name,
                                     plugin_version,          options, memories};
  return &plugin;
}

void nixl_plugin_fini() {}
