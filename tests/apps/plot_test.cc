// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/plot.h"

#include <string>

#include "apps/urma_perf/chart.h"
#include "tests/catch.h"

namespace urma::apps::perf {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++out;
  return out;
}

Result result_of(const char* test, uint64_t bytes, const char* device) {
  Result result;
  result.what = {.test = find_test(test), .bytes = bytes};
  result.device = device;
  for (uint64_t ns = 1000; ns < 2000; ++ns) result.times.record(ns * bytes);
  result.rounds.push_back(
      {.seconds = 1, .messages = 1000, .messages_per_second = 1e6, .times = {}});
  return result;
}

}  // namespace

TEST_CASE("results of several sizes are drawn over the size, throughput beside latency") {
  const std::string drawing =
      plot({result_of("write_lat", 64, "cxl:"), result_of("write_lat", 4096, "cxl:"),
            result_of("write_bw", 64, "udp:"), result_of("write_bw", 4096, "udp:")},
           "a note");
  CHECK(drawing.starts_with("<svg xmlns="));
  CHECK(drawing.ends_with("</svg>\n"));
  CHECK(count_of(drawing, "<polyline ") == 3);  // p50 and p99, and one of throughput
  for (const char* text : {">write_lat cxl:, p50<", ">write_lat cxl:, p99<", ">write_bw udp:<",
                           ">64<", ">4K<", ">microseconds<", ">Gbit/s<", ">a note<"}) {
    INFO(text);
    CHECK(drawing.find(text) != drawing.npos);
  }
  CHECK(drawing.find("nan") == drawing.npos);
  CHECK(drawing.find("script") == drawing.npos);
}

TEST_CASE("a single size is drawn over the percentile") {
  const std::string drawing = plot({result_of("write_lat", 64, "cxl:")}, "");
  CHECK(count_of(drawing, "<polyline ") == 1);
  for (const char* text : {">50<", ">90<", ">99<", ">99.9<", ">write_lat cxl: 64<"}) {
    INFO(text);
    CHECK(drawing.find(text) != drawing.npos);
  }
}

TEST_CASE("a drawing of no results, or of one with an odd device, is an SVG") {
  CHECK(plot({}, "").ends_with("</svg>\n"));
  const std::string odd = plot({result_of("write_lat", 8, "pcap(file=<a>&\x1b.pcapng):cxl:")}, "");
  CHECK(odd.find("pcap(file=&lt;a&gt;&amp;?.pcapng):cxl:") != odd.npos);
}

TEST_CASE("values that a logarithmic axis lacks are left out of a drawing") {
  const Chart chart{
      .panels = {{.title = "t",
                  .x_title = "x",
                  .y_title = "y",
                  .x_ticks = {},
                  .lines = {{.name = "line", .points = {{0, 1}, {1, 0}, {1, -5}, {10, 100}}}}}},
      .note = ""};
  const std::string drawing = chart.svg();
  CHECK(count_of(drawing, "<circle ") == 1);
  CHECK(drawing.find("inf") == drawing.npos);
}

}  // namespace urma::apps::perf
