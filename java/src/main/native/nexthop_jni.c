/* The Java face's glue over nexthop.h. Numbers cross as they are; everything else as one byte array per call,
 * packed by Packer.java and unpacked here, or the other way round with the host's byte order.
 * Decisions are written into a block of memory that Java owns and reads; see DecisionBuffer.java. */
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nexthop.h"

#define STACK 2048
#define NO_MEMORY (-100)

/* The second half of the last verdict, and why the last call that returns an array returned null. Both are read
 * by the same thread right after the call. */
static __thread uint32_t last_flags;
static __thread jint last_status;

static void out_of_memory(JNIEnv *env) {
  jclass class = (*env)->FindClass(env, "java/lang/OutOfMemoryError");
  if (class) (*env)->ThrowNew(env, class, "nexthop: no native memory");
}

/* An array's bytes, in `stack` when they fit. */
struct in { char *at; size_t len; char *owned; };

static int open_in(JNIEnv *env, jbyteArray array, char *stack, size_t cap, struct in *in) {
  in->owned = NULL;
  in->at = NULL;
  in->len = 0;
  if (!array) return 1;
  in->len = (size_t)(*env)->GetArrayLength(env, array);
  in->at = stack;
  if (in->len > cap) {
    in->at = in->owned = malloc(in->len);
    if (!in->owned) return out_of_memory(env), 0;
  }
  (*env)->GetByteArrayRegion(env, array, 0, (jsize)in->len, (jbyte *)in->at);
  return 1;
}

static void close_in(struct in *in) { free(in->owned); }

static nexthop_str str_of(const struct in *in) { return (nexthop_str){ in->at, in->len }; }

/* Reads what Packer.java wrote. `left` never underflows: a torn array reads as zeros. */
struct reader { const char *at; size_t left; };

static void take(struct reader *r, void *to, size_t n) {
  if (n > r->left) { memset(to, 0, n); r->left = 0; return; }
  memcpy(to, r->at, n);
  r->at += n;
  r->left -= n;
}

static int32_t take32(struct reader *r) { int32_t v; take(r, &v, sizeof v); return v; }
static uint64_t take64(struct reader *r) { uint64_t v; take(r, &v, sizeof v); return v; }
static uint8_t take8(struct reader *r) { uint8_t v; take(r, &v, sizeof v); return v; }

/* A text: length, or -1 for an absent one, then its bytes. */
static nexthop_str take_str(struct reader *r) {
  int32_t len = take32(r);
  nexthop_str s = { NULL, 0 };
  if (len < 0) return s;
  if ((size_t)len > r->left) len = (int32_t)r->left;
  s.ptr = r->at;
  s.len = (size_t)len;
  r->at += len;
  r->left -= (size_t)len;
  return s;
}

/* Grows as needed; what it holds goes to Java as one array. */
struct out { char *at; size_t len, cap; int failed; };

static void put(struct out *o, const void *from, size_t n) {
  if (o->failed) return;
  if (o->cap - o->len < n) {
    size_t cap = (o->cap + n) * 2;
    char *at = realloc(o->at, cap);
    if (!at) { o->failed = 1; return; }
    o->at = at;
    o->cap = cap;
  }
  if (n) memcpy(o->at + o->len, from, n);
  o->len += n;
}

static void put32(struct out *o, uint32_t v) { put(o, &v, sizeof v); }
static void put64(struct out *o, uint64_t v) { put(o, &v, sizeof v); }
static void put_str(struct out *o, nexthop_str s) { put32(o, (uint32_t)s.len); put(o, s.ptr, s.len); }

static jbyteArray bytes(JNIEnv *env, const char *at, size_t len) {
  if (len > INT32_MAX) return out_of_memory(env), NULL;
  jbyteArray array = (*env)->NewByteArray(env, (jsize)len);
  if (array) (*env)->SetByteArrayRegion(env, array, 0, (jsize)len, (const jbyte *)at);
  return array;
}

static jbyteArray close_out(JNIEnv *env, struct out *o) {
  jbyteArray array = NULL;
  if (o->failed) out_of_memory(env); else array = bytes(env, o->at, o->len);
  free(o->at);
  return array;
}

