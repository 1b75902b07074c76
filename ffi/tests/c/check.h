/* What the tests share. */
#ifndef CHECK_H
#define CHECK_H

#include "nexthop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      char why_[512] = "";                                                      \
      size_t n_ = 0;                                                            \
      if (nexthop_last_error(why_, sizeof why_ - 1, &n_) == NEXTHOP_OK) why_[n_] = 0; \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, why_); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

#define SAME(found, expected)                                                   \
  do {                                                                          \
    long long found_ = (long long)(found), expected_ = (long long)(expected);   \
    if (found_ != expected_)                                                    \
      fprintf(stderr, "%s is %lld, not %lld\n", #found, found_, expected_);     \
    CHECK(found_ == expected_);                                                 \
  } while (0)

static const char MESH[] =
    "clusters:\n"
    "  checkout:\n"
    "    hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80]\n"
    "    policy: round_robin\n"
    "    retry: {on: [5xx, connect-failure], times: 2, backoff: {base: 25ms, max: 250ms}}\n"
    "    timeout: 2s\n"
    "  narrow:\n"
    "    hosts: [10.0.1.1:80]\n"
    "    limits: {connections: 1, pending: 1, requests: 10}\n"
    "  ejecting: {hosts: [10.0.5.1:80, 10.0.5.2:80], outlier: {consecutive_5xx: 2, max_percent: 100}}\n"
    "  first: {hosts: [10.0.2.1:80]}\n"
    "  second: {hosts: [10.0.3.1:80]}\n"
    "  providers: {composite: [first, second]}\n"
    "  hashed: {hosts: [10.0.4.1:80, 10.0.4.2:80], policy: ring_hash, hash: [header: x-user]}\n"
    "routes:\n"
    "  - {host: shop.example, path: /pay, cluster: checkout}\n";

static inline nexthop_str text(const char *words) { return (nexthop_str){words, strlen(words)}; }

static inline nexthop_engine mesh_of(const char *words, size_t length) {
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine engine = {0};
  options.workers = 1;
  options.seed = 1;
  options.clock = NEXTHOP_CLOCK_MANUAL;
  document.text = (nexthop_str){words, length};
  SAME(nexthop_engine_new(&options, &document, 1, &engine), NEXTHOP_OK);
  CHECK(engine.id != 0);
  return engine;
}

static inline nexthop_engine mesh(void) { return mesh_of(MESH, sizeof MESH - 1); }

static inline uint32_t target(nexthop_engine engine, const char *name) {
  uint32_t number = 0;
  SAME(nexthop_resolve(engine, text(name), &number), NEXTHOP_OK);
  CHECK(number != 0);
  return number;
}

static inline nexthop_decision picked(nexthop_engine engine, const char *cluster) {
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  SAME(nexthop_pick(engine, target(engine, cluster), 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_GO);
  return d;
}

static inline nexthop_decision begun(nexthop_engine engine, const char *cluster) {
  nexthop_head head = NEXTHOP_HEAD_INIT;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  head.target = target(engine, cluster);
  SAME(nexthop_begin(engine, &head, NEXTHOP_NOW, &d), NEXTHOP_OK);
  return d;
}

static inline uint64_t live(nexthop_engine engine) {
  nexthop_engine_facts facts = NEXTHOP_ENGINE_FACTS_INIT;
  SAME(nexthop_engine_info(engine, &facts), NEXTHOP_OK);
  return facts.live_requests;
}

/* Whether the last error's sentence names this. */
static inline int says(const char *word) {
  char why[1024];
  size_t n = 0;
  SAME(nexthop_last_error(why, sizeof why - 1, &n), NEXTHOP_OK);
  why[n] = 0;
  return strstr(why, word) != NULL;
}

#endif
