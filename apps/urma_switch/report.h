#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/urma_switch/forwarder.h"

namespace urma::apps::switches {

// The counters of a switch since its start, for programs and for people. `seconds`: how long it has
// run.
nlohmann::json report_json(const Forwarder& forwarder, const Endpoint& at, double seconds);
std::string report_text(const Forwarder& forwarder, double seconds);

}  // namespace urma::apps::switches
