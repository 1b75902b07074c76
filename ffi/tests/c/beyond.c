/* Mechanisms beyond Envoy: a class by the outcome's detail, and a refusal that says when. */
#include "check.h"

static const char MODELS[] =
    "clusters:\n"
    "  first: {hosts: [10.0.0.1:80], nexthop: {cool_down: {}}}\n"
    "  second: {hosts: [10.0.0.2:80], nexthop: {cool_down: {}}}\n"
    "  models:\n"
    "    composite: [first, second]\n"
    "    retry:\n"
    "      on: 5xx\n"
    "      times: 3\n"
    "      backoff: {base: 1ms}\n"
    "      nexthop: {classes: [{when: {status: 429, body_code: quota}, class: quota, next: cluster}]}\n";

/* Answers 429 with these headers' only value. */
static nexthop_verdict limited(nexthop_engine engine, const nexthop_decision *d, const char *seconds, const char *code) {
  char names[512], block[64];
  size_t n = 0, at = 0;
  uint16_t index = 0;
  SAME(nexthop_want(engine, d->want_err, NULL, names, sizeof names, &n), NEXTHOP_OK);
  for (const char *name = names; strcmp(name, "retry-after") != 0; name += strlen(name) + 1, index++)
    CHECK(name < names + n);
  at = nexthop_pack(block, sizeof block, 0, index, text(seconds));
  CHECK(at > 0 && at <= sizeof block);
  nexthop_outcome outcome = NEXTHOP_OUTCOME_INIT;
  outcome.status = 429;
  outcome.headers = (nexthop_str){block, at};
  outcome.detail = text(code);
  return nexthop_complete(d->attempt, &outcome, NEXTHOP_NOW);
}

int main(void) {
  nexthop_engine engine = mesh_of(MODELS, sizeof MODELS - 1);
  nexthop_decision first = begun(engine, "models"), second = NEXTHOP_DECISION_INIT;
  SAME(limited(engine, &first, "9", "quota").action, NEXTHOP_RETRY);
  SAME(nexthop_advance(engine, 1000000), NEXTHOP_OK);
  SAME(nexthop_choose(first.request, NEXTHOP_NOW, &second), NEXTHOP_OK);
  SAME(second.kind, NEXTHOP_GO);
  CHECK(second.host != first.host);
  SAME(limited(engine, &second, "4.5", "").action, NEXTHOP_FORWARD);
  nexthop_decision refused = begun(engine, "models");
  SAME(refused.kind, NEXTHOP_REFUSED);
  SAME(refused.refusal, NEXTHOP_REFUSED_COOLING);
  SAME(refused.wait, 4500000000);
  SAME(live(engine), 0);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  puts("beyond: ok");
  return 0;
}
