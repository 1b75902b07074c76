/* Active health checks in a loop of one's own: poll, perform, report, sleep. Two hosts that nobody answers for. */
#include "mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static const char CHECKED[] =
    "clusters:\n"
    "- name: orders\n"
    "  load_assignment:\n"
    "    cluster_name: orders\n"
    "    endpoints:\n"
    "    - lb_endpoints:\n"
    "      - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}\n"
    "      - endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 2}}}\n"
    "  health_checks:\n"
    "  - {timeout: 1s, interval: 5s, unhealthy_threshold: 3, healthy_threshold: 2, http_health_check: {path: /health}}\n";

/* GET over a connection of its own: the status, or 0. IPv4 only; the body is not read. */
static int get(const nexthop_check *check) {
  char text[2048], answer[512];
  const char *colon = memchr(check->address.ptr, ':', check->address.len);
  if (colon == NULL) return 0;
  snprintf(text, sizeof text, "%.*s", (int)(colon - check->address.ptr), check->address.ptr);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
  struct timeval limit = {(time_t)(check->timeout / 1000000000), (suseconds_t)(check->timeout / 1000 % 1000000)};
  int s = inet_pton(AF_INET, text, &to.sin_addr) == 1 ? socket(AF_INET, SOCK_STREAM, 0) : -1;
  if (s < 0) return 0;
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  int status = 0, n = snprintf(text, sizeof text, "%.*s %.*s HTTP/1.1\r\nhost: %.*s\r\nconnection: close\r\n\r\n",
                               (int)check->method.len, check->method.ptr, (int)check->path.len, check->path.ptr,
                               (int)check->authority.len, check->authority.ptr);
  if (n < (int)sizeof text && connect(s, (struct sockaddr *)&to, sizeof to) == 0 && send(s, text, (size_t)n, MSG_NOSIGNAL) == n) {
    ssize_t got = recv(s, answer, sizeof answer - 1, 0);
    answer[got > 0 ? got : 0] = 0;
    if (strncmp(answer, "HTTP/1.1 ", 9) == 0) status = atoi(answer + 9);
  }
  close(s);
  return status;
}

/* One round. Returns nanoseconds until the next one; look at least every second, since updates bring checks too. */
static uint64_t round_of_checks(nexthop_engine mesh, int *performed, int *failed) {
  char text[4096];
  size_t n;
  nexthop_check check = NEXTHOP_CHECK_INIT;
  while (nexthop_poll_check(mesh, NEXTHOP_NOW, &check, text, sizeof text, &n) == NEXTHOP_OK) {
    nexthop_outcome outcome = NEXTHOP_OUTCOME_INIT;
    outcome.status = (uint16_t)get(&check);
    if (outcome.status == 0) outcome.failure = NEXTHOP_CONNECT_FAILURE;
    nexthop_status told = nexthop_check_result(mesh, check.id, NEXTHOP_CHECK_JUDGE, &outcome, (nexthop_str){0}, NEXTHOP_NOW);
    if (told != NEXTHOP_OK && told != NEXTHOP_ENDED) give_up("check_result"); /* ended: its host left meanwhile */
    *performed += 1;
    *failed += outcome.failure != 0;
  }
  uint64_t next = nexthop_checks_deadline(mesh, NEXTHOP_NOW);
  return next < 1000000000 ? next : 1000000000;
}

int main(void) {
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = (nexthop_str){CHECKED, sizeof CHECKED - 1};
  nexthop_engine mesh;
  if (nexthop_engine_new(NULL, &document, 1, &mesh) != NEXTHOP_OK) give_up("engine_new");
  int performed = 0, failed = 0;
  uint64_t next = round_of_checks(mesh, &performed, &failed); /* a server does this for ever, and sleeps for `next` */
  char hosts[4096];
  size_t n = 0;
  if (nexthop_text(mesh, NEXTHOP_TEXT_HOSTS, (nexthop_str){"orders", 6}, hosts, sizeof hosts - 1, &n) != NEXTHOP_OK) give_up("text");
  hosts[n] = 0;
  printf("orders of 127.0.0.1: %s\n", strstr(hosts, "/failed_active_hc") ? "/failed_active_hc" : "healthy");
  printf("%d checks, %d failed\n", performed, failed);
  nexthop_engine_free(mesh);
  return next == 0;
}
