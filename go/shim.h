/* What Go calls instead of a struct of pointers: cgo lets no Go pointer lie in Go memory that is passed down. */
#ifndef NEXTHOP_GO_SHIM_H
#define NEXTHOP_GO_SHIM_H

#include "nexthop.h"
#include <string.h>

/* Texts of a head, one behind the other in one buffer, in this order. */
enum {
  GO_METHOD, GO_SCHEME, GO_AUTHORITY, GO_PATH, GO_HEADERS, GO_SOURCE, GO_LOCAL, GO_KEY, GO_TRIED, GO_OVERRIDE,
  GO_METADATA, GO_FILTER_METADATA, GO_TEXTS
};
#define GO_ABSENT UINT32_MAX

typedef struct {
  uint32_t bits, target, number, want;
  int32_t priority;
  uint32_t body;
  uint64_t hash, timeout, user_data;
  uint32_t len[GO_TEXTS];
} nexthop_go_head;

static inline nexthop_status nexthop_go_begin(uint64_t engine, const nexthop_go_head *from, const char *text,
                                              nexthop_decision *out) {
  nexthop_head head;
  nexthop_str *texts = &head.method;
  memset(&head, 0, sizeof head);
  head.struct_size = sizeof head;
  head.bits = from->bits;
  head.target = from->target;
  head.number = from->number;
  head.want = from->want;
  head.priority = (int8_t)from->priority;
  head.body = (uint8_t)from->body;
  head.hash = from->hash;
  head.timeout = from->timeout;
  head.user_data = from->user_data;
  for (int i = 0; i < GO_TEXTS; i++) {
    if (from->len[i] == GO_ABSENT || (from->len[i] == 0 && i != GO_KEY)) continue;
    texts[i].ptr = text;
    texts[i].len = from->len[i];
    text += from->len[i];
  }
  return nexthop_begin((nexthop_engine){engine}, &head, NEXTHOP_NOW, out);
}

static inline nexthop_status nexthop_go_pick(uint64_t engine, uint32_t target, uint32_t number, nexthop_decision *out) {
  return nexthop_pick((nexthop_engine){engine}, target, number, (nexthop_str){0}, NEXTHOP_NOW, out);
}

static inline nexthop_status nexthop_go_choose(uint64_t request, nexthop_decision *out) {
  return nexthop_choose((nexthop_request){request}, NEXTHOP_NOW, out);
}

static inline nexthop_verdict nexthop_go_complete_status(uint64_t attempt, uint32_t status) {
  return nexthop_complete_status((nexthop_attempt){attempt}, status, NEXTHOP_NOW);
}

static inline nexthop_verdict nexthop_go_fail(uint64_t attempt, uint32_t failure) {
  return nexthop_fail((nexthop_attempt){attempt}, failure, NEXTHOP_NOW);
}

static inline nexthop_verdict nexthop_go_cancel(uint64_t attempt) {
  return nexthop_cancel((nexthop_attempt){attempt}, NEXTHOP_NOW);
}

static inline nexthop_verdict nexthop_go_end(uint64_t attempt) {
  return nexthop_end((nexthop_attempt){attempt}, NULL, NEXTHOP_NOW);
}

static inline nexthop_verdict nexthop_go_finish(uint64_t request, uint32_t reason) {
  return nexthop_finish((nexthop_request){request}, reason, NEXTHOP_NOW);
}

enum { GO_COMPLETE, GO_ON_HEADERS, GO_END, GO_FAIL };

/* A report with an outcome. `text` holds the header block and behind it the detail. */
static inline nexthop_verdict nexthop_go_report(int how, uint64_t attempt, uint32_t status, uint32_t failure,
                                                int32_t grpc_status, uint32_t bits, uint64_t latency, uint64_t bytes,
                                                const char *text, uint32_t block, uint32_t detail) {
  nexthop_attempt id = {attempt};
  nexthop_outcome outcome = NEXTHOP_OUTCOME_INIT;
  /* Out of range is out of range after narrowing too. */
  outcome.status = status > UINT16_MAX ? UINT16_MAX : (uint16_t)status;
  outcome.failure = failure > UINT8_MAX ? UINT8_MAX : (uint8_t)failure;
  outcome.grpc_status = (int8_t)(grpc_status < -1 || grpc_status > INT8_MAX ? INT8_MAX : grpc_status);
  outcome.bits = bits;
  outcome.latency = latency;
  outcome.bytes = bytes;
  if (block) outcome.headers = (nexthop_str){text, block};
  if (detail) outcome.detail = (nexthop_str){text + block, detail};
  switch (how) {
  case GO_ON_HEADERS: return nexthop_headers(id, &outcome, NEXTHOP_NOW);
  case GO_END: return nexthop_end(id, &outcome, NEXTHOP_NOW);
  default: return nexthop_complete(id, &outcome, NEXTHOP_NOW);
  }
}

#endif
