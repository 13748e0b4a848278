// SPDX-License-Identifier: Apache-2.0
// What a program learns of devices before it opens one.
#include <arpa/inet.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/umdk/check.h"
#include "tests/umdk/ends.h"

static char address[32];  // of the loopback, and of no other program

// Opens a UDP port of that address, and returns its descriptor.
static int take_port(int* port) {
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t bytes = sizeof at;
  const int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  REQUIRE(inet_pton(AF_INET, address, &at.sin_addr) == 1);
  REQUIRE(bind(descriptor, (struct sockaddr*)&at, sizeof at) == 0);
  REQUIRE(getsockname(descriptor, (struct sockaddr*)&at, &bytes) == 0);
  *port = ntohs(at.sin_port);
  return descriptor;
}

static urma_device_t* device_at(int port) {
  char name[64];
  snprintf(name, sizeof name, "udp:%s:%d", address, port);
  urma_device_t* const device = urma_get_device_by_name(name);
  REQUIRE(device != NULL);
  return device;
}

static urma_eid_t only_eid(urma_device_t* device) {
  uint32_t count = 0;
  urma_eid_info_t* const list = urma_get_eid_list(device, &count);
  REQUIRE(list != NULL && count == 1);
  CHECK(list[0].eid_index == 0);
  const urma_eid_t eid = list[0].eid;
  urma_free_eid_list(list);
  return eid;
}

static bool is_address(urma_eid_t eid) {
  struct in_addr at;
  REQUIRE(inet_pton(AF_INET, address, &at) == 1);
  return eid.in4.prefix == htonl(0xffff) && eid.in4.addr == at.s_addr;
}

static void a_device_that_is_open_has_its_eids(void) {
  int port = 0;
  close(take_port(&port));
  urma_device_t* const device = device_at(port);
  urma_context_t* const ctx = urma_create_context(device, 0);
  REQUIRE(ctx != NULL);
  const urma_eid_t eid = only_eid(device);
  CHECK(is_address(eid) && memcmp(&eid, &ctx->eid, sizeof eid) == 0);
  CHECK(urma_get_device_by_eid(eid, URMA_TRANSPORT_UB) == device);
  CHECK(urma_delete_context(ctx) == URMA_SUCCESS);
}

static void a_device_whose_port_another_process_has_has_its_eids(void) {
  int port = 0;
  const int taken = take_port(&port);
  CHECK(is_address(only_eid(device_at(port))));
  close(taken);
}

static urma_port_attr_t port_of(urma_device_t* device) {
  urma_device_attr_t attr;
  REQUIRE(urma_query_device(device, &attr) == URMA_SUCCESS);
  CHECK(attr.port_cnt == 1 && attr.port_attr[0].state == URMA_PORT_ACTIVE);
  return attr.port_attr[0];
}

// The loopback interface carries 64 KiB. A window has no interface.
static void the_port_is_that_of_the_interface(void) {
  int port = 0;
  int mtu = 0;
  close(take_port(&port));
  FILE* const file = fopen("/sys/class/net/lo/mtu", "r");
  REQUIRE(file != NULL && fscanf(file, "%d", &mtu) == 1);
  fclose(file);
  CHECK((port_of(device_at(port)).active_mtu == URMA_MTU_8192) == (mtu >= 8192));
  CHECK(port_of(urma_get_device_by_name((char*)devices[0])).active_mtu == URMA_MTU_4096);
}

static void* ask_for_the_port(void* device) {
  for (int i = 0; i < 200; ++i) {
    CHECK(port_of(device).active_mtu == URMA_MTU_4096);
  }
  return NULL;
}

// A device is asked while another thread looks for devices, and the addresses change.
static void addresses_that_change_meanwhile(void) {
  static const char* const texts[] = {
      "changing=cxl:/dev/shm/a-window-whose-name-is-too-long-to-be-stored-in-place",
      "changing=cxl:/dev/shm/another-window-whose-name-is-even-longer-than-the-name-of-that-one"};
  char before[256];
  pthread_t asks;
  snprintf(before, sizeof before, "%s", getenv("URMA_DEVICES"));
  setenv("URMA_DEVICES", texts[0], 1);
  urma_device_t* const device = urma_get_device_by_name((char*)"changing");
  REQUIRE(device != NULL);
  REQUIRE(pthread_create(&asks, NULL, ask_for_the_port, device) == 0);
  for (int i = 0; i < 2000; ++i) {
    setenv("URMA_DEVICES", texts[i % 2], 1);
    CHECK(urma_get_device_by_name((char*)"changing") == device);
  }
  CHECK(pthread_join(asks, NULL) == 0);
  setenv("URMA_DEVICES", before, 1);
}

int main(void) {
  const int pid = (int)getpid();
  snprintf(address, sizeof address, "127.%d.%d.%d", 64 + (pid >> 14) % 128, (pid >> 7) % 128,
           1 + pid % 128);
  name_devices();
  a_device_that_is_open_has_its_eids();
  a_device_whose_port_another_process_has_has_its_eids();
  the_port_is_that_of_the_interface();
  addresses_that_change_meanwhile();
  remove_devices();
  return failures;
}
