// SPDX-License-Identifier: Apache-2.0
#include "drivers/plugin_object.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "base/failed.h"

namespace urma::drivers {
namespace {

// Explains a message of the loader: the object is missing, or a library of the SDK that it needs.
Error explain(const PluginObject& object, const char* failure) {
  const std::string_view why = failure != nullptr ? failure : "no reason given";
  Failed error = failed(Status::unsupported, object.driver, ": ");
  if (why.find(object.sdk_library) != why.npos) {
    return std::move(error)
        .add("the driver's library cannot be loaded, because ", object.sdk, " is missing (", why,
             ")")
        .fix("apt-get install ", object.packages);
  }
  if (!object.built) {
    return std::move(error).add("liburma was built without this driver").fix(object.to_build);
  }
  return std::move(error)
      .add("the driver's library cannot be loaded (", why, ")")
      .fix("install ", object.file, " beside liburma, or name its folder in LD_LIBRARY_PATH");
}

}  // namespace

Result<const void*> load_plugin_object(const PluginObject& object) {
  void* const handle = dlopen(object.file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return explain(object, dlerror());
  void* const symbol = dlsym(handle, object.symbol);
  if (symbol == nullptr) {
    return failed(Status::unsupported, object.driver, ": ", object.file,
                  " is not the library of this driver")
        .fix("install the one that was built together with liburma");
  }
  // The stamp is the only member of the table whose place never changes.
  const void* const table = reinterpret_cast<const void* (*)()>(symbol)();
  const char* stamp = nullptr;
  std::memcpy(&stamp, table, sizeof stamp);
  if (std::strcmp(stamp, object.stamp) != 0) {
    return failed(Status::unsupported, object.driver, ": ", object.file, " is from another build (",
                  stamp, ") than liburma (", object.stamp, ")")
        .fix("install both from the same build");
  }
  return table;
}

}  // namespace urma::drivers
