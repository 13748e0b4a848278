// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "urma/core/setting.h"

namespace urma {

// Users can set these values without changing a program. A value that the program gives comes
// first, then the environment, then the file, then the default:
//
//   device      URMA_DEVICE      the device of `open` without a device string, and of tools without
//                                one
//   log         URMA_LOG         off, error, warning, info or debug: devices that were opened
//                                without LogOptions::call write the lines of their logs to stderr;
//                                the default is off. LAYER=LEVEL is the level of one of
//                                `log_layers`, as in warning,transport=debug (tp is transport)
//   congestion  URMA_CONGESTION  the congestion control of devices whose DeviceOptions name none
//   capture     URMA_CAPTURE     a directory, in which each device writes its packets to a file
//                                PROGRAM-PID-NUMBER.pcapng, as pcap() does; by default none
//   config      URMA_CONFIG      the file; by default urma/urma.conf in $XDG_CONFIG_HOME or
//                                ~/.config, or else /etc/urma/urma.conf. The first that can be
//                                opened is read, no other
//
// The file has lines NAME = VALUE with the names on the left, empty lines, and lines that begin
// with a #. Values have no quotes, and no comment behind them. An invalid file or value is an error
// of every `open`, and a file that cannot be read is a warning, or an error if URMA_CONFIG names
// it. An invalid level of the log is a warning on stderr, once per process, and has no effect. So
// no setting is ignored silently. Each `open` reads the environment and the file again.
//
// In a program that has more privileges than its user (set-user-ID, capabilities; AT_SECURE) the
// environment counts as empty, and only /etc/urma/urma.conf is read.
struct Configuration {
  SettingList settings;               // device, log, congestion, capture, config, in this order
  std::vector<std::string> warnings;  // variables URMA_... that the library does not know, and
                                      // files that cannot be read
};

}  // namespace urma
