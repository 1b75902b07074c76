/* Active checks: handed out once, judged here, and what is wrong use of them. */
#include "check.h"

static const char CHECKED[] =
    "clusters:\n"
    "- name: web\n"
    "  common_lb_config: {healthy_panic_threshold: {value: 0}}\n"
    "  load_assignment:\n"
    "    cluster_name: web\n"
    "    endpoints:\n"
    "    - lb_endpoints:\n"
    "      - endpoint:\n"
    "          address: {socket_address: {address: 10.0.0.1, port_value: 80}}\n"
    "          health_check_config: {port_value: 81, hostname: own.example}\n"
    "      - endpoint:\n"
    "          address: {socket_address: {address: 10.0.0.2, port_value: 80}}\n"
    "          health_check_config: {disable_active_health_check: true}\n"
    "  health_checks:\n"
    "  - timeout: 1s\n"
    "    interval: 5s\n"
    "    no_traffic_interval: 5s\n"
    "    unhealthy_threshold: 2\n"
    "    healthy_threshold: 1\n"
    "    http_health_check: {path: /health, method: POST, send: {text: '6869'}, receive: [{text: 6f6b}],\n"
    "      request_headers_to_add: [{header: {key: x-a, value: '1'}}]}\n"
    "- name: bytes\n"
    "  load_assignment:\n"
    "    cluster_name: bytes\n"
    "    endpoints:\n"
    "    - lb_endpoints:\n"
    "      - endpoint: {address: {socket_address: {address: 10.0.1.1, port_value: 80}}}\n"
    "  health_checks:\n"
    "  - timeout: 1s\n"
    "    interval: 5s\n"
    "    unhealthy_threshold: 2\n"
    "    healthy_threshold: 1\n"
    "    tcp_health_check: {receive: [{text: 6f6b}]}\n";

static const nexthop_str NOTHING = {NULL, 0};

static int is(nexthop_str found, const char *wanted) {
  return found.len == strlen(wanted) && memcmp(found.ptr, wanted, found.len) == 0;
}

static nexthop_check due(nexthop_engine engine, char *buf, size_t cap) {
  nexthop_check check = NEXTHOP_CHECK_INIT;
  size_t n = 0;
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, &check, buf, cap, &n), NEXTHOP_OK);
  return check;
}

static nexthop_status told(nexthop_engine engine, uint64_t id, uint32_t result) {
  return nexthop_check_result(engine, id, result, NULL, NOTHING, NEXTHOP_NOW);
}

static int shows(nexthop_engine engine, const char *cluster, const char *words) {
  char buf[4096];
  size_t n = 0;
  SAME(nexthop_text(engine, NEXTHOP_TEXT_HOSTS, text(cluster), buf, sizeof buf - 1, &n), NEXTHOP_OK);
  buf[n] = 0;
  return strstr(buf, words) != NULL;
}

