// SPDX-License-Identifier: Apache-2.0
#pragma once

// Marks what the shared library exports, under the version that api/exports.map gives. All other
// symbols are hidden; tests/install/symbols.txt lists the exported ones. Inline functions and
// templates need no mark: they are compiled into the program that uses them.
#define URMA_API __attribute__((visibility("default")))
// Marks a member that only the library calls, in an exported class.
#define URMA_LOCAL __attribute__((visibility("hidden")))
