/* Many threads on one attempt, on one engine, and a close in the middle. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 8, ROUNDS = 2000, CALLS = 20000 };

static nexthop_engine engine;
static nexthop_attempt attempt;
static pthread_barrier_t gate;
static atomic_int wins, losses, others;

/* Exactly one report of an attempt wins. */
static void *hammer(void *me) {
  for (int round = 0; round < ROUNDS; round++) {
    if ((size_t)me == 0) attempt = picked(engine, "first").attempt;
    pthread_barrier_wait(&gate);
    nexthop_verdict v = (size_t)me % 2 ? nexthop_complete_status(attempt, 200, NEXTHOP_NOW)
                                       : nexthop_fail(attempt, NEXTHOP_CONNECT_FAILURE, NEXTHOP_NOW);
    if (v.code == NEXTHOP_OK) atomic_fetch_add(&wins, 1);
    else if (v.code == NEXTHOP_ENDED) atomic_fetch_add(&losses, 1);
    else atomic_fetch_add(&others, 1);
    pthread_barrier_wait(&gate);
  }
  return NULL;
}

/* Everybody with requests of their own, reported in every way. */
static void *traffic(void *me) {
  uint32_t clusters[] = {target(engine, "checkout"), target(engine, "first"), target(engine, "providers")};
  unsigned word = (unsigned)(size_t)me * 7919 + 1;
  for (int i = 0; i < CALLS; i++) {
    word = word * 1664525 + 1013904223;
    nexthop_head head = NEXTHOP_HEAD_INIT;
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    head.target = clusters[word >> 8 & 1];
    SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
    if (d.kind != NEXTHOP_GO) { /* everything may be ejected, or a limit full */
      if (d.kind == NEXTHOP_WAIT) nexthop_finish(d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW);
      continue;
    }
    nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
    nexthop_verdict v = {0};
    switch (word >> 20 & 7) {
    case 0: v = nexthop_complete_status(d.attempt, 503, NEXTHOP_NOW); break;
    case 1: v = nexthop_fail(d.attempt, NEXTHOP_REMOTE_RESET, NEXTHOP_NOW); break;
    case 2: v = nexthop_cancel(d.attempt, NEXTHOP_NOW); break;
    case 3:
      o.status = 200;
      v = nexthop_headers(d.attempt, &o, NEXTHOP_NOW);
      SAME(v.code, NEXTHOP_OK);
      v = nexthop_end(d.attempt, NULL, NEXTHOP_NOW);
      break;
    case 4: v = nexthop_finish(d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW); break;
    default: v = nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW);
    }
    SAME(v.code, NEXTHOP_OK);
    if (v.action == NEXTHOP_RETRY) nexthop_finish(d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW);
  }
  return NULL;
}

static atomic_int closing;

static void *until_closed(void *unused) {
  (void)unused;
  uint32_t cluster = 0;
  nexthop_resolve(engine, text("first"), &cluster);
  for (;;) {
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    nexthop_status status = cluster ? nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &d) : NEXTHOP_CLOSED;
    if (status == NEXTHOP_CLOSED) {
      CHECK(atomic_load(&closing));
      return NULL;
    }
    SAME(status, NEXTHOP_OK);
    nexthop_verdict v = nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW);
    CHECK(v.code == NEXTHOP_OK || v.code == NEXTHOP_CLOSED || v.code == NEXTHOP_ENDED);
  }
}

static void all(void *(*body)(void *)) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) SAME(pthread_create(&threads[i], NULL, body, (void *)i), 0);
  for (size_t i = 0; i < THREADS; i++) SAME(pthread_join(threads[i], NULL), 0);
}

/* A waiter is woken by who frees the permit, not by time. */
static void *waits(void *request) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  nexthop_request id = *(nexthop_request *)request;
  do {
    SAME(nexthop_wait(id, NEXTHOP_NEVER), NEXTHOP_OK);
    SAME(nexthop_choose(id, NEXTHOP_NOW, &d), NEXTHOP_OK);
  } while (d.kind == NEXTHOP_WAIT);
  SAME(d.kind, NEXTHOP_GO);
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  return NULL;
}

int main(void) {
  engine = mesh();
  SAME(pthread_barrier_init(&gate, NULL, THREADS), 0);
  all(hammer);
  SAME(atomic_load(&wins), ROUNDS);
  SAME(atomic_load(&losses), ROUNDS * (THREADS - 1));
  SAME(atomic_load(&others), 0);
  SAME(live(engine), 0);
  all(traffic);
  SAME(live(engine), 0);

  nexthop_decision first = begun(engine, "narrow"), queued = begun(engine, "narrow");
  SAME(first.kind, NEXTHOP_GO);
  SAME(queued.kind, NEXTHOP_WAIT);
  SAME(queued.refusal, NEXTHOP_WAIT_QUEUE);
  pthread_t waiter;
  SAME(pthread_create(&waiter, NULL, waits, &queued.request), 0);
  nexthop_verdict v = nexthop_complete_status(first.attempt, 200, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_OK);
  SAME(pthread_join(waiter, NULL), 0);
  SAME(live(engine), 0);

  pthread_t threads[4];
  for (int i = 0; i < 4; i++) SAME(pthread_create(&threads[i], NULL, until_closed, NULL), 0);
  for (int i = 0; i < 1000; i++) SAME(nexthop_complete_status(picked(engine, "second").attempt, 200, NEXTHOP_NOW).code, 0);
  atomic_store(&closing, 1);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  for (int i = 0; i < 4; i++) SAME(pthread_join(threads[i], NULL), 0);
  puts("threads: ok");
  return 0;
}
