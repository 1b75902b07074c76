/* The experiment of the demo in C: requests with and without retry against a half-failing backend, and a chain of three
 * providers, over plain sockets with connections that stay open. Prints one JSON line per experiment.
 *   cc -std=c11 -D_POSIX_C_SOURCE=200809L -Iinclude examples/c/experiment.c target/release/libnexthop.a -lpthread -ldl -lm
 * CONFIG is the Envoy document, REQUESTS how many requests each experiment sends; the lab's backends must be running. */
#include "nexthop.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 65536, TRIES = 8, LAB = 18101 };
static int connections[PORTS]; /* by port; 0 = none */
static char reply[4096];       /* of the last exchange, its body is at `body` */
static char *body;

static nexthop_str str(const char *text) { return (nexthop_str){text, strlen(text)}; }

static void give_up(const char *what) {
  char why[512];
  size_t n = 0;
  if (nexthop_last_error(why, sizeof why - 1, &n) != NEXTHOP_OK) n = 0;
  fprintf(stderr, "%s: %.*s\n", what, (int)n, why);
  exit(1);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int connected(int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!connections[port]) {
    int made = socket(AF_INET, SOCK_STREAM, 0);
    if (made < 0) return -1;
    if (connect(made, (struct sockaddr *)&to, sizeof to)) {
      close(made);
      return -1;
    }
    connections[port] = made;
  }
  return connections[port];
}

/* Sends and reads one answer: its status, or minus the failure to report. */
static int http(int port, const char *method, const char *path, int fail) {
  char request[512];
  int to = connected(port);
  if (to < 0) return -NEXTHOP_CONNECT_FAILURE;
  int length = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nhost: lab.example\r\nx-fail: %d\r\ncontent-length: 0\r\n\r\n",
                        method, path, fail);
  size_t have = 0;
  if (send(to, request, (size_t)length, MSG_NOSIGNAL) == length) {
    for (ssize_t n; have < sizeof reply - 1 && (n = recv(to, reply + have, sizeof reply - 1 - have, 0)) > 0;) {
      have += (size_t)n;
      reply[have] = 0;
      if (!(body = strstr(reply, "\r\n\r\n"))) continue;
      body += 4;
      char *announced = reply;
      while (announced < body && strncasecmp(announced, "content-length:", 15)) announced = strstr(announced, "\r\n") + 2;
      size_t expected = announced < body ? strtoul(announced + 15, NULL, 10) : 0;
      if ((size_t)(reply + have - body) >= expected) return atoi(reply + 9);
    }
  }
  close(to);
  connections[port] = 0;
  return -NEXTHOP_CONNECTION_TERMINATION;
}

/* Who answered at which attempt. */
static struct { int port, count; } answered[TRIES][16];

static void note(unsigned number, int port) {
  if (number < 1 || number > TRIES) return;
  for (int i = 0; i < 16; i++) {
    if (answered[number - 1][i].count && answered[number - 1][i].port != port) continue;
    answered[number - 1][i].port = port;
    answered[number - 1][i].count++;
    return;
  }
}

static void print_answered(void) {
  const char *comma = "";
  for (int number = 0; number < TRIES; number++) {
    if (!answered[number][0].count) continue;
    printf("%s\"%d\":{", comma, number + 1);
    for (int i = 0; i < 16 && answered[number][i].count; i++)
      printf("%s\"127.0.0.1:%d\":%d", i ? "," : "", answered[number][i].port, answered[number][i].count);
    printf("}");
    comma = ",";
  }
}

static void experiment(nexthop_engine mesh, const char *name, int requests) {
  char path[32], text[512];
  int success = 0, attempts = 0;
  double spent = 0;
  snprintf(path, sizeof path, "/%s", name);
  memset(answered, 0, sizeof answered);
  if (http(LAB, "POST", "/__lab/reset", 0) != 200) give_up("the lab does not answer; start examples/lab");
  for (int i = 0; i < requests; i++) {
    nexthop_head head = NEXTHOP_HEAD_INIT;
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    head.authority = str("lab.example");
    head.path = str(path);
    int begun = 0;
    for (;;) {
      nexthop_host_info host = {.struct_size = sizeof host};
      size_t n;
      double since = now();
      nexthop_status rc = begun++ ? nexthop_choose(d.request, NEXTHOP_NOW, &d) : nexthop_begin(mesh, &head, NEXTHOP_NOW, &d);
      if (rc == NEXTHOP_OK && d.kind == NEXTHOP_GO) rc = nexthop_host(mesh, d.host, d.host_version, &host, text, sizeof text, &n);
      spent += now() - since;
      if (rc != NEXTHOP_OK) give_up("choose");
      if (d.kind == NEXTHOP_WAIT) {
        nexthop_wait(d.request, d.wait); /* the back-off */
        continue;
      }
      if (d.kind != NEXTHOP_GO) break; /* refused: d.status is the answer */
      int status = http(host.port, "GET", path, i % 3);
      since = now();
      nexthop_verdict v = status > 0 ? nexthop_complete_status(d.attempt, (uint32_t)status, NEXTHOP_NOW)
                                     : nexthop_fail(d.attempt, (uint32_t)-status, NEXTHOP_NOW);
      spent += now() - since;
      attempts++;
      if (v.code) give_up("report");
      if (v.action == NEXTHOP_RETRY) continue;
      success += v.status == 200;
      note(d.number, host.port);
      break;
    }
    if (i % 20 == 19 || i + 1 == requests) fprintf(stderr, "\rc  %s  %d/%d   ", name, i + 1, requests);
  }
  long backend = 0;
  if (http(LAB, "GET", "/__lab/counts", 0) != 200) give_up("the lab does not count");
  for (char *at = body; (at = strstr(at, "\":")); at += 2) backend += strtol(at + 2, NULL, 10);
  printf("{\"lang\":\"c\",\"experiment\":\"%s\",\"requests\":%d,\"success\":%d,\"attempts\":%d,\"retries\":%d,"
         "\"backend_requests\":%ld,\"us_per_attempt\":%.3f,\"answered_by\":{",
         name, requests, success, attempts, attempts - requests, backend, spent / (attempts ? attempts : 1));
  print_answered();
  printf("}}\n");
  fflush(stdout);
}

int main(void) {
  const char *config = getenv("CONFIG"), *requests = getenv("REQUESTS");
  int n = requests ? atoi(requests) : 400;
  nexthop_document file = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine mesh;
  file.kind = NEXTHOP_DOCUMENT_PATH;
  file.text = str(config ? config : "examples/envoy.yaml");
  if (nexthop_engine_new(NULL, &file, 1, &mesh) != NEXTHOP_OK) give_up("engine");
  experiment(mesh, "a", n);
  experiment(mesh, "b", n);
  experiment(mesh, "c", n);
  experiment(mesh, "chain", 60);
  return nexthop_engine_free(mesh) != NEXTHOP_OK;
}