/* Calls `call`, which uses `buf`, `cap`, `&len`, again with more room while it says SHORT. */
#define WITH_ROOM(env, result, call)                                                   \
  char stack_[STACK], *buf = stack_, *owned_ = NULL;                                   \
  size_t cap = sizeof stack_, len = 0;                                                 \
  jbyteArray result = NULL;                                                            \
  nexthop_status rc;                                                                   \
  while ((rc = (call)) == NEXTHOP_SHORT) {                                             \
    free(owned_);                                                                      \
    cap = len + len / 8 + 64; /* what grows between two calls has room to grow */      \
    buf = owned_ = malloc(cap);                                                        \
    if (!owned_) { last_status = NO_MEMORY; out_of_memory(env); return NULL; }         \
  }                                                                                    \
  last_status = rc

/* Hot ------------------------------------------------------------------------------------------------------ */

/* See Verdict.java. */
static inline jlong packed(nexthop_verdict v) {
  if (v.code < 0) return v.code;
  uint64_t word = (uint64_t)(v.action & 3) | (uint64_t)v.reason << 2 | (uint64_t)(v.bits & 7) << 10 |
                  (uint64_t)v.status << 13 | (uint64_t)v.after_ms << 29;
  if (v.flags) { last_flags = v.flags; word |= UINT64_C(1) << 62; }
  return (jlong)word;
}

static inline nexthop_decision *block(jlong address) {
  nexthop_decision *d = (nexthop_decision *)(intptr_t)address;
  d->struct_size = sizeof *d;
  return d;
}

static inline jint kind(nexthop_status rc, const nexthop_decision *d) { return rc ? rc : d->kind; }

#define ENGINE(id) ((nexthop_engine){ (uint64_t)(id) })
#define REQUEST(id) ((nexthop_request){ (uint64_t)(id) })
#define ATTEMPT(id) ((nexthop_attempt){ (uint64_t)(id) })

static void nothing(JNIEnv *env, jclass c) { (void)env; (void)c; }

static jint pick(JNIEnv *env, jclass c, jlong engine, jint target, jint number, jlong address) {
  (void)env; (void)c;
  nexthop_decision *d = block(address);
  return kind(nexthop_pick(ENGINE(engine), (uint32_t)target, (uint32_t)number, (nexthop_str){ 0 }, NEXTHOP_NOW, d), d);
}

static jint pick_key(JNIEnv *env, jclass c, jlong engine, jint target, jint number, jbyteArray key, jlong address) {
  (void)c;
  char stack[STACK];
  struct in in;
  nexthop_decision *d = block(address);
  if (!open_in(env, key, stack, sizeof stack, &in)) return NO_MEMORY;
  nexthop_status rc = nexthop_pick(ENGINE(engine), (uint32_t)target, (uint32_t)number, str_of(&in), NEXTHOP_NOW, d);
  close_in(&in);
  return kind(rc, d);
}

static jint begin(JNIEnv *env, jclass c, jlong engine, jbyteArray packed_head, jlong address) {
  (void)c;
  char stack[STACK];
  struct in in;
  nexthop_decision *d = block(address);
  if (!open_in(env, packed_head, stack, sizeof stack, &in)) return NO_MEMORY;
  struct reader r = { in.at, in.len };
  nexthop_head h = { .struct_size = sizeof h };
  h.bits = (uint32_t)take32(&r);
  h.target = (uint32_t)take32(&r);
  h.number = (uint32_t)take32(&r);
  h.want = (uint32_t)take32(&r);
  h.priority = (int8_t)take8(&r);
  h.body = take8(&r);
  h.hash = take64(&r);
  h.timeout = take64(&r);
  h.user_data = take64(&r);
  h.method = take_str(&r);
  h.scheme = take_str(&r);
  h.authority = take_str(&r);
  h.path = take_str(&r);
  h.headers = take_str(&r);
  h.source = take_str(&r);
  h.local = take_str(&r);
  h.key = take_str(&r);
  h.tried = take_str(&r);
  h.override_host = take_str(&r);
  h.metadata = take_str(&r);
  h.filter_metadata = take_str(&r);
  nexthop_status rc = nexthop_begin(ENGINE(engine), &h, NEXTHOP_NOW, d);
  close_in(&in);
  return kind(rc, d);
}

