// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "urma/core/result.h"

namespace urma::drivers {

// The shared object of a driver whose SDK liburma does not link. Loaded for the first device that
// needs it, and never unloaded, because threads of the SDK run in it. The object exports a function
// without arguments that returns its table. It is compiled from the same sources by the same
// compiler: both have a stamp of these, which the table begins with, and an object with another
// stamp is refused.
struct PluginObject {
  const char* driver;       // the driver's name
  const char* file;         // of the object
  const char* symbol;       // of the function
  const char* stamp;        // of liburma
  bool built;               // whether this build has made the object
  const char* sdk;          // the SDK's name
  const char* sdk_library;  // how the file names of its libraries begin
  const char* packages;     // that have these libraries, for people
  const char* to_build;     // what to install and which option to give to cmake, for people
};

// Returns the table. Errors: unsupported (the object or the SDK is not installed, or the object is
// from another build). Any thread may call it.
Result<const void*> load_plugin_object(const PluginObject& object);

}  // namespace urma::drivers
