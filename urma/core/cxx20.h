// SPDX-License-Identifier: Apache-2.0
#pragma once

// Included first by each header that applications include.
#if __cplusplus < 202002L
#error "liburma needs C++20. Fix: compile with -std=c++20"
// No file has this name, so compilers stop here instead of reporting errors in the code below.
#include <compile with -std=c++20>
#endif
