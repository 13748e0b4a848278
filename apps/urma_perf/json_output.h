#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/failure.h"
#include "apps/urma_perf/result.h"

namespace urma::apps::perf {

inline constexpr const char* json_schema = "urma_perf/1";

nlohmann::json to_json(const Result& result);

// A file that is either complete or does not exist. It is created immediately, beside its final
// place, so that an unusable path is found before anything is measured.
class JsonFile {
 public:
  explicit JsonFile(std::string path);
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;

  void write(const nlohmann::json& whole);

 private:
  Failure failure(const char* doing) const;

  std::string path_;
  std::string temporary_;  // empty if `path_` is not a regular file, and is written directly
  int descriptor_ = -1;
};

}  // namespace urma::apps::perf
