// SPDX-License-Identifier: Apache-2.0
// Catch2 3 has its own main in a library; for 2.13 it is defined here.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif
