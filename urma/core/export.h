#pragma once

// What the shared library shows, under the version that exports.map gives it. Everything else is
// hidden: tests/install/symbols.txt lists what is not. Functions that are defined in headers, and
// templates, need no mark: whoever uses them has their own.
#define URMA_API __attribute__((visibility("default")))
// What only the library itself calls, in a class that is shown.
#define URMA_LOCAL __attribute__((visibility("hidden")))
