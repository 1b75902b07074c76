/* Bad arguments: pointers, sizes, text, numbers, header blocks. Each is an error that changes nothing. */
#include "check.h"

static void pointers(nexthop_engine engine) {
  nexthop_head head = NEXTHOP_HEAD_INIT;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine made;
  nexthop_decision d = picked(engine, "checkout");
  char room[8];
  size_t n;
  SAME(nexthop_begin(engine, NULL, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, NULL), NEXTHOP_INVALID);
  SAME(nexthop_choose(d.request, NEXTHOP_NOW, NULL), NEXTHOP_INVALID);
  SAME(nexthop_complete(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_headers(d.attempt, NULL, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
  SAME(nexthop_complete_next(d.attempt, &o, NEXTHOP_NOW, NULL).code, NEXTHOP_INVALID);
  SAME(nexthop_engine_new(NULL, NULL, 1, &made), NEXTHOP_INVALID);
  SAME(nexthop_engine_new(NULL, &document, 1, NULL), NEXTHOP_INVALID);
  SAME(nexthop_resolve(engine, text("checkout"), NULL), NEXTHOP_INVALID);
  SAME(nexthop_resolve(engine, (nexthop_str){NULL, 3}, (uint32_t *)&d.host), NEXTHOP_INVALID);
  CHECK(says("NULL"));
  SAME(nexthop_poll_ready(engine, NULL, 4, &n), NEXTHOP_INVALID);
  SAME(nexthop_poll_ready(engine, NULL, 0, &n), NEXTHOP_OK);
  SAME(nexthop_poll_ready(engine, (nexthop_ready *)room, 0, NULL), NEXTHOP_INVALID);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, (nexthop_str){0}, NULL, 8, &n), NEXTHOP_INVALID);
  SAME(nexthop_host(engine, d.host, d.host_version, NULL, room, sizeof room, &n), NEXTHOP_INVALID);
  head.target = target(engine, "checkout");
  head.path = (nexthop_str){NULL, 7};
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  head.path = (nexthop_str){room, SIZE_MAX};
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
}

/* A decision of another version of the header. */
typedef struct { nexthop_decision known; uint64_t later; } longer_decision;
typedef struct { nexthop_head known; uint64_t later; } longer_head;

static void sizes(nexthop_engine engine) {
  uint32_t wrong[] = {0, 1, 4, 7, 5000, UINT32_MAX};
  uint32_t cluster = target(engine, "checkout");
  nexthop_head head = NEXTHOP_HEAD_INIT;
  head.target = cluster;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    d.struct_size = wrong[i];
    SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
    CHECK(says("struct_size"));
    SAME(d.kind, 0);
    head.struct_size = wrong[i];
    d.struct_size = sizeof d;
    SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  }
  SAME(live(engine), 0);

  /* A shorter result: what lies beyond is not touched. */
  union { nexthop_decision d; unsigned char bytes[sizeof(nexthop_decision)]; } shorter;
  memset(&shorter, 0xAB, sizeof shorter);
  shorter.d.struct_size = 40;
  SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &shorter.d), NEXTHOP_OK);
  SAME(shorter.d.struct_size, 40);
  SAME(shorter.d.kind, NEXTHOP_GO);
  for (size_t i = 40; i < sizeof shorter; i++) SAME(shorter.bytes[i], 0xAB);
  SAME(nexthop_complete_status(shorter.d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);

  /* A longer one: likewise. */
  longer_decision longer;
  memset(&longer, 0, sizeof longer);
  longer.later = 0x1234;
  longer.known.struct_size = sizeof longer;
  SAME(nexthop_pick(engine, cluster, 1, (nexthop_str){0}, NEXTHOP_NOW, &longer.known), NEXTHOP_OK);
  SAME(longer.known.struct_size, sizeof longer);
  SAME(longer.later, 0x1234);
  SAME(nexthop_complete_status(longer.known.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);

  /* A shorter argument: the rest are defaults. */
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  head.struct_size = 16;
  head.path = (nexthop_str){NULL, 99}; /* beyond, hence not read */
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_GO);
  nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
  o.struct_size = 8;
  o.status = 200;
  o.latency = UINT64_MAX;
  SAME(nexthop_complete(d.attempt, &o, NEXTHOP_NOW).status, 200);

  /* A longer one: only with a tail of zeros. */
  longer_head more;
  memset(&more, 0, sizeof more);
  more.known = (nexthop_head)NEXTHOP_HEAD_INIT;
  more.known.struct_size = sizeof more;
  more.known.target = cluster;
  more.later = 1;
  SAME(nexthop_begin(engine, &more.known, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  more.later = 0;
  SAME(nexthop_begin(engine, &more.known, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);

  /* Arrays go by the size of their first struct. */
  struct { nexthop_host_op op; uint64_t later; } ops[2];
  memset(ops, 0, sizeof ops);
  for (int i = 0; i < 2; i++) {
    ops[i].op.struct_size = sizeof ops[0];
    ops[i].op.op = NEXTHOP_HOST_SET;
    ops[i].op.address = text(i ? "10.9.0.2:80" : "10.9.0.1:80");
  }
  SAME(nexthop_apply(engine, text("first"), &ops[0].op, 2, NULL), NEXTHOP_OK);
  ops[1].op.struct_size = sizeof(nexthop_host_op);
  SAME(nexthop_apply(engine, text("first"), &ops[0].op, 2, NULL), NEXTHOP_INVALID);
  SAME(live(engine), 0);
}

static void words(nexthop_engine engine) {
  uint32_t number = 7;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  SAME(nexthop_resolve(engine, (nexthop_str){"a\xff", 2}, &number), NEXTHOP_INVALID);
  CHECK(says("UTF-8"));
  SAME(nexthop_resolve(engine, text("chekout"), &number), NEXTHOP_NOT_FOUND);
  SAME(nexthop_resolve(engine, text(""), &number), NEXTHOP_NOT_FOUND);
  SAME(nexthop_resolve(engine, text("route:none"), &number), NEXTHOP_NOT_FOUND);
  SAME(number, 7);
  nexthop_head head = NEXTHOP_HEAD_INIT;
  head.target = NEXTHOP_NO_SUCH_TARGET;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_REFUSED);
  SAME(d.refusal, NEXTHOP_REFUSED_NO_CLUSTER);
  SAME(d.status, 503);
  head.target = target(engine, "checkout");
  head.path = (nexthop_str){"/\x80", 2};
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);

  size_t big = 61 * 1024;
  char *long_text = malloc(big);
  memset(long_text, 'a', big);
  head.path = (nexthop_str){long_text, big};
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_LIMIT);
  head.path = text("/");
  head.body = 200;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  head.body = 0;
  head.priority = 5;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  free(long_text);
  SAME(live(engine), 0);
}

