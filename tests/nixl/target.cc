// SPDX-License-Identifier: Apache-2.0
// An agent in a process of its own: target DEVICE [BYTES]. Prints what other agents need to know
// (address, size, connection information and public data, with tabs between), and is there until it
// is killed. Each notification is answered by one with the same text.
#include <cstdio>
#include <string>

#include "tests/nixl/agent.h"

int main(int count, char** words) {
  if (count < 2 || count > 3) return 2;
  const size_t bytes = count > 2 ? std::stoull(words[2]) : size_t{1} << 20;
  urma::test::Agent agent("target", words[1], bytes);
  const nixlBlobDesc published = agent.published();
  std::printf("%zu\t%zu\t%s\t%s\n", published.addr, published.len, agent.info().c_str(),
              published.metaInfo.c_str());
  std::fflush(stdout);
  for (;;) {
    notif_list_t notes;
    agent.engine().getNotifs(notes);
    for (const auto& [from, text] : notes) {
      // The connection information of the agent came with its first notification.
      if (text.starts_with("urma-nixl")) agent.engine().loadRemoteConnInfo(from, text);
      agent.engine().genNotif(from, text);
    }
    if (notes.empty()) usleep(100);
  }
}
