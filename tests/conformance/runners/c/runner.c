/* The player over the C interface: script on standard input, trace on standard output. */
#include "nexthop.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NONE UINT64_MAX
#define GROW(list, n) ((list) = realloc((list), ((n) + 1) * sizeof *(list)))

typedef struct { char **word; size_t n; } words;
typedef struct { uint64_t after; words what; } act;
typedef struct { char *name; act *acts; size_t n; } plan;
typedef struct { char *host; uint32_t attempt; char *prefix; bool cycle; words plans; size_t used; } rule;
typedef struct { size_t open, *waiting, n; uint64_t gap; bool clients; } batch;
typedef struct { words head; const char *path; size_t batch, *tries, n; uint64_t asking; nexthop_decision d; bool queued, done; } call;
typedef struct { size_t call; nexthop_attempt id; uint32_t number, want_ok, want_err; bool open, answered, hedges; uint64_t sent, last, idle; } try_;
typedef enum { BEGIN, ASK, CONNECTED, ACT, LIMIT, IDLE } kind;
typedef struct { uint64_t time, sequence; kind kind; size_t on; uint64_t detail; words what; } event;

static nexthop_engine engine;
static words docs;
static plan *plans; static size_t n_plans;
static rule *rules; static size_t n_rules;
static call *calls; static size_t n_calls;
static try_ *tries; static size_t n_tries;
static batch *batches; static size_t n_batches;
static words *heads; static size_t n_heads;
static size_t *queue, n_queue;
static event *events; static size_t n_events; /* a heap, earliest first */
static uint64_t now, sequence, connect_after;
static char *room; static size_t room_size; /* what the library writes into */

/* Text in and out ------------------------------------------------------------------------------------------ */

static words read_line(char *at) {
  words line = {0};
  for (at++; *at == '"' || *at == ',';) {
    if (*at++ == ',') continue;
    char *out = at;
    GROW(line.word, line.n);
    line.word[line.n++] = out;
    for (; *at != '"'; at++) {
      if (*at != '\\') { *out++ = *at; continue; }
      switch (*++at) {
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        case 'u': { char hex[5] = {0}; memcpy(hex, at + 1, 4); *out++ = (char)strtoul(hex, NULL, 16); at += 4; break; }
        default: *out++ = *at;
      }
    }
    *out = 0;
    at++;
  }
  return line;
}

static bool first_word;
static void put(nexthop_str text) {
  fputs(first_word ? "\"" : ",\"", stdout);
  first_word = false;
  for (size_t i = 0; i < text.len; i++) {
    unsigned char c = (unsigned char)text.ptr[i];
    if (c == '"' || c == '\\') printf("\\%c", c);
    else if (c == '\n') fputs("\\n", stdout);
    else if (c == '\r') fputs("\\r", stdout);
    else if (c == '\t') fputs("\\t", stdout);
    else if (c < 0x20) printf("\\u%04x", c);
    else putchar(c);
  }
  putchar('"');
}
static nexthop_str str(const char *text) { return (nexthop_str){text, strlen(text)}; }
static void word(const char *text) { put(str(text)); }
static void number(uint64_t n) { char text[24]; snprintf(text, sizeof text, "%" PRIu64, n); word(text); }
static void limit(uint64_t n) { if (n == NONE) word("-"); else number(n); }
static void begin_line(const char *name) { putchar('['); first_word = true; word(name); }
static void end_line(void) { fputs("]\n", stdout); }