static void numbers(nexthop_engine engine) {
  uint32_t bad[] = {1, 99, 1000, 65536 + 200, UINT32_MAX};
  uint32_t good[] = {0, 200, 204, 404, 999};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    nexthop_decision d = picked(engine, "checkout");
    char why[32];
    snprintf(why, sizeof why, "the status is %d;", (int)bad[i]);
    SAME(nexthop_complete_status(d.attempt, bad[i], NEXTHOP_NOW).code, NEXTHOP_INVALID);
    CHECK(says(why));
    SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  }
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    nexthop_decision d = picked(engine, "first");
    SAME(nexthop_complete_status(d.attempt, good[i], NEXTHOP_NOW).code, NEXTHOP_OK);
  }
  uint32_t failures[] = {0, 19, 255, 256, 257, UINT32_MAX};
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    nexthop_decision d = picked(engine, "first");
    char why[40];
    snprintf(why, sizeof why, "the failure is %u; there are 1 to", failures[i]);
    SAME(nexthop_fail(d.attempt, failures[i], NEXTHOP_NOW).code, NEXTHOP_INVALID);
    CHECK(says(why));
    SAME(nexthop_fail(d.attempt, NEXTHOP_REMOTE_RESET, NEXTHOP_NOW).status, 503);
  }
  nexthop_decision d = picked(engine, "first");
  SAME(nexthop_finish(d.request, 0, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_finish(d.request, 6, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  CHECK(says("the reason is 6; there are 1 to 5"));
  CHECK(nexthop_note(d.request.id, 77, NEXTHOP_NOW, NULL) == NEXTHOP_INVALID);
  CHECK(says("the note is 77"));
  SAME(nexthop_finish(d.request, NEXTHOP_FINISH_SHUTDOWN, NEXTHOP_NOW).code, NEXTHOP_OK);
  /* A composite has no sub-cluster 0, nor 3. */
  uint32_t providers = target(engine, "providers");
  SAME(nexthop_pick(engine, providers, 3, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_REFUSED);
  SAME(d.refusal, NEXTHOP_REFUSED_NO_HEALTHY_UPSTREAM);
  SAME(d.resource, NEXTHOP_RESOURCE_PAST_LAST_SUB_CLUSTER);
  SAME(nexthop_pick(engine, providers, 0, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_REFUSED);
  SAME(d.resource, NEXTHOP_RESOURCE_NO_ATTEMPT_NUMBER);
  uint32_t none[] = {1u << 31, UINT32_MAX};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    char why[64];
    snprintf(why, sizeof why, "the attempt number is %u; attempts count from 1 to 2147483647", none[i]);
    SAME(nexthop_pick(engine, providers, none[i], (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
    CHECK(says(why));
  }
  SAME(nexthop_pick(engine, 4711, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_NOT_FOUND);
  CHECK(says("no target 4711"));
  SAME(nexthop_pick(engine, 0, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  CHECK(says("target is zero"));
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine made;
  document.dialect = 9;
  SAME(nexthop_engine_new(&options, &document, 1, &made), NEXTHOP_INVALID);
  CHECK(says("the dialect is 9; there are 0 to 8"));
  nexthop_head head = NEXTHOP_HEAD_INIT;
  head.target = providers;
  head.number = (uint32_t)-2;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  CHECK(says("attempt number is 4294967294"));
  /* A refused head is told by its field. */
  head.number = 0;
  head.override_host = text("!");
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  CHECK(says("override_host"));
  head.override_host = (nexthop_str){0};
  head.body = 9;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  CHECK(says("body is 9"));
  SAME(nexthop_advance(engine, UINT64_MAX), NEXTHOP_INVALID);
  CHECK(says("292 years"));
  SAME(live(engine), 0);
}

static void blocks(nexthop_engine engine) {
  char names[1024], block[128];
  size_t n = 0;
  uint32_t set = 0, number = 0;
  SAME(nexthop_want(engine, 0, &set, names, sizeof names, &n), NEXTHOP_OK);
  CHECK(set > 1 && n > 0);
  int index = -1, at = 0;
  for (size_t i = 0; i < n; at++) {
    size_t end = i;
    while (end < n && names[end] != 0) end++;
    if (end - i == 6 && memcmp(names + i, "x-user", 6) == 0) index = at;
    i = end + 1;
  }
  CHECK(index >= 0);
  SAME(nexthop_want(engine, set, &number, names, sizeof names, &n), NEXTHOP_OK);
  SAME(number, set);
  SAME(nexthop_want(engine, 1, &number, names, sizeof names, &n), NEXTHOP_OK);
  SAME(n, 0);
  SAME(nexthop_want(engine, 60000, &number, names, sizeof names, &n), NEXTHOP_NOT_FOUND);
  SAME(nexthop_want(engine, set, &number, names, 1, &n), NEXTHOP_SHORT);
  CHECK(n > 1);

  size_t length = nexthop_pack(block, sizeof block, 0, (uint16_t)index, text("42"));
  SAME(length, 10);
  SAME(nexthop_pack(block, 12, length, 0, text("too long")), 26);
  SAME(nexthop_pack(NULL, 12, 0, 0, text("x")), 0);
  SAME(nexthop_pack(block, sizeof block, 0, 0, (nexthop_str){NULL, 1}), 0);
  SAME(nexthop_pack(block, sizeof block, SIZE_MAX - 3, 0, text("x")), 0);
  nexthop_head head = NEXTHOP_HEAD_INIT;
  head.target = target(engine, "hashed");
  head.want = set;
  head.headers = (nexthop_str){block, length};
  uint32_t host = 0;
  for (int i = 0; i < 20; i++) { /* the same user, the same host */
    nexthop_decision d = NEXTHOP_DECISION_INIT;
    SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
    SAME(d.kind, NEXTHOP_GO);
    if (i == 0) host = d.host;
    SAME(d.host, host);
    SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  }
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  for (size_t cut = 1; cut < length; cut++) {
    head.headers.len = cut;
    SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  }
  length = nexthop_pack(block, sizeof block, 0, 60000, text("42"));
  head.headers.len = length;
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_INVALID);
  nexthop_decision open = picked(engine, "first");
  nexthop_outcome o = NEXTHOP_OUTCOME_INIT;
  o.status = 503;
  o.headers = head.headers;
  SAME(nexthop_complete(open.attempt, &o, NEXTHOP_NOW).code, NEXTHOP_INVALID);
  SAME(nexthop_cancel(open.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(live(engine), 0);
}

static void buffers(nexthop_engine engine) {
  char room[65536], exact[65536];
  size_t n = 0, m = 0;
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, (nexthop_str){0}, NULL, 0, &n), NEXTHOP_SHORT);
  CHECK(n > 2 && n < sizeof room);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, (nexthop_str){0}, room, n - 1, &m), NEXTHOP_SHORT);
  SAME(m, n);
  CHECK(says("bytes"));
  room[n] = 'x';
  SAME(nexthop_text(engine, NEXTHOP_TEXT_STATS, (nexthop_str){0}, room, n, NULL), NEXTHOP_OK);
  SAME(room[0], '{');
  SAME(room[n], 'x');
  SAME(nexthop_text(engine, 999, (nexthop_str){0}, room, sizeof room, &n), NEXTHOP_NOT_FOUND);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_METRICS, (nexthop_str){0}, NULL, 0, &n), NEXTHOP_SHORT);
  CHECK(n > 2);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_EFFECTIVE, text("none"), room, sizeof room, &n), NEXTHOP_NOT_FOUND);
  SAME(nexthop_text(engine, NEXTHOP_TEXT_HOSTS, text("chekout"), room, sizeof room, &n), NEXTHOP_NOT_FOUND);
  CHECK(says("did you mean \"checkout\"?"));
  while (nexthop_poll_event(engine, room, sizeof room, &n) == NEXTHOP_OK) continue;
  SAME(nexthop_poll_event(engine, room, sizeof room, &n), NEXTHOP_EMPTY);
  CHECK(says("there is no event"));
  SAME(nexthop_last_error(NULL, 0, &n), NEXTHOP_SHORT);
  SAME(nexthop_last_error(exact, n, &m), NEXTHOP_OK); /* asking has not replaced it */
  SAME(m, n);
  CHECK(strcmp(nexthop_name(NEXTHOP_NAMES_FAILURE, NEXTHOP_REMOTE_RESET), "remote_reset") == 0);
  CHECK(strcmp(nexthop_name(NEXTHOP_NAMES_FLAG, 1), "UH") == 0);
  CHECK(strcmp(nexthop_name(NEXTHOP_NAMES_FAILURE, 4000000000u), "") == 0);
  CHECK(strcmp(nexthop_name(4000000000u, 1), "") == 0);
  CHECK(nexthop_name(NEXTHOP_NAMES_REASON, 1) == nexthop_name(NEXTHOP_NAMES_REASON, 1));

  nexthop_decision d = picked(engine, "checkout");
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  SAME(nexthop_host(engine, d.host, d.host_version, &host, NULL, 0, &n), NEXTHOP_SHORT);
  SAME(nexthop_host(engine, d.host, d.host_version, &host, room, n, &m), NEXTHOP_OK);
  CHECK(host.address.len > 0 && host.address.ptr >= room && host.address.ptr + host.address.len <= room + n);
  CHECK(memcmp(host.address.ptr, "10.0.0.", 7) == 0);
  CHECK(host.cluster_name.len == 8 && memcmp(host.cluster_name.ptr, "checkout", 8) == 0);
  SAME(host.port, 80);
  SAME(nexthop_host(engine, 4000000000u, 0, &host, room, sizeof room, &n), NEXTHOP_NOT_FOUND);
  SAME(nexthop_cancel(d.attempt, NEXTHOP_NOW).code, NEXTHOP_OK);
}

int main(void) {
  nexthop_engine engine = mesh();
  pointers(engine);
  sizes(engine);
  words(engine);
  numbers(engine);
  blocks(engine);
  buffers(engine);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  puts("arguments: ok");
  return 0;
}
