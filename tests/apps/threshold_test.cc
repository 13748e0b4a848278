// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/threshold.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/common/failure.h"
#include "apps/urma_perf/counters.h"
#include "apps/urma_perf/json_output.h"
#include "apps/urma_perf/tests.h"
#include "tests/catch.h"

namespace urma::test {
namespace {

using apps::perf::Threshold;

const nlohmann::json result = {{"test", "send_lat"},
                               {"device", "cxl:"},
                               {"size_bytes", 8},
                               {"p99_us", 5.0},
                               {"bytes_per_second", 10e9},
                               {"messages_per_second", 2e6},
                               {"wrong", 0},
                               {"limit_unit", "us"},
                               {"p50_us", "a text"},
                               {"mean_us", std::nan("")},
                               {"counters", {{"retransmitted", 7}}}};

bool broken(const char* text) { return Threshold::read(text).broken_by(result).has_value(); }

std::string refusal(const std::string& text) {
  try {
    (void)Threshold::read(text);
    return "";
  } catch (const apps::Failure& why) {
    REQUIRE(why.exit() == apps::Exit::usage);
    return why.what();
  }
}

TEST_CASE("a threshold is broken by values on its side of the bound") {
  CHECK(broken("p99_us>4.9"));
  CHECK_FALSE(broken("p99_us>5"));
  CHECK(broken("p99_us>=5"));
  CHECK_FALSE(broken("p99_us<5"));
  CHECK(broken("p99_us<=5"));
  CHECK(broken("p99_us<1e3"));
  CHECK_FALSE(broken("wrong>0"));
  CHECK(broken("wrong>=0"));
}

TEST_CASE("a threshold knows short names, titles of columns and counters") {
  CHECK(broken("p99>4us"));
  CHECK(broken("bw<81Gbps"));
  CHECK_FALSE(broken("bw<79Gbps"));
  CHECK(broken("bw<10.1GB/s"));
  CHECK_FALSE(broken("bw<9.9GB/s"));
  CHECK(broken("GB/s<10.1"));
  CHECK(broken("Gbit/s<81"));
  CHECK_FALSE(broken("Gbit/s<79"));
  CHECK(broken("rate<2.1M"));
  CHECK_FALSE(broken("msg_rate<1.9M"));
  CHECK(broken("msg/s>1999K"));
  CHECK(broken("retx>6"));
  CHECK(broken("retransmitted<=7"));
  CHECK(broken(" p99 > 4 us "));
}

TEST_CASE("a bound is converted to the unit of its field") {
  const struct {
    const char* text;
    const char* field;
    double bound;
  } all[] = {{"p99>50", "p99_us", 50},
             {"p99>50us", "p99_us", 50},
             {"p99>50\u00b5s", "p99_us", 50},
             {"p50>900ns", "p50_us", 0.9},
             {"p90>2ms", "p90_us", 2000},
             {"p99.9>1.5s", "p99_9_us", 1.5e6},
             {"p99.99>1", "p99_99_us", 1},
             {"p999>1", "p99_9_us", 1},
             {"p9999>1", "p99_99_us", 1},
             {"lat>5us", "p50_us", 5},
             {"latency>5", "p50_us", 5},
             {"median>5", "p50_us", 5},
             {"max>5", "max_us", 5},
             {"avg>5", "mean_us", 5},
             {"mean>5", "mean_us", 5},
             {"stddev>5", "deviation_us", 5},
             {"p99_us>5", "p99_us", 5},
             {"p99_us>5ms", "p99_us", 5000},
             {"bw<1bps", "bytes_per_second", 0.125},
             {"bw<1b/s", "bytes_per_second", 0.125},
             {"bw<1bit/s", "bytes_per_second", 0.125},
             {"bw<8kbps", "bytes_per_second", 1e3},
             {"bw<8Kbit/s", "bytes_per_second", 1e3},
             {"bw<8Mbps", "bytes_per_second", 1e6},
             {"bw<8Mb/s", "bytes_per_second", 1e6},
             {"bw<90Gbps", "bytes_per_second", 11.25e9},
             {"bandwidth<90Gbit/s", "bytes_per_second", 11.25e9},
             {"throughput<90Gb/s", "bytes_per_second", 11.25e9},
             {"bw<0.8Tbps", "bytes_per_second", 100e9},
             {"bw<1B/s", "bytes_per_second", 1},
             {"bw<1kB/s", "bytes_per_second", 1e3},
             {"bw<1MB/s", "bytes_per_second", 1e6},
             {"bw<10GB/s", "bytes_per_second", 10e9},
             {"bw<10GBps", "bytes_per_second", 10e9},
             {"bw<1TB/s", "bytes_per_second", 1e12},
             {"bw<1KiB/s", "bytes_per_second", 1024},
             {"bw<1MiB/s", "bytes_per_second", 1048576},
             {"bw<1GiB/s", "bytes_per_second", 1073741824},
             {"bw<8Gibit/s", "bytes_per_second", 1073741824},
             {"bytes_per_second<1e9", "bytes_per_second", 1e9},
             {"bytes_per_second<1GB/s", "bytes_per_second", 1e9},
             {"rate<5000", "messages_per_second", 5000},
             {"rate<20k", "messages_per_second", 20e3},
             {"rate<20K/s", "messages_per_second", 20e3},
             {"msg_rate<1.5M", "messages_per_second", 1.5e6},
             {"rate<1.5Mpps", "messages_per_second", 1.5e6},
             {"rate<2Mmsg/s", "messages_per_second", 2e6},
             {"rate<0.1G", "messages_per_second", 1e8},
             {"wrong>0", "wrong", 0},
             {"retx>2K", "retransmitted", 2000},
             {"rnr>0", "receiver_not_ready", 0},
             {"dup>0", "duplicates", 0},
             {"client_retransmitted>1", "client_retransmitted", 1},
             {"lost>0.5%", "lost_percent", 0.5},
             {"lost>0.5", "lost_percent", 0.5},
             {"wait>10%", "run_queue_wait_percent", 10},
             {"x_limit>2", "times_limit", 2},
             {"x_limit>2x", "times_limit", 2},
             {"rate_percent<98%", "rate_percent", 98},
             {"size_bytes>8", "size_bytes", 8}};
  for (const auto& one : all) {
    INFO(one.text);
    const Threshold read = Threshold::read(one.text);
    CHECK(read.measure().field == one.field);
    CHECK(std::abs(read.bound() - one.bound) <= 1e-12 * one.bound);
  }
}

TEST_CASE("a broken threshold says of what, and with which value in the unit that was given") {
  const auto why = [](const char* text) { return Threshold::read(text).broken_by(result).value(); };
  const std::string of = "send_lat cxl:, 8 bytes: ";
  CHECK(why("p99_us>=5") == of + "p99_us is 5, so --fail-if p99_us>=5 ends this run with 3");
  CHECK(why("p99>4") == of + "p99 is 5 us, so --fail-if p99>4 ends this run with 3");
  CHECK(why("p99>900ns") == of + "p99 is 5000 ns, so --fail-if p99>900ns ends this run with 3");
  CHECK(why("bw<90Gbps") == of + "bw is 80 Gbps, so --fail-if bw<90Gbps ends this run with 3");
  CHECK(why("GB/s<20") == of + "GB/s is 10, so --fail-if GB/s<20 ends this run with 3");
  CHECK(why("rate<3M") == of + "rate is 2 M, so --fail-if rate<3M ends this run with 3");
}

TEST_CASE("a result without the number cannot be judged, so it fails") {
  for (const char* text : {"max>5", "p50>5", "mean>5", "mean<5", "dup>0"}) {
    INFO(text);
    CHECK(Threshold::read(text).broken_by(result).value().find("it has no ") != std::string::npos);
  }
}

TEST_CASE("a text of another form is not a threshold") {
  for (const char* text : {"",           ">",      "p98",          "p99>",    ">5",
                           "p99=5",      "p99>>5", "p99>nan",      "p99>inf", "p99>-inf",
                           "p99><5",     "p99>us", "p99>-5",       "p99>-0",  "p99>1e999",
                           "p99>1e-999", "p99>+5", "p99>,5",       "p99>=",   "p99>==5",
                           "p99=>5",     "p99!=5", "bw<1e308TB/s", "p99>\n5", "\x1b[31m"}) {
    INFO(text);
    const std::string why = refusal(text);
    CHECK(why.find("is invalid. Fix: give a name, one of < <= > >=") != why.npos);
    CHECK(why.find('\x1b') == why.npos);
  }
  // Without quotes, the shell writes to a file called 50us.
  CHECK(refusal("p99").find("Fix: put the condition into quotes") != std::string::npos);
}

TEST_CASE("a name that no result has is refused, with the nearest names first") {
  CHECK(refusal("p98_us>5").find("Fix: perhaps p9") != std::string::npos);
  CHECK(refusal("p99us>5").find("Fix: perhaps p99_us") != std::string::npos);
  CHECK(refusal("qqqqqqqq>5").find("Fix: the names are lat, p50, ") != std::string::npos);
  // Texts, lists and what a user has asked for are not numbers of a result.
  for (const char* text : {"limit_unit>5", "rounds>5", "counters>5", "test>5", "verified>5"}) {
    INFO(text);
    CHECK(refusal(text).find("no result has") != std::string::npos);
  }
  CHECK(refusal("\x1b[31m>5").find('\x1b') == std::string::npos);
}

TEST_CASE("a unit of another kind is refused, with the units of this one") {
  const struct {
    const char* text;
    const char* fix;
  } all[] = {{"p99>5Gbps", "Fix: give a time: ns, us, ms or s"},
             {"p99>5u", "a time"},
             {"p99>5US", "a time"},
             {"p99>5m", "a time"},
             {"p99>5us5", "a time"},
             {"p99>0x5", "a time"},
             {"p99>5,5us", "a time"},
             {"p99_us>5B/s", "a time"},
             {"bw<90", "bits or bytes? Fix: give the unit, as bw<90Gbps or bw<90GB/s"},
             {"bandwidth<90", "bits or bytes?"},
             {"bw<90G", "a bandwidth: GB/s, MB/s, Gbps or Mbps"},
             {"bw<90us", "a bandwidth"},
             {"bw<90GB", "a bandwidth"},
             {"bw<90mbps", "a bandwidth"},
             {"bw<90kiB/s", "a bandwidth"},
             {"bw<90iB/s", "a bandwidth"},
             {"bw<90XB/s", "a bandwidth"},
             {"bw<90/s", "a bandwidth"},
             {"rate<2m", "messages per second"},
             {"rate<2Gbps", "messages per second"},
             {"rate<2Ki", "messages per second"},
             {"rate<2us", "messages per second"},
             {"wrong>0us", "a count"},
             {"wrong>0%", "a count"},
             {"lost>1us", "a percentage"},
             {"lost>1%%", "a percentage"},
             {"x_limit>2%", "a ratio"},
             {"size_bytes>4K", "a number without a unit"}};
  for (const auto& one : all) {
    INFO(one.text);
    CHECK(refusal(one.text).find(one.fix) != std::string::npos);
  }
}

TEST_CASE("each number of a result is the number of a threshold") {
  apps::perf::Result all;
  all.what.test = apps::perf::find_test("write_bw");
  all.counters = apps::perf::combine(apps::perf::difference({}, {}), {});
  const nlohmann::json fields = to_json(all);
  for (const auto& [name, value] : fields.items()) {
    INFO(name);
    if (value.is_number()) CHECK(apps::perf::find_measure(name)->field == name);
  }
  all.what.test = apps::perf::find_test("kv");
  for (const auto& [name, value] : to_json(all).items()) {
    INFO(name);
    if (value.is_number()) CHECK(apps::perf::find_measure(name)->field == name);
  }
  for (const auto& [name, value] : fields["counters"].items()) {
    INFO(name);
    CHECK(apps::perf::find_measure(name)->counter);
  }
}

}  // namespace
}  // namespace urma::test
