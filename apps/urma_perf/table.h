// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "apps/urma_perf/columns.h"

namespace urma::apps::perf {

// The table of results for people. Rows appear as they are measured.
class Table {
 public:
  // `width`: that of the screen; SIZE_MAX shows all columns.
  Table(std::FILE* out, size_t width, const Rows& rows) : out_(out), width_(width), kind_(rows) {}

  void header();
  void row(const Result& result);
  // Prints remarks about the rows.
  void footer();

 private:
  template <class Text>
  void print(Text&& text);

  std::FILE* out_;
  size_t width_;
  Rows kind_;
  std::vector<const Column*> columns_;
  std::string place_;  // the device and the memory of the last row
  size_t rows_ = 0;
  size_t waited_ = 0;     // rows that waited too long for a processor
  size_t discarded_ = 0;  // rounds that were discarded for the same reason
  Verdict verdict_;
};

}  // namespace urma::apps::perf
