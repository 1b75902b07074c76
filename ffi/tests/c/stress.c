/* Everything at once (tests/stress), with threads that wait for their turn. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS = 6, EACH = 500, REQUESTS = 6 };

static nexthop_engine engine;
static uint32_t clusters[2];
static atomic_int open_now[2], answered, over;

static unsigned draw(unsigned *word) { return (*word = *word * 1664525 + 1013904223) >> 8; }

/* One request, whatever becomes of it. */
static void request(unsigned *dice) {
  unsigned which = draw(dice) % 2;
  nexthop_head head = NEXTHOP_HEAD_INIT;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  head.target = clusters[which];
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
  for (int first = 1;; first = 0) {
    if (!first) SAME(nexthop_choose(d.request, NEXTHOP_NOW, &d), NEXTHOP_OK);
    if (d.kind == NEXTHOP_REFUSED) {
      SAME(d.refusal, NEXTHOP_REFUSED_OVERFLOW);
      return;
    }
    if (d.kind == NEXTHOP_WAIT) {
      if (draw(dice) % 5 == 0) { /* gone while it waits */
        nexthop_finish(d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW);
        return;
      }
      SAME(nexthop_wait(d.request, d.wait), NEXTHOP_OK);
      continue;
    }
    CHECK(atomic_fetch_add(&open_now[which], 1) < REQUESTS);
    sched_yield();
    atomic_fetch_sub(&open_now[which], 1);
    nexthop_outcome good = NEXTHOP_OUTCOME_INIT;
    nexthop_verdict v;
    good.status = 200;
    switch (draw(dice) % 8) {
    case 0:
    case 1: v = nexthop_complete_status(d.attempt, 503, NEXTHOP_NOW); break;
    case 2: v = nexthop_fail(d.attempt, NEXTHOP_CONNECT_FAILURE, NEXTHOP_NOW); break;
    case 3:
      v = nexthop_headers(d.attempt, &good, NEXTHOP_NOW);
      SAME(nexthop_end(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_OK);
      break;
    case 4: v = nexthop_cancel(d.attempt, NEXTHOP_NOW); break;
    default: v = nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW);
    }
    SAME(v.code, NEXTHOP_OK);
    if (v.action != NEXTHOP_RETRY) return;
  }
}

static void *work(void *me) {
  unsigned dice = (unsigned)(size_t)me * 7919 + 1;
  for (int i = 0; i < EACH; i++) {
    request(&dice);
    atomic_fetch_add(&answered, 1);
  }
  return NULL;
}

static void replace(const char *path) {
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.kind = NEXTHOP_DOCUMENT_PATH;
  document.text = text(path);
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
}

static void *updates(void *unused) {
  while (!atomic_load(&over)) {
    replace("tests/stress/second.yaml");
    replace("tests/stress/first.yaml");
  }
  return unused;
}

/* Every number of this name, of any cluster, is 0. */
static void zero(const char *stats, const char *name) {
  size_t found = 0, length = strlen(name);
  for (const char *at = stats; (at = strstr(at, name)) != NULL;) {
    at += length;
    if (*at != '"') continue; /* the beginning of another name */
    CHECK(strncmp(at, "\":0", 3) == 0);
    found++;
  }
  CHECK(found >= 2);
}

int main(void) {
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.kind = NEXTHOP_DOCUMENT_PATH;
  document.text = text("tests/stress/first.yaml");
  SAME(nexthop_engine_new(NULL, &document, 1, &engine), NEXTHOP_OK);
  clusters[0] = target(engine, "web");
  clusters[1] = target(engine, "narrow");
  pthread_t threads[THREADS], updater;
  SAME(pthread_create(&updater, NULL, updates, NULL), 0);
  for (size_t i = 0; i < THREADS; i++) SAME(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (size_t i = 0; i < THREADS; i++) SAME(pthread_join(threads[i], NULL), 0);
  atomic_store(&over, 1);
  SAME(pthread_join(updater, NULL), 0);
  SAME(atomic_load(&answered), THREADS * EACH);
  SAME(live(engine), 0);

  static char stats[1 << 16];
  size_t n = 0;
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, (nexthop_str){0}, stats, sizeof stats - 1, &n), NEXTHOP_OK);
  stats[n] = 0;
  const char *gauges[] = {"upstream_rq_active", "upstream_rq_pending_active", "default.rq_open", "default.rq_pending_open",
                          "default.rq_retry_open"};
  for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++) zero(stats, gauges[i]);
  for (int i = 0; i < 2; i++) { /* and the next one is sent at once */
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    nexthop_head head = NEXTHOP_HEAD_INIT;
    head.target = clusters[i];
    SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
    SAME(d.kind, NEXTHOP_GO);
    SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  }
  nexthop_engine_free(engine);
  puts("stress: ok");
  return 0;
}
