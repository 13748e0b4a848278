// SPDX-License-Identifier: Apache-2.0
#include "apps/urma_perf/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/common/interrupt.h"
#include "apps/common/output.h"
#include "apps/urma_perf/environment.h"

namespace urma::apps::perf {
namespace {

using nlohmann::json;

// Returns how many characters a line of the table may have.
size_t table_width(const Options& options) {
  constexpr size_t usual = 80;
  return options.wide ? SIZE_MAX : std::max(usual, terminal_columns(STDOUT_FILENO));
}

// The fields of a line of --csv, in their order. Some results lack the last ones, which are empty.
constexpr const char* csv_fields[] = {"test",
                                      "device",
                                      "size_bytes",
                                      "depth",
                                      "jetties",
                                      "order",
                                      "messages",
                                      "p50_us",
                                      "p90_us",
                                      "p99_us",
                                      "p99_9_us",
                                      "p99_99_us",
                                      "max_us",
                                      "mean_us",
                                      "deviation_us",
                                      "messages_per_second",
                                      "bytes_per_second",
                                      "wrong",
                                      "lost_percent",
                                      "run_queue_wait_percent",
                                      "limit",
                                      "limit_unit",
                                      "limit_pattern",
                                      "times_limit",
                                      "rate",
                                      "rate_percent",
                                      "unsent",
                                      "traffic",
                                      "processes",
                                      "overlap_percent",
                                      "blocks",
                                      "block_bytes",
                                      "entries",
                                      "works",
                                      "works_at_once",
                                      "prep_us",
                                      "post_us",
                                      "one_write_us",
                                      "of_one_write"};

// Returns a value as RFC 4180 asks: a text with a comma or a quote stands in quotes.
std::string csv_text(const json& value) {
  if (!value.is_string()) return value.dump();
  const std::string& text = value.get_ref<const std::string&>();
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string out = "\"";
  for (const char one : text) out += one == '"' ? "\"\"" : std::string(1, one);
  return out + '"';
}

void print_csv(const json& fields) {
  std::string line;
  for (const char* const name : csv_fields) {
    if (name != csv_fields[0]) line += ',';
    if (fields.contains(name)) line += csv_text(fields[name]);
  }
  print(line + "\n", "--csv");
}

void print_csv_header() {
  json names;
  for (const char* const name : csv_fields) names[name] = name;
  print_csv(names);
}

// Returns what a drawing says about its origin.
std::string note_of(const json& environment) {
  const auto text = [&](const char* field) { return environment[field].get<std::string>(); };
  return fmt::format("liburma {} ({}), {}, {}", text("library_version"), text("commit"),
                     text("cpu_model"), text("date"));
}

}  // namespace

Output::Output(const Options& options, bool limit)
    : options_(options),
      table_(stdout, table_width(options),
             {.limit = limit,
              .jetties = options.jetties.size() > 1,
              .plan = options.test != nullptr && options.test->plan}),
      files_(options) {}

void Output::add(const Client& client, const Result& result) {
  environment_["device"] = client.description();
  environment_["peer_device"] = client.server_description();
  add(result);
}

void Output::add(const Result& result) {
  if (result.rounds.empty()) {
    if (interrupted()) return;  // Ctrl-C came during the warm-up
    throw Failure(Exit::error,
                  fmt::format("{} {}: no message arrived in the time of the rounds, so there is no "
                              "result. Fix: give more --seconds, or a larger --count",
                              result.what.test->name, size_text(result.what.bytes)));
  }
  waited_percent_ = std::max(waited_percent_, result.waited_percent());
  wrong_ += result.verdict.wrong;
  const json fields = to_json(result);
  // A threshold for a field that does not exist ends the run with its first result.
  for (const Threshold& threshold : options_.thresholds) {
    if (const auto broken = threshold.broken_by(fields)) broken_.push_back(*broken);
  }
  print_row(result, fields);
  files_.add(result);
  results_.push_back(fields);
}

// A header is printed only with the first result, so that an error stands alone on the screen.
void Output::print_row(const Result& result, const json& fields) {
  const bool first = results_.empty();
  switch (options_.form) {
    case Options::Form::table:
      if (first) table_.header();
      return table_.row(result);
    case Options::Form::csv:
      if (first) print_csv_header();
      return print_csv(fields);
    case Options::Form::json_stream: {
      json line = fields;
      line["schema"] = json_schema;
      line["type"] = "result";
      return print(line.dump() + "\n", "--json-stream");
    }
    case Options::Form::json:
      return;
  }
}

Exit Output::finish() {
  if (options_.form == Options::Form::table) table_.footer();
  const json all = whole();
  if (options_.form == Options::Form::json) print_json(all);
  files_.write(all, note_of(all["environment"]));
  if (std::ferror(stdout) != 0) {
    throw Failure(Exit::error,
                  "writing the table to stdout failed. Fix: free some space, or use "
                  "--json-file");
  }
  return judge();
}

Exit Output::judge() const {
  if (wrong_ > 0) return Exit::wrong_bytes;
  for (const std::string& one : broken_) print_error("urma_perf: " + one);
  if (!broken_.empty()) return Exit::threshold;
  return interrupted() ? Exit::interrupted : Exit::ok;
}

json Output::whole() const {
  json about = environment(options_.command);
  about.update(environment_);
  about["run_queue_wait_percent"] = waited_percent_;
  about["interrupted"] = interrupted();
  return {{"schema", json_schema}, {"environment", about}, {"results", results_}};
}

}  // namespace urma::apps::perf
