/* Handles used wrongly: twice, late, made up, of another engine, of a closed one. */
#include "check.h"

static void reports_and_releases(nexthop_engine engine) {
  nexthop_decision d = picked(engine, "checkout");
  nexthop_verdict v = nexthop_end(d.attempt, NULL, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_STATE); /* headers first */
  CHECK(says("no response headers were reported"));
  SAME(nexthop_answered(d.attempt), NEXTHOP_STATE);
  CHECK(says("report its headers before handing over the body"));
  v = nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_OK);
  SAME(v.action, NEXTHOP_FORWARD);
  SAME(v.status, 200);
  v = nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_ENDED);
  SAME(v.action, 0);
  CHECK(says("report"));
  SAME(nexthop_fail(d.attempt, NEXTHOP_REMOTE_RESET, NEXTHOP_NOW).code, NEXTHOP_ENDED);
  SAME(nexthop_cancel(d.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_cancel(d.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_end(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_finish(d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &d), NEXTHOP_ENDED);

  d = begun(engine, "checkout");
  SAME(d.kind, NEXTHOP_GO);
  nexthop_decision again = NEXTHOP_DECISION_INIT;
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &again), NEXTHOP_STATE); /* an attempt is open */
  nexthop_outcome ok = NEXTHOP_OUTCOME_INIT;
  ok.status = 200;
  v = nexthop_headers(d.attempt, &ok, NEXTHOP_NOW);
  SAME(v.code, NEXTHOP_OK);
  SAME(v.action, NEXTHOP_FORWARD);
  SAME(nexthop_headers(d.attempt, &ok, NEXTHOP_NOW).code, NEXTHOP_STATE);
  SAME(nexthop_complete(d.attempt, &ok, NEXTHOP_NOW).code, NEXTHOP_STATE);
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &again), NEXTHOP_STATE);
  SAME(nexthop_end(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_end(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(live(engine), 0);
}

static void zero_and_made_up(nexthop_engine engine) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
  uint64_t epoch;
  uint32_t number;
  SAME(nexthop_pick((nexthop_engine){0}, 1, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  SAME(nexthop_pick(engine, 0, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  SAME(nexthop_choose((nexthop_request){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  SAME(nexthop_complete((nexthop_attempt){0}, &o, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_complete_status((nexthop_attempt){0}, 200, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_cancel((nexthop_attempt){0}, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_finish((nexthop_request){0}, NEXTHOP_FINISH_IDLE, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_note(0, NEXTHOP_NOTE_SENT, NEXTHOP_NOW, NULL), NEXTHOP_INVALID);
  CHECK(nexthop_engine_free((nexthop_engine){0}) < 0);
  CHECK(nexthop_reload((nexthop_engine){0}, NULL, &epoch) < 0);
  CHECK(nexthop_resolve((nexthop_engine){0}, text("checkout"), &number) < 0);
  SAME(nexthop_now((nexthop_engine){0}), 0);
  CHECK(nexthop_poll_deadline((nexthop_engine){0}, NEXTHOP_NOW) == NEXTHOP_NEVER);

  /* Every number must be safe; most are no handle. */
  uint64_t word = 88172645463325252u, refused = 0;
  for (int i = 0; i < 200000; i++) {
    word ^= word << 13, word ^= word >> 7, word ^= word << 17;
    nexthop_verdict v = nexthop_complete_status((nexthop_attempt){word}, 200, NEXTHOP_NOW);
    refused += v.code != NEXTHOP_OK;
    CHECK(nexthop_choose((nexthop_request){word}, NEXTHOP_NOW, &d) != NEXTHOP_PANIC);
    (void)nexthop_finish((nexthop_request){word}, NEXTHOP_FINISH_SHUTDOWN, NEXTHOP_NOW);
    (void)nexthop_now((nexthop_engine){word});
  }
  SAME(refused, 200000);
  /* Next to a living one. */
  d = picked(engine, "checkout");
  for (int bit = 0; bit < 64; bit++) {
    nexthop_attempt near = {d.attempt.id ^ (1ull << bit)};
    CHECK(nexthop_complete_status(near, 200, NEXTHOP_NOW).code < 0);
  }
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(live(engine), 0);
}

/* A request's handle where an attempt's belongs, and the other way round. */
static void wrong_kinds(nexthop_engine engine) {
  nexthop_decision d = begun(engine, "checkout"), next = NEXTHOP_DECISION_INIT;
  nexthop_attempt request = {d.request.id};
  nexthop_request attempt = {d.attempt.id};
  nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
  o.status = 200;
  SAME(nexthop_choose(attempt, NEXTHOP_NOW, &next), NEXTHOP_INVALID);
  CHECK(says("is the handle of an attempt; give that of the request"));
  SAME(nexthop_finish(attempt, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_wait(attempt, 1), NEXTHOP_INVALID);
  SAME(nexthop_cancel(request, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  CHECK(says("is the handle of a request; give that of the attempt"));
  SAME(nexthop_complete_status(request, 200, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_complete(request, &o, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_headers(request, &o, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_fail(request, NEXTHOP_REMOTE_RESET, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_end(request, NULL, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_answered(request), NEXTHOP_INVALID);
  SAME(live(engine), 1); /* nothing has changed */
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &next), NEXTHOP_STATE);
  CHECK(says("attempt 1 is open"));
  SAME(nexthop_headers(d.attempt, &o, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &next), NEXTHOP_STATE);
  CHECK(says("the response of attempt 1 was forwarded"));
  SAME(nexthop_complete(d.attempt, &o, NEXTHOP_NOW).code, NEXTHOP_STATE);
  CHECK(says("use end"));
  SAME(nexthop_answered(d.attempt), NEXTHOP_OK);
  SAME(nexthop_end(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_answered(d.attempt), NEXTHOP_ENDED);
  SAME(nexthop_wait(d.request, 1), NEXTHOP_ENDED);
  CHECK(says("the request has ended"));
  SAME(nexthop_wait((nexthop_request){0}, 1), NEXTHOP_INVALID);
  CHECK(says("request handle is zero"));
  SAME(nexthop_cancel((nexthop_attempt){0}, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  CHECK(says("attempt handle is zero"));
  SAME(live(engine), 0);
}

static void two_engines(void) {
  nexthop_engine a = mesh(), b = mesh();
  CHECK(a.id != b.id);
  /* A handle carries its engine: the other one sees nothing of it. */
  nexthop_decision of_b = begun(b, "checkout");
  SAME(live(a), 0);
  SAME(live(b), 1);
  nexthop_ready ready[4];
  size_t n = 9;
  SAME(nexthop_poll_ready(a, ready, 4, &n), NEXTHOP_OK);
  SAME(n, 0);
  SAME(nexthop_engine_free(a), NEXTHOP_OK);
  SAME(nexthop_complete_status(of_b.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_engine_free(b), NEXTHOP_OK);
}

static void closed(void) {
  nexthop_engine engine = mesh();
  nexthop_decision d = begun(engine, "checkout");
  uint32_t cluster = target(engine, "checkout"), number;
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  SAME(nexthop_engine_free(engine), NEXTHOP_CLOSED);
  CHECK(says("closed"));
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_CLOSED);
  SAME(nexthop_cancel(d.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, &d), NEXTHOP_CLOSED);
  SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_CLOSED);
  SAME(nexthop_resolve(engine, text("checkout"), &number), NEXTHOP_CLOSED);
  SAME(nexthop_advance(engine, 1), NEXTHOP_CLOSED);
  /* Its place may be taken by a new one, which the old handle does not reach. */
  nexthop_engine next = mesh();
  CHECK(next.id != engine.id);
  SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_CLOSED);
  CHECK(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code < 0);
  SAME(live(next), 0);
  SAME(nexthop_engine_free(next), NEXTHOP_OK);
}

static void many_engines(void) {
  static nexthop_engine engines[1100];
  int made = 0;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = text("clusters: {a: {hosts: [10.0.0.1:80]}}");
  nexthop_status status = NEXTHOP_OK;
  while (made < 1100 && (status = nexthop_engine_new(NULL, &document, 1, &engines[made])) == NEXTHOP_OK) made++;
  SAME(status, NEXTHOP_LIMIT);
  SAME(made, 1023 - 1); /* one is main's */
  while (made > 0) SAME(nexthop_engine_free(engines[--made]), NEXTHOP_OK);
}

int main(void) {
  SAME(nexthop_abi_version(), NEXTHOP_ABI);
  CHECK(strlen(nexthop_version()) > 0);
  nexthop_engine engine = mesh();
  reports_and_releases(engine);
  zero_and_made_up(engine);
  wrong_kinds(engine);
  two_engines();
  closed();
  many_engines();
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  puts("handles: ok");
  return 0;
}
