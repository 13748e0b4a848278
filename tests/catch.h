// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2 is 2.13 on Debian 12 and 3.x on Ubuntu 24.04. Only this file knows the difference.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
