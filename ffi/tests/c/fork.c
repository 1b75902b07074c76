/* fork in the middle of traffic: the child starts clean, the parent goes on. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static nexthop_engine engine;
static atomic_int stop;

static void *traffic(void *unused) {
  (void)unused;
  uint64_t calls = 0;
  uint32_t checkout = target(engine, "checkout"), ejecting = target(engine, "ejecting");
  char event[512];
  size_t n;
  while (!atomic_load(&stop)) {
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    uint32_t cluster = calls % 2 ? checkout : ejecting;
    SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_OK);
    if (d.kind == NEXTHOP_GO) SAME(nexthop_complete_status(d.attempt, calls % 3 ? 200 : 503, NEXTHOP_NOW).code, NEXTHOP_OK);
    if (++calls % 64 == 0) nexthop_poll_event(engine, event, sizeof event, &n);
  }
  return NULL;
}

/* Documents and hosts change all the time, and somebody reads what is known of them. */
static void *changes(void *unused) {
  (void)unused;
  static char out[1 << 16];
  size_t n;
  for (int i = 0; !atomic_load(&stop); i++) {
    nexthop_document document = NEXTHOP_DOCUMENT_INIT;
    document.text = text(MESH);
    if (i % 8 == 0) SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
    nexthop_host_op op = NEXTHOP_HOST_OP_INIT;
    op.address = text("127.0.0.9:9");
    SAME(nexthop_apply(engine, text("first"), &op, 1, NULL), NEXTHOP_OK);
    nexthop_text(engine, 4, (nexthop_str){0}, out, sizeof out, &n);
    nexthop_text(engine, 6, (nexthop_str){0}, out, sizeof out, &n);
  }
  return NULL;
}

static void child(nexthop_decision open, nexthop_decision queued) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  SAME(live(engine), 0);
  SAME(nexthop_complete_status(open.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_ENDED);
  SAME(nexthop_cancel(open.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_choose(queued.request, NEXTHOP_NOW, &d), NEXTHOP_ENDED);
  /* The permit that the parent's attempt holds is free here. */
  d = begun(engine, "narrow");
  SAME(d.kind, NEXTHOP_GO);
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  for (int i = 0; i < 1000; i++) SAME(nexthop_complete_status(picked(engine, "checkout").attempt, 200, NEXTHOP_NOW).code, 0);
  char event[512];
  size_t n;
  SAME(nexthop_poll_event(engine, event, sizeof event, &n), NEXTHOP_EMPTY);
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = text(MESH);
  nexthop_host_op op = NEXTHOP_HOST_OP_INIT;
  op.address = text("127.0.0.8:8");
  SAME(nexthop_apply(engine, text("first"), &op, 1, NULL), NEXTHOP_OK);
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
  static char out[1 << 16];
  SAME(nexthop_text(engine, 4, (nexthop_str){0}, out, sizeof out, &n), NEXTHOP_OK);
  nexthop_engine other = mesh();
  SAME(nexthop_complete_status(picked(other, "first").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_engine_free(other), NEXTHOP_OK);
  SAME(live(engine), 0);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

/* One shared worker, or one per thread: different locks are held when the fork comes. */
static void run(uint32_t workers) {
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  options.workers = workers;
  options.clock = NEXTHOP_CLOCK_MANUAL;
  document.text = text(MESH);
  SAME(nexthop_engine_new(&options, &document, 1, &engine), NEXTHOP_OK);
  atomic_store(&stop, 0);
  pthread_t threads[4];
  for (int i = 0; i < 3; i++) SAME(pthread_create(&threads[i], NULL, traffic, NULL), 0);
  SAME(pthread_create(&threads[3], NULL, changes, NULL), 0);
  nexthop_decision open = begun(engine, "narrow"), queued = begun(engine, "narrow");
  SAME(open.kind, NEXTHOP_GO);
  SAME(queued.kind, NEXTHOP_WAIT);
  for (int i = 0; i < 20; i++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      alarm(60);
      child(open, queued);
      _exit(0);
    }
    int status = 0;
    SAME(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    SAME(WEXITSTATUS(status), 0);
  }
  /* Nothing of that was seen here. */
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  SAME(nexthop_choose(queued.request, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_WAIT);
  nexthop_verdict v = nexthop_complete_status(open.attempt, 200, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_OK);
  CHECK(v.bits & NEXTHOP_WAKE);
  SAME(nexthop_choose(queued.request, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_GO);
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  atomic_store(&stop, 1);
  for (int i = 0; i < 4; i++) SAME(pthread_join(threads[i], NULL), 0);
  SAME(live(engine), 0);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

int main(void) {
  alarm(120); /* a deadlock is a failure, not a hang */
  run(1);
  run(0);
  puts("fork: ok");
  return 0;
}
