#include "drivers/dpdk/loader.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace urma::drivers::dpdk {
namespace {

constexpr const char* build_stamp = URMA_DPDK_STAMP;
constexpr bool built_with_dpdk = URMA_HAS_DPDK;

Error unusable(const std::string& why, const std::string& fix) {
  return {Status::unsupported, "dpdk: " + why + ". Fix: " + fix};
}

// Explains a message of the loader: the object is missing, or a library of DPDK that it needs.
Error explain(const char* object, const char* failure) {
  const std::string why = failure != nullptr ? failure : "no reason given";
  if (why.find("librte_") != why.npos) {
    return unusable("the driver's library cannot be loaded, because DPDK is missing (" + why + ")",
                    "apt-get install libdpdk-dev, or the librte-* packages that it names");
  }
  if (!built_with_dpdk) {
    return unusable("liburma was built without this driver",
                    "apt-get install libdpdk-dev, then build it with cmake -DURMA_WITH_DPDK=ON");
  }
  return unusable(
      "the driver's library cannot be loaded (" + why + ")",
      "install " + std::string(object) + " beside liburma, or name its folder in LD_LIBRARY_PATH");
}

}  // namespace

Result<const Plugin*> load_plugin_from(const char* object) {
  // The functions of the object are reached by the table only, and its threads never end.
  void* const handle = dlopen(object, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return explain(object, dlerror());
  void* const symbol = dlsym(handle, plugin_symbol);
  if (symbol == nullptr) {
    return unusable(std::string(object) + " is not the library of this driver",
                    "install the one that was built together with liburma");
  }
  const Plugin* const plugin = reinterpret_cast<PluginFunction*>(symbol)();
  if (std::strcmp(plugin->stamp, build_stamp) != 0) {
    return unusable(std::string(object) + " is from another build (" + plugin->stamp +
                        ") than liburma (" + build_stamp + ")",
                    "install both from the same build");
  }
  return plugin;
}

Result<const Plugin*> load_plugin() {
  static const Result<const Plugin*> loaded = load_plugin_from(URMA_DPDK_FILE);
  return loaded;
}

}  // namespace urma::drivers::dpdk
