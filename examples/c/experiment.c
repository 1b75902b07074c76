/* The experiment of the demo in C: requests with and without retry against a half-failing backend, and a chain of three
 * providers. Envoy's own configuration file picks cluster, host and policy. Needs the lab (see examples/lab). Prints one
 * JSON line per experiment.  CONFIG=examples/envoy.yaml REQUESTS=400 ./experiment */
#define _POSIX_C_SOURCE 200809L
#define _DEFAULT_SOURCE
#include "http.h"
#include "nexthop.h"
#include <time.h>

enum { LAB = 18101, NUMBERS = 4, ADDRESSES = 8 };

struct tally {
  int success, attempts;
  double inside_ns; /* in nexthop, without HTTP and waiting */
  struct {
    char address[32];
    int count;
  } answered[NUMBERS][ADDRESSES]; /* by attempt number */
};

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void give_up(const char *what) {
  char why[512];
  size_t n = 0;
  if (nexthop_last_error(why, sizeof why, &n) != NEXTHOP_OK) n = 0;
  fprintf(stderr, "%s: %.*s\n", what, (int)n, why);
  exit(1);
}

static void count(struct tally *t, uint32_t number, nexthop_str address) {
  for (int i = 0; number < NUMBERS && i < ADDRESSES; i++) {
    if (t->answered[number][i].count == 0) snprintf(t->answered[number][i].address, 32, "%.*s", (int)address.len, address.ptr);
    if (strlen(t->answered[number][i].address) != address.len || memcmp(t->answered[number][i].address, address.ptr, address.len) != 0)
      continue;
    t->answered[number][i].count++;
    return;
  }
}

/* Choose, send, report, and again while the verdict says so. */
static void send_one(nexthop_engine mesh, const char *path, const char *header, struct tally *t) {
  nexthop_head head = NEXTHOP_HEAD_INIT;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  char text[512];
  size_t n;
  head.authority = (nexthop_str)NEXTHOP_STR("lab.example");
  head.path = (nexthop_str){path, strlen(path)};
  double begun = now_ns();
  nexthop_status rc = nexthop_begin(mesh, &head, NEXTHOP_NOW, &d);
  for (;;) {
    t->inside_ns += now_ns() - begun;
    if (rc != NEXTHOP_OK) give_up(path);
    if (d.kind == NEXTHOP_WAIT) {
      nexthop_wait(d.request, d.wait); /* back-off */
    } else if (d.kind != NEXTHOP_GO) {
      return; /* the local reply is d.status */
    } else {
      t->attempts++;
      if (nexthop_host(mesh, d.host, d.host_version, &host, text, sizeof text, &n) != NEXTHOP_OK) give_up("host");
      http_reply reply = http_send(host.port, "GET", path, header, d.try_timeout);
      uint32_t failure = reply.timed_out ? NEXTHOP_TIMEOUT : reply.connected ? NEXTHOP_CONNECTION_TERMINATION : NEXTHOP_CONNECT_FAILURE;
      begun = now_ns();
      nexthop_verdict v = reply.status > 0 ? nexthop_complete_status(d.attempt, (uint32_t)reply.status, NEXTHOP_NOW)
                                           : nexthop_fail(d.attempt, failure, NEXTHOP_NOW);
      t->inside_ns += now_ns() - begun;
      if (v.code != NEXTHOP_OK) give_up("report");
      if (v.action != NEXTHOP_RETRY) {
        t->success += v.status == 200;
        count(t, d.number, host.address);
        return;
      }
    }
    begun = now_ns();
    rc = nexthop_choose(d.request, NEXTHOP_NOW, &d);
  }
}

/* How many requests the backends really got: the sum of the numbers in {"18101": n, ...}. */
static long received(void) {
  long sum = 0;
  http_reply counts = http_send(LAB, "GET", "/__lab/counts", "", NEXTHOP_NEVER);
  for (char *at = counts.status == 200 ? counts.body : (char *)""; (at = strchr(at, ':')) != NULL;) sum += strtol(at + 1, &at, 10);
  return sum;
}

static void experiment(nexthop_engine mesh, const char *name, int requests) {
  struct tally t;
  char path[16], header[32] = "";
  memset(&t, 0, sizeof t);
  if (http_send(LAB, "POST", "/__lab/reset", "", NEXTHOP_NEVER).status < 0) {
    fprintf(stderr, "the lab does not listen on port %d\n", LAB);
    exit(1);
  }
  snprintf(path, sizeof path, "/%s", name);
  for (int i = 0; i < requests; i++) {
    if (strcmp(name, "chain") == 0) snprintf(header, sizeof header, "x-fail: %d\r\n", i % 3);
    send_one(mesh, path, header, &t);
    fprintf(stderr, "\rc  %s  %d/%d", name, i + 1, requests);
  }
  fputc('\n', stderr);
  printf("{\"lang\":\"c\",\"experiment\":\"%s\",\"requests\":%d,\"success\":%d,\"attempts\":%d,\"retries\":%d,\"backend_requests\":%ld,"
         "\"us_per_attempt\":%.3f,\"answered_by\":{", name, requests, t.success, t.attempts, t.attempts - requests, received(),
         t.inside_ns / 1000 / (t.attempts ? t.attempts : 1));
  for (int number = 1, more = 0; number < NUMBERS; number++) {
    if (t.answered[number][0].count == 0) continue;
    printf("%s\"%d\":{", more++ ? "," : "", number);
    for (int i = 0; i < ADDRESSES && t.answered[number][i].count; i++)
      printf("%s\"%s\":%d", i ? "," : "", t.answered[number][i].address, t.answered[number][i].count);
    putchar('}');
  }
  puts("}}");
  fflush(stdout);
}

int main(void) {
  const char *config = getenv("CONFIG"), *requests = getenv("REQUESTS");
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine mesh;
  if (config == NULL) config = "examples/envoy.yaml";
  document.kind = NEXTHOP_DOCUMENT_PATH;
  document.text = (nexthop_str){config, strlen(config)};
  if (nexthop_engine_new(NULL, &document, 1, &mesh) != NEXTHOP_OK) give_up("engine");
  int n = requests ? atoi(requests) : 400;
  experiment(mesh, "a", n);
  experiment(mesh, "b", n);
  experiment(mesh, "c", n);
  experiment(mesh, "chain", 60);
  return nexthop_engine_free(mesh) == NEXTHOP_OK ? 0 : 1;
}
