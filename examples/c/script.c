/* (a) A script with a retry loop of its own: it passes the attempt number. Attempt 2 of a composite cluster goes to its
 * second member. */
#include "mesh.h"

int main(void) {
  nexthop_engine mesh = open_mesh();
  uint32_t providers = cluster(mesh, "providers");
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  char text[512];
  size_t n;
  for (uint32_t number = 1; number <= 3; number++) {
    if (nexthop_pick(mesh, providers, number, (nexthop_str){0}, NEXTHOP_NOW, &d) != NEXTHOP_OK) give_up("pick");
    if (d.kind != NEXTHOP_GO) {
      printf("attempt %u: %u %s\n", number, d.status, nexthop_name(NEXTHOP_NAMES_REFUSAL, d.refusal));
      continue;
    }
    if (nexthop_host(mesh, d.host, d.host_version, &host, text, sizeof text, &n) != NEXTHOP_OK) give_up("host");
    printf("attempt %u: %.*s\n", number, (int)host.address.len, host.address.ptr);
    if (nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code != NEXTHOP_OK) give_up("report");
  }
  return nexthop_engine_free(mesh) == NEXTHOP_OK ? 0 : 1;
}