static const char *flags(uint32_t bits) {
  static char text[200];
  text[0] = 0;
  for (uint32_t bit = 0; bit < 32; bit++)
    if (bits >> bit & 1) { if (text[0]) strcat(text, ","); strcat(text, nexthop_name(NEXTHOP_NAMES_FLAG, bit)); }
  return text[0] ? text : "-";
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
static void pairs(const char *at, size_t len) { /* name NUL value NUL, sorted by name; no removals, no rewrites */
  const char **names = NULL, *end = at + len;
  size_t n = 0;
  while (at < end) { GROW(names, n); names[n++] = at; at += strlen(at) + 1; at += strlen(at) + 1; }
  if (n) qsort(names, n, sizeof *names, by_name);
  for (size_t i = 0; i < n; i++) {
    const char *value = names[i] + strlen(names[i]) + 1;
    if (strcmp(value, "\1") == 0 || strcmp(names[i], "host") == 0 || names[i][0] == ':') continue;
    word(names[i]);
    word(value);
  }
  free(names);
}

/* Calls whose answer needs room: again with more of it when it was too small. */
#define WITH_ROOM(result, len, function, ...) do { \
  size_t len##_needed = 0; \
  while (((result) = function(__VA_ARGS__, room, room_size - 1, &len##_needed)) == NEXTHOP_SHORT) \
    room = realloc(room, room_size = len##_needed + 64); \
  (len) = len##_needed; (void)(len); } while (0)

static void local_reply(nexthop_request request, const char *name, size_t index, bool refused, nexthop_decision *d) {
  nexthop_local_reply reply = NEXTHOP_LOCAL_REPLY_INIT;
  nexthop_status status;
  size_t len;
  WITH_ROOM(status, len, nexthop_reply, request, &reply);
  if (status != NEXTHOP_OK && !refused) return;
  begin_line(name);
  number(index);
  if (refused) {
    word(nexthop_name(NEXTHOP_NAMES_REFUSAL, d->refusal));
    word(nexthop_name(NEXTHOP_NAMES_RESOURCE, d->resource));
    number(now);
  }
  if (status == NEXTHOP_OK) {
    number(reply.status); word(flags(reply.flags)); put(reply.details); put(reply.body);
    pairs(reply.headers.ptr, reply.headers.len);
  }
  end_line();
}

static void extra(uint64_t id) {
  nexthop_status status;
  size_t len;
  WITH_ROOM(status, len, nexthop_extra_headers, id);
  if (status == NEXTHOP_OK) pairs(room, len);
}

/* A header block over a wanted set; gives back the set's number. */
static uint32_t pack(uint32_t set, char **list, size_t n, char **block, size_t *len) {
  nexthop_status status;
  size_t names_len;
  uint32_t number = set;
  *len = 0;
  *block = NULL;
  if (n == 0 && set != 0) return set;
  WITH_ROOM(status, names_len, nexthop_want, engine, set, &number);
  if (status != NEXTHOP_OK) return 1;
  size_t cap = 0;
  for (size_t i = 0; i + 1 < n; i += 2) cap += strlen(list[i + 1]) + 8;
  *block = malloc(cap + 1);
  for (size_t i = 0; i + 1 < n; i += 2) {
    uint16_t index = 0;
    const char *name = strncmp(list[i], "h:", 2) == 0 ? list[i] + 2 : list[i];
    for (size_t at = 0; at < names_len; index++) {
      size_t size = strnlen(room + at, names_len - at);
      if (strlen(name) == size && strncasecmp(room + at, name, size) == 0) {
        *len = nexthop_pack(*block, cap, *len, index, str(list[i + 1]));
        break;
      }
      at += size + 1;
    }
  }
  return number;
}

/* Events --------------------------------------------------------------------------------------------------- */

static bool before(const event *a, const event *b) {
  return a->time != b->time ? a->time < b->time : a->sequence < b->sequence;
}
static void at(uint64_t time, kind kind, size_t on, uint64_t detail, words what) {
  GROW(events, n_events);
  size_t i = n_events++;
  event e = {time, ++sequence, kind, on, detail, what};
  for (; i > 0 && before(&e, &events[(i - 1) / 2]); i = (i - 1) / 2) events[i] = events[(i - 1) / 2];
  events[i] = e;
}
static event pop(void) {
  event top = events[0], last = events[--n_events];
  size_t i = 0;
  for (size_t child; (child = 2 * i + 1) < n_events; i = child) {
    if (child + 1 < n_events && before(&events[child + 1], &events[child])) child++;
    if (!before(&events[child], &last)) break;
    events[i] = events[child];
  }
  events[i] = last;
  return top;
}
static void advance(uint64_t time) {
  if (time > now) { nexthop_advance(engine, time - now); now = time; }
}

static void ask(size_t c);

static void next_of(size_t b, uint64_t gap) {
  batch *of = &batches[b];
  if (of->clients && of->n) at(now + gap, BEGIN, of->waiting[--of->n], 0, (words){0});
}
static void unqueue(size_t c) {
  if (!calls[c].queued) return;
  calls[c].queued = false;
  size_t kept = 0;
  for (size_t i = 0; i < n_queue; i++) if (queue[i] != c) queue[kept++] = queue[i];
  n_queue = kept;
}
static void pump(void) {
  size_t n = n_queue, *copy = malloc((n + 1) * sizeof *copy);
  if (n) memcpy(copy, queue, n * sizeof *copy);
  for (size_t i = 0; i < n; i++) if (calls[copy[i]].queued) ask(copy[i]);
  free(copy);
}

static void done(size_t c) {
  call *of = &calls[c];
  if (of->d.kind != NEXTHOP_REFUSED) local_reply(of->d.request, "reply", c, false, &of->d);
  begin_line("done"); number(c); number(now); extra(of->d.request.id); end_line();
  unqueue(c);
  of->done = true;
  for (size_t i = 0; i < of->n; i++) tries[of->tries[i]].open = false;
  batches[of->batch].open--;
  next_of(of->batch, batches[of->batch].gap);
}

static void misuse(size_t c) {
  begin_line("misuse"); number(c); number(now); end_line();
  done(c);
}

static void report(size_t t, words what) {
  size_t c = tries[t].call;
  nexthop_outcome outcome = NEXTHOP_OUTCOME_INIT;
  nexthop_verdict v;
  char *block = NULL;
  size_t len = 0;
  const char *name = what.word[0];
  bool headers = strcmp(name, "headers") == 0, complete = strcmp(name, "complete") == 0, end = strcmp(name, "end") == 0;
  if (headers || complete || end) {
    size_t skip = end ? 2 : 3;
    if (!end) outcome.status = (uint16_t)atoi(what.word[1]);
    if (what.word[skip - 1][0]) outcome.grpc_status = (int8_t)atoi(what.word[skip - 1]);
    pack(outcome.status < 400 ? tries[t].want_ok : tries[t].want_err, what.word + skip, what.n - skip, &block, &len);
    if (len) outcome.headers = (nexthop_str){block, len};
    v = headers    ? nexthop_headers(tries[t].id, &outcome, NEXTHOP_NOW)
        : complete ? nexthop_complete(tries[t].id, &outcome, NEXTHOP_NOW)
                   : nexthop_end(tries[t].id, &outcome, NEXTHOP_NOW);
    free(block);
  } else if (strcmp(name, "fail") == 0) {
    uint32_t failure = 1;
    while (strcmp(nexthop_name(NEXTHOP_NAMES_FAILURE, failure), what.word[1])) failure++;
    v = nexthop_fail(tries[t].id, failure, NEXTHOP_NOW);
  } else if (strcmp(name, "note") == 0) {
    uint32_t note = 1;
    while (strcmp(nexthop_name(NEXTHOP_NAMES_NOTE, note), what.word[1])) note++;
    nexthop_note(tries[t].id.id, note, NEXTHOP_NOW, NULL);
    return;
  } else {
    nexthop_finish(calls[c].d.request, NEXTHOP_FINISH_CLIENT_GONE, NEXTHOP_NOW);
    begin_line("gone"); number(c); number(now); end_line();
    done(c);
    return;
  }
  if (v.code) { misuse(c); return; }
  if (end) {
    tries[t].open = false;
    begin_line("end"); number(c); number(tries[t].number); number(now); end_line();
    done(c);
    return;
  }
  static const char *actions[] = {"none", "forward", "retry", "discard"};
  char told[64];
  snprintf(told, sizeof told, "%s%s", what.word[1], headers ? "+" : "");
  begin_line("verdict"); number(c); number(tries[t].number); word(told); word(actions[v.action & 3]);
  word(nexthop_name(NEXTHOP_NAMES_REASON, v.reason)); number(v.after_ms); number(v.status); word(flags(v.flags));
  number(now); number(now - tries[t].sent); end_line();
  if (v.action == NEXTHOP_FORWARD && headers && !tries[t].answered) {
    tries[t].answered = true;
    for (size_t i = 0; i < calls[c].n; i++) tries[calls[c].tries[i]].open = calls[c].tries[i] == t;
    return;
  }
  tries[t].open = false;
  if (v.action == NEXTHOP_RETRY) ask(c);
  else if (v.action != NEXTHOP_DISCARD) done(c);
}

static nexthop_status begin(call *of) {
  nexthop_head head = NEXTHOP_HEAD_INIT;
  char **list = NULL, *block;
  size_t n = 0, len;
  for (size_t i = 0; i + 1 < of->head.n; i += 2) {
    char *key = of->head.word[i], *value = of->head.word[i + 1];
    if (strncmp(key, "h:", 2) == 0) { GROW(list, n + 1); list[n++] = key; list[n++] = value; }
    else if (strcmp(key, "cluster") == 0) { nexthop_status s = nexthop_resolve(engine, str(value), &head.target); if (s) return s; }
    else if (strcmp(key, "method") == 0) head.method = str(value);
    else if (strcmp(key, "authority") == 0) head.authority = str(value);
    else if (strcmp(key, "path") == 0) head.path = str(value);
    else if (strcmp(key, "source") == 0) head.source = str(value);
    else if (strcmp(key, "local") == 0) head.local = str(value);
    else if (strcmp(key, "key") == 0) head.key = str(value);
    else if (strcmp(key, "timeout") == 0) head.timeout = strtoull(value, NULL, 10);
    else if (strcmp(key, "internal") == 0) head.bits |= NEXTHOP_HEAD_INTERNAL;
    else if (strcmp(key, "metadata") == 0) head.metadata = str(value);
    else if (strcmp(key, "override_host") == 0) head.override_host = str(value);
  }
  head.want = pack(0, list, n, &block, &len);
  if (len) head.headers = (nexthop_str){block, len};
  nexthop_status status = nexthop_begin(engine, &head, NEXTHOP_NOW, &of->d);
  free(block);
  free(list);
  return status;
}

static void send_it(size_t c) {
  nexthop_decision *d = &calls[c].d;
  nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
  nexthop_request_facts facts = {.struct_size = sizeof facts};
  nexthop_status status;
  size_t len;
  WITH_ROOM(status, len, nexthop_request_info, d->request, &facts);
  uint64_t idle = status == NEXTHOP_OK ? facts.idle_timeout : NONE;
  WITH_ROOM(status, len, nexthop_host, engine, d->host, d->host_version, &host);
  if (status != NEXTHOP_OK) { misuse(c); return; }
  char *address = strndup(host.address.ptr, host.address.len);
  begin_line("go"); number(c); number(d->number); put(host.address); put(host.cluster_name); number(now);
  limit(d->try_timeout); limit(d->remaining); limit(idle); limit(d->wait); extra(d->attempt.id); end_line();
  size_t t = n_tries;
  GROW(tries, n_tries);
  tries[n_tries++] = (try_){c, d->attempt, d->number, d->want_ok, d->want_err, true, false, d->wait != NONE, now, now, idle};
  GROW(calls[c].tries, calls[c].n);
  calls[c].tries[calls[c].n++] = t;
  if (d->try_timeout != NONE) at(now + d->try_timeout, LIMIT, t, false, (words){0});
  if (d->remaining != NONE) at(now + d->remaining, LIMIT, t, true, (words){0});
  if (idle != NONE) at(now + idle, IDLE, t, 0, (words){0});
  if (d->wait != NONE) at(now + d->wait, ASK, c, calls[c].asking, (words){0});
  for (size_t i = 0; i < n_rules; i++) {
    rule *r = &rules[i];
    if ((r->host[0] && strcmp(r->host, address)) || (r->attempt && r->attempt != d->number) ||
        strncmp(calls[c].path, r->prefix, strlen(r->prefix))) continue;
    size_t turn = r->cycle ? r->used % r->plans.n : r->used < r->plans.n ? r->used : r->plans.n - 1, p = 0;
    r->used++;
    while (strcmp(plans[p].name, r->plans.word[turn])) p++;
    uint64_t time = now;
    for (size_t k = 0; k < plans[p].n; k++) at(time += plans[p].acts[k].after, ACT, t, 0, plans[p].acts[k].what);
    break;
  }
  free(address);
}

static void ask(size_t c) {
  call *of = &calls[c];
  of->asking++;
  nexthop_status status = of->d.kind == 0 ? begin(of) : nexthop_choose(of->d.request, NEXTHOP_NOW, &of->d);
  if (status != NEXTHOP_OK) { misuse(c); return; }
  if (of->d.kind == NEXTHOP_GO) {
    unqueue(c);
    send_it(c);
  } else if (of->d.kind == NEXTHOP_WAIT) {
    bool in_queue = of->d.refusal == NEXTHOP_WAIT_QUEUE;
    if (!in_queue) unqueue(c);
    if (!of->queued) {
      begin_line("wait"); number(c); word(nexthop_name(NEXTHOP_NAMES_WAIT, of->d.refusal));
      if (in_queue) word("-"); else limit(of->d.wait);
      number(now); end_line();
    }
    if (in_queue && !of->queued) {
      of->queued = true;
      GROW(queue, n_queue);
      queue[n_queue++] = c;
      if (connect_after != NONE) at(now + connect_after, CONNECTED, c, 0, (words){0});
    }
    if (of->d.wait != NONE) at(now + of->d.wait, ASK, c, of->asking, (words){0});
  } else {
    unqueue(c);
    local_reply(of->d.request, "refused", c, true, &of->d);
    done(c);
  }
}

static void step(void) {
  static char *timeout[] = {"fail", "timeout"}, *idle[] = {"fail", "per_try_idle_timeout"};
  event e = pop();
  if (e.kind == CONNECTED && !calls[e.on].queued) return;
  if (e.kind == ASK && (calls[e.on].done || calls[e.on].asking != e.detail)) return;
  if (e.kind >= ACT && !tries[e.on].open) return;
  advance(e.time);
  switch (e.kind) {
    case BEGIN: case ASK: ask(e.on); break;
    case CONNECTED: nexthop_note(calls[e.on].d.request.id, NEXTHOP_NOTE_CONNECTED, NEXTHOP_NOW, NULL); break;
    case ACT:
      tries[e.on].last = now;
      report(e.on, e.what);
      if (tries[e.on].open && tries[e.on].idle != NONE) at(now + tries[e.on].idle, IDLE, e.on, 0, (words){0});
      break;
    case LIMIT: if (e.detail || !tries[e.on].answered) report(e.on, (words){timeout, 2}); break;
    /* Whoever hedges gives no attempt up before its headers. */
    case IDLE: if ((tries[e.on].answered || !tries[e.on].hedges) && now - tries[e.on].last >= tries[e.on].idle) report(e.on, (words){idle, 2}); break;
  }
  pump();
}

/* Commands ------------------------------------------------------------------------------------------------- */

static void run(size_t clients, uint64_t gap, uint64_t stagger, bool wait) {
  size_t b = n_batches, first = n_calls;
  GROW(batches, n_batches);
  batches[n_batches++] = (batch){n_heads, NULL, 0, gap, clients > 0};
  for (size_t i = 0; i < n_heads; i++) {
    GROW(calls, n_calls);
    call *of = &calls[n_calls++];
    *of = (call){.head = heads[i], .path = "/", .batch = b, .d = NEXTHOP_DECISION_INIT};
    for (size_t k = 0; k + 1 < heads[i].n; k += 2) if (strcmp(heads[i].word[k], "path") == 0) of->path = heads[i].word[k + 1];
    if (!clients) at(now + i * stagger, BEGIN, first + i, 0, (words){0});
  }
  batches[b].waiting = malloc((n_heads + 1) * sizeof(size_t));
  for (size_t i = n_heads; i > 0; i--) batches[b].waiting[batches[b].n++] = first + i - 1;
  n_heads = 0;
  for (size_t i = 0; i < clients; i++) next_of(b, 0);
  while (wait && batches[b].open && n_events) step();
}

static int documents(bool update, uint64_t seed, const char *draws) {
  nexthop_document *list = calloc(docs.n + 1, sizeof *list);
  for (size_t i = 0; i < docs.n; i++) list[i] = (nexthop_document){.struct_size = sizeof *list, .text = str(docs.word[i])};
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  uint64_t *numbers = NULL;
  options.workers = 1;
  options.seed = seed;
  options.clock = NEXTHOP_CLOCK_MANUAL;
  for (const char *at = draws; at && *at; at += strcspn(at, ","), at += *at == ',') {
    GROW(numbers, options.n_draws);
    numbers[options.n_draws++] = strtoull(at, NULL, 10);
  }
  options.draws = numbers;
  nexthop_status status = update ? nexthop_update(engine, list, docs.n, NULL) : nexthop_engine_new(&options, list, docs.n, &engine);
  if (status) {
    char text[2000];
    size_t len = 0;
    nexthop_last_error(text, sizeof text, &len);
    fprintf(stderr, "%.*s\n", (int)(len < sizeof text ? len : sizeof text), text);
  }
  free(list);
  free(numbers);
  docs.n = 0;
  return status;
}

/* Lines of `"name":value` of the flat JSON object in `room`, one after the other; value as its text. */
static const char *value_of(const char *json, const char *key, char *out, size_t cap) {
  char quoted[100];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *found = strstr(json, quoted);
  size_t len = 0;
  if (found) {
    found += strlen(quoted);
    len = *found == '"' ? strcspn(++found, "\"") : strcspn(found, ",}");
  }
  snprintf(out, cap, "%.*s", (int)len, found ? found : "");
  return out;
}

static void stats(const char *label) {
  nexthop_status status;
  size_t len, n = 0;
  char **lines = NULL;
  WITH_ROOM(status, len, nexthop_text, engine, NEXTHOP_TEXT_STATS, str(""));
  if (status != NEXTHOP_OK) return;
  room[len] = 0;
  for (char *at = room; (at = strchr(at, '"'));) {
    char *name = at + 1, *end = strchr(name, '"'), *value = end + 1;
    value += strspn(value, ": ");
    *end = 0;
    at = value + (*value == '"' ? 1 : 0);
    if (*value == '"') at = strchr(at, '"') + 1;
    if ((*value < '0' || *value > '9') && *value != '-') continue;
    size_t size = strcspn(value, ",} \n");
    GROW(lines, n);
    lines[n] = malloc(strlen(name) + size + 2);
    sprintf(lines[n], "%s%c%.*s", name, 0, (int)size, value);
    n++;
  }
  if (n) qsort(lines, n, sizeof *lines, by_name);
  for (size_t i = 0; i < n; i++) {
    begin_line("stat"); word(label); word(lines[i]); word(lines[i] + strlen(lines[i]) + 1); end_line();
    free(lines[i]);
  }
  free(lines);
}

static void drain_events(const char *label) {
  static const char *keys[] = {"cluster_name", "upstream_url", "action", "type", "num_ejections", "enforced"};
  for (;;) {
    nexthop_status status;
    size_t len;
    char value[300];
    WITH_ROOM(status, len, nexthop_poll_event, engine);
    if (status != NEXTHOP_OK) return;
    room[len] = 0;
    if (!value_of(room, "action", value, sizeof value)[0]) continue;
    begin_line("event"); word(label);
    for (size_t i = 0; i < 6; i++) word(value_of(room, keys[i], value, sizeof value));
    end_line();
  }
}

static void command(words w) {
  const char *name = w.word[0];
  char **arg = w.word + 1;
#define IS(text) (strcmp(name, text) == 0)
#define NUM(i) strtoull(arg[i], NULL, 10)
  if (IS("case")) {
    if (engine.id) nexthop_engine_free(engine);
    engine.id = 0;
    docs.n = n_plans = n_rules = n_calls = n_tries = n_batches = n_heads = n_queue = n_events = 0;
    now = sequence = 0;
    connect_after = NONE;
    begin_line("case"); word(arg[0]); end_line();
    fflush(stdout);
  } else if (IS("doc")) {
    GROW(docs.word, docs.n);
    docs.word[docs.n++] = arg[0];
  } else if (IS("open")) {
    bool ok = documents(false, NUM(0), arg[1]) == NEXTHOP_OK;
    if (!ok) engine.id = 0;
    begin_line("open"); word(ok ? "ok" : "refused"); end_line();
  } else if (!engine.id) {
    return;
  } else if (IS("plan")) {
    GROW(plans, n_plans);
    plans[n_plans++] = (plan){arg[0], NULL, 0};
  } else if (IS("act")) {
    plan *p = &plans[n_plans - 1];
    GROW(p->acts, p->n);
    p->acts[p->n++] = (act){NUM(0), {arg + 1, w.n - 2}};
  } else if (IS("drop")) {
    size_t kept = 0;
    for (size_t i = 0; i < n_rules; i++) if (strcmp(rules[i].host, arg[0])) rules[kept++] = rules[i];
    n_rules = kept;
  } else if (IS("rule")) {
    GROW(rules, n_rules);
    rules[n_rules++] = (rule){arg[0], (uint32_t)NUM(1), arg[2], strcmp(arg[3], "cycle") == 0, {arg + 4, w.n - 5}, 0};
  } else if (IS("connect")) {
    connect_after = NUM(0);
  } else if (IS("request")) {
    GROW(heads, n_heads);
    heads[n_heads++] = (words){arg, w.n - 1};
  } else if (IS("run")) {
    run(NUM(0), NUM(1), NUM(2), strcmp(arg[3], "wait") == 0);
  } else if (IS("sleep")) {
    uint64_t until = now + NUM(0);
    while (n_events && events[0].time <= until) step();
    advance(until);
  } else if (IS("endpoints") || IS("update")) {
    nexthop_host_op op = NEXTHOP_HOST_OP_INIT;
    op.op = NEXTHOP_HOST_ENDPOINTS;
    int status = IS("update") ? documents(true, 0, NULL) : (op.metadata = str(arg[1]), nexthop_apply(engine, str(arg[0]), &op, 1, NULL));
    begin_line(name); word(status == NEXTHOP_OK ? "ok" : "refused"); end_line();
    pump();
  } else if (IS("stats")) {
    stats(arg[0]);
  } else if (IS("events")) {
    drain_events(arg[0]);
  } else {
    fprintf(stderr, "unknown command %s\n", name);
    exit(2);
  }
}

int main(void) {
  char *line = NULL;
  size_t cap = 0;
  room = malloc(room_size = 4096);
  connect_after = NONE;
  while (getline(&line, &cap, stdin) > 0) command(read_line(strdup(line))); /* words live as long as the program */
  if (engine.id) nexthop_engine_free(engine);
  free(line);
  return 0;
}