int main(void) {
  nexthop_engine engine = mesh_of(CHECKED, sizeof CHECKED - 1);
  char buf[1024], other[1024];
  size_t n = 0;
  nexthop_check none = NEXTHOP_CHECK_INIT;
  CHECK(nexthop_checks_deadline(engine, NEXTHOP_NOW) == NEXTHOP_NEVER);
  CHECK(!shows(engine, "web", "failed_active_hc"));

  /* A buffer that is too small leaves the check where it is. */
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, &none, buf, 3, &n), NEXTHOP_SHORT);
  CHECK(n > 3);
  nexthop_check http = due(engine, buf, sizeof buf), tcp = due(engine, other, sizeof other);
  if (http.protocol == NEXTHOP_CHECK_TCP) {
    nexthop_check swap = http;
    http = tcp;
    tcp = swap;
  }
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, &none, NULL, 0, NULL), NEXTHOP_EMPTY);
  SAME(nexthop_checks_deadline(engine, NEXTHOP_NOW), 1000000000);
  SAME(http.protocol, NEXTHOP_CHECK_HTTP);
  SAME(http.bits, NEXTHOP_CHECK_BIT_REUSE);
  SAME(http.timeout, 1000000000);
  SAME(http.body_limit, 1024);
  CHECK(is(http.method, "POST") && is(http.path, "/health") && is(http.send, "hi") && is(http.cluster, "web"));
  CHECK(is(http.authority, "own.example") && is(http.address, "10.0.0.1:81") && http.name.ptr == NULL);
  CHECK(http.headers.len == sizeof "user-agent\0Envoy/HC\0x-a\0001" &&
        memcmp(http.headers.ptr, "user-agent\0Envoy/HC\0x-a\0001", http.headers.len) == 0);
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  char words[512];
  SAME(nexthop_host(engine, http.host, http.host_version, &host, words, sizeof words, &n), NEXTHOP_OK);
  CHECK(is(host.address, "10.0.0.1:80"));

  /* The library judges: a good status with the wrong body fails the host. */
  nexthop_outcome outcome = NEXTHOP_OUTCOME_INIT;
  outcome.status = 200;
  SAME(nexthop_check_result(engine, http.id, NEXTHOP_CHECK_JUDGE, &outcome, text("no"), NEXTHOP_NOW), NEXTHOP_OK);
  CHECK(shows(engine, "web", "/failed_active_hc"));
  SAME(nexthop_check_result(engine, http.id, NEXTHOP_CHECK_JUDGE, &outcome, text("ok"), NEXTHOP_NOW), NEXTHOP_ENDED);

  /* A TCP check is out until its bytes are there. */
  SAME(nexthop_check_result(engine, tcp.id, NEXTHOP_CHECK_JUDGE, NULL, NOTHING, NEXTHOP_NOW), NEXTHOP_EMPTY);
  SAME(nexthop_check_result(engine, tcp.id, NEXTHOP_CHECK_JUDGE, NULL, text("ook"), NEXTHOP_NOW), NEXTHOP_OK);
  CHECK(shows(engine, "bytes", "\"healthy\""));

  /* Data traffic speaks, too; then time does. */
  SAME(nexthop_advance(engine, 5000000000), NEXTHOP_OK);
  http = due(engine, buf, sizeof buf);
  SAME(told(engine, http.id, NEXTHOP_CHECK_PASSIVE), NEXTHOP_EMPTY);
  SAME(told(engine, http.id, NEXTHOP_CHECK_SUCCESS), NEXTHOP_OK);
  CHECK(!shows(engine, "web", "failed_active_hc"));
  SAME(nexthop_advance(engine, 5000000000), NEXTHOP_OK);
  http = due(engine, buf, sizeof buf);
  SAME(nexthop_advance(engine, 1000000000), NEXTHOP_OK);
  SAME(told(engine, http.id, NEXTHOP_CHECK_SUCCESS), NEXTHOP_ENDED);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, NOTHING, NULL, 0, &n), NEXTHOP_SHORT);
  char *stats = malloc(n + 1);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, NOTHING, stats, n, &n), NEXTHOP_OK);
  stats[n] = 0;
  CHECK(strstr(stats, "\"cluster.web.health_check.network_failure\":1") != NULL);
  CHECK(strstr(stats, "\"cluster.web.health_check.passive_failure\":1") != NULL);
  free(stats);
  char line[2048] = "";
  SAME(nexthop_poll_event(engine, line, sizeof line, &n), NEXTHOP_OK);
  CHECK(strstr(line, "\"health_check_failure_event\"") != NULL && strstr(line, "\"cluster_name\":\"web\"") != NULL);

  /* Wrong use. */
  SAME(told(engine, 0, NEXTHOP_CHECK_SUCCESS), NEXTHOP_INVALID);
  SAME(told(engine, 4711, NEXTHOP_CHECK_SUCCESS), NEXTHOP_INVALID);
  SAME(told(engine, http.id, 8), NEXTHOP_INVALID);
  SAME(told((nexthop_engine){0}, http.id, NEXTHOP_CHECK_SUCCESS), NEXTHOP_INVALID);
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, NULL, buf, sizeof buf, &n), NEXTHOP_INVALID);
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, &none, NULL, 7, &n), NEXTHOP_INVALID);
  SAME(nexthop_advance(engine, 5000000000), NEXTHOP_OK);
  http = due(engine, buf, sizeof buf);
  SAME(nexthop_check_result(engine, http.id, NEXTHOP_CHECK_JUDGE, NULL, NOTHING, NEXTHOP_NOW), NEXTHOP_INVALID);
  CHECK(strcmp(nexthop_name(NEXTHOP_NAMES_CHECK_RESULT, NEXTHOP_CHECK_RETRIABLE), "retriable") == 0);
  CHECK(strcmp(nexthop_name(NEXTHOP_NAMES_CHECK_PROTOCOL, NEXTHOP_CHECK_GRPC), "grpc") == 0);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  SAME(told(engine, http.id, NEXTHOP_CHECK_SUCCESS), NEXTHOP_CLOSED);
  SAME(nexthop_poll_check(engine, NEXTHOP_NOW, &none, buf, sizeof buf, &n), NEXTHOP_CLOSED);
  CHECK(nexthop_checks_deadline(engine, NEXTHOP_NOW) == NEXTHOP_NEVER);
  puts("checks: ok");
  return 0;
}
