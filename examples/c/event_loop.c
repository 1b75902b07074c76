/* (c) An event loop of your own: nothing blocks. Whoever gets the bit NEXTHOP_WAKE wakes those whose turn it is. */
#include "mesh.h"

struct call {
  const char *name;
  nexthop_request request;
  nexthop_attempt attempt;
};

static void next(nexthop_engine mesh, struct call *c);

/* After every call that returns bits. */
static void wake(nexthop_engine mesh, unsigned bits) {
  nexthop_ready ready[16];
  size_t n;
  if (!(bits & NEXTHOP_WAKE)) return;
  do {
    if (nexthop_poll_ready(mesh, ready, 16, &n) != NEXTHOP_OK) give_up("ready");
    for (size_t i = 0; i < n; i++) next(mesh, (struct call *)(uintptr_t)ready[i].user_data); /* or post it to its loop */
  } while (n == 16);
}

static void act(struct call *c, const nexthop_decision *d) {
  c->request = d->request;
  if (d->kind == NEXTHOP_GO) {
    c->attempt = d->attempt;
    printf("%s: send attempt %u\n", c->name, d->number); /* and a timer for d->wait unless NEXTHOP_NEVER: hedging */
  } else if (d->kind == NEXTHOP_WAIT) {
    printf("%s: wait for %s\n", c->name, nexthop_name(NEXTHOP_NAMES_WAIT, d->refusal)); /* timer for d->wait */
  } else {
    printf("%s: answer %u %s\n", c->name, d->status, nexthop_name(NEXTHOP_NAMES_REFUSAL, d->refusal));
  }
}

/* On wake, on timer, after a retry. */
static void next(nexthop_engine mesh, struct call *c) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  if (nexthop_choose(c->request, NEXTHOP_NOW, &d) != NEXTHOP_OK) give_up(c->name);
  act(c, &d);
  wake(mesh, d.bits);
}

static void start(nexthop_engine mesh, uint32_t target, struct call *c) {
  nexthop_head head = NEXTHOP_HEAD_INIT;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  head.target = target;
  head.user_data = (uintptr_t)c;
  if (nexthop_begin(mesh, &head, NEXTHOP_NOW, &d) != NEXTHOP_OK) give_up(c->name);
  act(c, &d);
  wake(mesh, d.bits);
}

/* The response is there. */
static void answered(nexthop_engine mesh, struct call *c, uint32_t status) {
  nexthop_verdict v = nexthop_complete_status(c->attempt, status, NEXTHOP_NOW);
  if (v.code != NEXTHOP_OK) give_up(c->name);
  printf("%s: answer %u\n", c->name, v.status);
  wake(mesh, v.bits);
}

int main(void) {
  nexthop_engine mesh = open_mesh();
  uint32_t narrow = cluster(mesh, "narrow"); /* one connection, two may wait */
  struct call calls[] = {{.name = "one"}, {.name = "two"}, {.name = "three"}, {.name = "four"}};
  for (int i = 0; i < 4; i++) start(mesh, narrow, &calls[i]);
  /* "two" gives up; its place in the queue goes. */
  printf("two: client gone\n");
  wake(mesh, nexthop_finish(calls[1].request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW).bits);
  answered(mesh, &calls[0], 200);
  answered(mesh, &calls[2], 200);
  return nexthop_engine_free(mesh) == NEXTHOP_OK ? 0 : 1;
}
