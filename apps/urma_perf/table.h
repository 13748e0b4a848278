#pragma once

#include <cstdio>
#include <string>

#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

// The table of results for people. Rows appear as they are measured.
class Table {
 public:
  // `device_width` is that of the longest device string.
  Table(std::FILE* out, size_t device_width, bool limit)
      : out_(out), device_width_(device_width), limit_(limit) {}

  void header();
  void row(const Result& result);
  // Prints remarks about the rows.
  void footer();

 private:
  std::FILE* out_;
  size_t device_width_;
  bool limit_;
  size_t rows_ = 0;
  size_t waited_ = 0;     // rows that waited too long for a processor
  size_t discarded_ = 0;  // rounds that were discarded for the same reason
  Verdict verdict_;
};

// Formats a number with three significant digits: "0.0123", "2.04", "11.7", "1523".
std::string three_digits(double value);
// Formats a number like "987", "235k", "1.42M".
std::string rate_text(double per_second);

}  // namespace urma::apps::perf