static jint choose(JNIEnv *env, jclass c, jlong request, jlong address) {
  (void)env; (void)c;
  nexthop_decision *d = block(address);
  return kind(nexthop_choose(REQUEST(request), NEXTHOP_NOW, d), d);
}

static jlong complete(JNIEnv *env, jclass c, jlong attempt, jint status) {
  (void)env; (void)c;
  return packed(nexthop_complete_status(ATTEMPT(attempt), (uint32_t)status, NEXTHOP_NOW));
}

/* phase: 0 complete, 1 headers, 2 end */
static jlong report(JNIEnv *env, jclass c, jint phase, jlong attempt, jint status, jint failure, jint grpc_status,
                    jint bits, jlong latency, jlong body, jbyteArray headers, jbyteArray detail) {
  (void)c;
  char stack[STACK], text[256];
  struct in in, word;
  if (!open_in(env, headers, stack, sizeof stack, &in)) return NO_MEMORY;
  if (!open_in(env, detail, text, sizeof text, &word)) { close_in(&in); return NO_MEMORY; }
  nexthop_outcome o = { .struct_size = sizeof o };
  o.status = (uint16_t)status;
  o.failure = (uint8_t)failure;
  o.grpc_status = (int8_t)grpc_status;
  o.bits = (uint32_t)bits;
  o.latency = (uint64_t)latency;
  o.bytes = (uint64_t)body;
  o.headers = str_of(&in);
  o.detail = str_of(&word);
  nexthop_verdict v = phase == 0 ? nexthop_complete(ATTEMPT(attempt), &o, NEXTHOP_NOW)
                    : phase == 1 ? nexthop_headers(ATTEMPT(attempt), &o, NEXTHOP_NOW)
                                 : nexthop_end(ATTEMPT(attempt), &o, NEXTHOP_NOW);
  close_in(&in);
  close_in(&word);
  return packed(v);
}

static jlong end(JNIEnv *env, jclass c, jlong attempt) {
  (void)env; (void)c;
  return packed(nexthop_end(ATTEMPT(attempt), NULL, NEXTHOP_NOW));
}

static jlong fail(JNIEnv *env, jclass c, jlong attempt, jint failure) {
  (void)env; (void)c;
  return packed(nexthop_fail(ATTEMPT(attempt), (uint32_t)failure, NEXTHOP_NOW));
}

static jlong cancel(JNIEnv *env, jclass c, jlong attempt) {
  (void)env; (void)c;
  return packed(nexthop_cancel(ATTEMPT(attempt), NEXTHOP_NOW));
}

static jlong finish(JNIEnv *env, jclass c, jlong request, jint reason) {
  (void)env; (void)c;
  return packed(nexthop_finish(REQUEST(request), (uint32_t)reason, NEXTHOP_NOW));
}

static jint note(JNIEnv *env, jclass c, jlong id, jint what) {
  (void)env; (void)c;
  uint32_t bits = 0;
  nexthop_status rc = nexthop_note((uint64_t)id, (uint32_t)what, NEXTHOP_NOW, &bits);
  return rc ? rc : (jint)(bits & 0x7fff);
}

static jint get_last_flags(JNIEnv *env, jclass c) { (void)env; (void)c; return (jint)last_flags; }

static jint poll_ready(JNIEnv *env, jclass c, jlong engine, jlongArray out) {
  (void)c;
  nexthop_ready ready[64];
  jlong ids[64];
  size_t n = 0, cap = (size_t)(*env)->GetArrayLength(env, out);
  nexthop_status rc = nexthop_poll_ready(ENGINE(engine), ready, cap < 64 ? cap : 64, &n);
  if (rc) return rc == NEXTHOP_EMPTY ? 0 : rc;
  for (size_t i = 0; i < n; i++) ids[i] = (jlong)ready[i].request.id;
  (*env)->SetLongArrayRegion(env, out, 0, (jsize)n, ids);
  return (jint)n;
}

#include "nexthop_jni_cold.h"
