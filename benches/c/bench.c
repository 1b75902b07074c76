/* C: the empty call through the shared library (E), and choose + complete for 3, 100 and 1,000 hosts. JSON lines. */
#define _POSIX_C_SOURCE 200809L
#include "nexthop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CASES = 4, PER_ROUND = 20000, MAX_ROUNDS = 1000 };
static nexthop_engine engines[CASES];
static uint32_t targets[CASES];
static const int hosts[CASES] = {0, 3, 100, 1000};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void make(int at) {
  static char text[200000];
  size_t len = (size_t)snprintf(text, sizeof text,
    "name: web\nconnect_timeout: 1s\nlb_policy: LEAST_REQUEST\n"
    "circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000, "
    "retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}}]}\n"
    "outlier_detection: {consecutive_5xx: 5, interval: 10s}\n"
    "load_assignment:\n  cluster_name: web\n  endpoints:\n  - lb_endpoints:\n");
  for (int i = 0; i < hosts[at]; i++)
    len += (size_t)snprintf(text + len, sizeof text - len,
      "    - endpoint: {address: {socket_address: {address: 10.1.%d.%d, port_value: 8080}}}\n", i / 250, i % 250 + 1);
  nexthop_document document = {.struct_size = sizeof document, .text = {text, len}};
  if (nexthop_engine_new(NULL, &document, 1, &engines[at]) ||
      nexthop_resolve(engines[at], (nexthop_str){"web", 3}, &targets[at])) {
    char sentence[512];
    size_t n = 0;
    nexthop_last_error(sentence, sizeof sentence, &n);
    fprintf(stderr, "%.*s\n", (int)n, sentence);
    exit(1);
  }
}

static void run(int at, int n) {
  if (at == 0) {
    for (int i = 0; i < n; i++) (void)nexthop_abi_version();
    return;
  }
  nexthop_decision d = {.struct_size = sizeof d};
  for (int i = 0; i < n; i++) {
    if (nexthop_pick(engines[at], targets[at], 1, (nexthop_str){NULL, 0}, NEXTHOP_NOW, &d) || d.kind != NEXTHOP_GO ||
        nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code)
      exit(1);
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  static double seen[CASES][MAX_ROUNDS];
  const char *text = getenv("ROUNDS");
  int rounds = text ? atoi(text) : 60;
  if (rounds < 1 || rounds > MAX_ROUNDS) return 2;
  for (int at = 1; at < CASES; at++) make(at);
  for (int at = 0; at < CASES; at++) run(at, PER_ROUND);
  for (int round = 0; round < rounds; round++)
    for (int at = 0; at < CASES; at++) {
      int n = at == 0 ? PER_ROUND * 10 : PER_ROUND;
      double start = now();
      run(at, n);
      seen[at][round] = (now() - start) / n;
    }
  for (int at = 0; at < CASES; at++) {
    qsort(seen[at], (size_t)rounds, sizeof(double), ascending);
    printf("{\"face\":\"c\",\"case\":\"%s\",\"hosts\":%d,\"min_ns\":%.2f,\"med_ns\":%.2f}\n",
           at ? "choose+complete" : "empty", hosts[at], seen[at][0], seen[at][rounds / 2]);
  }
  for (int at = 1; at < CASES; at++) nexthop_engine_free(engines[at]);
  return 0;
}
