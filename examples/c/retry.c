/* (b) The full loop around a blocking HTTP client: choose, send, report, and again while the verdict says so. */
#include "mesh.h"

/* Stands for your client: the first two hosts fail. Returns a status, or -1 when the connection failed. */
static long http_get(const nexthop_host_info *host, const char *path, uint64_t timeout_ns) {
  long status = memcmp(host->address.ptr, "10.0.0.1", 8) == 0 ? -1 : memcmp(host->address.ptr, "10.0.0.2", 8) == 0 ? 503 : 200;
  printf("GET %s from %.*s within %llu ms: %ld\n", path, (int)host->address.len, host->address.ptr,
         (unsigned long long)(timeout_ns / 1000000), status);
  return status;
}

static int get(nexthop_engine mesh, const nexthop_head *head) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  char text[512];
  size_t n;
  nexthop_status rc = nexthop_begin(mesh, head, NEXTHOP_NOW, &d);
  for (; rc == NEXTHOP_OK; rc = nexthop_choose(d.request, NEXTHOP_NOW, &d)) {
    if (d.kind == NEXTHOP_WAIT) { /* back-off, or a queue */
      printf("wait for %s\n", nexthop_name(NEXTHOP_NAMES_WAIT, d.refusal));
      nexthop_advance(mesh, d.wait); /* on a real clock: nexthop_wait(d.request, d.wait) */
      continue;
    }
    if (d.kind != NEXTHOP_GO) return d.status; /* 503 UH, 503 UO, 504 UT, ... */
    if (nexthop_host(mesh, d.host, d.host_version, &host, text, sizeof text, &n) != NEXTHOP_OK) break;
    long status = http_get(&host, "/pay", d.try_timeout);
    nexthop_verdict v = status > 0 ? nexthop_complete_status(d.attempt, (uint32_t)status, NEXTHOP_NOW)
                                   : nexthop_fail(d.attempt, NEXTHOP_CONNECT_FAILURE, NEXTHOP_NOW);
    if (v.action != NEXTHOP_RETRY) return v.status;
  }
  give_up("get");
  return -1;
}

int main(void) {
  nexthop_engine mesh = open_mesh();
  nexthop_head head = NEXTHOP_HEAD_INIT;
  head.target = cluster(mesh, "checkout");
  head.path = (nexthop_str)NEXTHOP_STR("/pay");
  printf("answer: %d\n", get(mesh, &head));
  return nexthop_engine_free(mesh) == NEXTHOP_OK ? 0 : 1;
}
