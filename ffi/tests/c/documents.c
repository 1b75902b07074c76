/* Documents: empty, broken, huge, not there; hosts by the hundred thousand; texts and events. */
#define _GNU_SOURCE
#include "check.h"
#include <unistd.h>

static nexthop_status make(const char *words, size_t length, uint8_t kind, uint8_t dialect) {
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine engine = {0};
  document.text = (nexthop_str){words, length};
  document.kind = kind;
  document.dialect = dialect;
  nexthop_status status = nexthop_engine_new(NULL, &document, 1, &engine);
  if (status == NEXTHOP_OK) SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  else SAME(engine.id, 0);
  return status;
}

static void refused(void) {
  SAME(make("", 0, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  SAME(make("   \n", 4, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  SAME(make("clusters: [", 11, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  SAME(make("clusters: {a: {hosts: [10.0.0.1:80], polcy: maglev}}", 52, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  CHECK(says("polcy") && says("policy"));
  SAME(make("\xff\xfe\x00", 3, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  SAME(make("/", 1, NEXTHOP_DOCUMENT_PATH, 0), NEXTHOP_IO);
  CHECK(says("directory"));
  SAME(make("/no/such/file.yaml", 18, NEXTHOP_DOCUMENT_PATH, 0), NEXTHOP_IO);
  SAME(make("", 0, NEXTHOP_DOCUMENT_PATH, 0), NEXTHOP_IO);
  CHECK(says("path of document 1 is empty"));
  SAME(make(MESH, sizeof MESH - 1, 9, 0), NEXTHOP_INVALID);
  SAME(make(MESH, sizeof MESH - 1, NEXTHOP_DOCUMENT_TEXT, 77), NEXTHOP_INVALID);
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  nexthop_engine engine = {0};
  options.clock = 9;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = text(MESH);
  SAME(nexthop_engine_new(&options, &document, 1, &engine), NEXTHOP_INVALID);
  options.clock = 0;
  options.n_draws = 3;
  SAME(nexthop_engine_new(&options, &document, 1, &engine), NEXTHOP_INVALID);
}

/* Whether a part of the last error is this. */
static int is(nexthop_str part, const char *word) {
  return part.len == strlen(word) && (part.len == 0 || memcmp(part.ptr, word, part.len) == 0);
}

static void parts(void) {
  char room[2048], why[512];
  size_t n = 0, m = 0;
  nexthop_error_parts error = NEXTHOP_ERROR_PARTS_INIT;
  SAME(make("clusters:\n  a: {hots: []}", 25, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_CONFIG);
  SAME(nexthop_last_error_parts(&error, NULL, 0, &n), NEXTHOP_SHORT);
  SAME(nexthop_last_error_parts(&error, room, n, &m), NEXTHOP_OK); /* asking has not replaced it */
  SAME(n, m);
  SAME(error.line, 2);
  SAME(error.column, 7);
  CHECK(is(error.file, "<text 1>") && is(error.path, "clusters.a.hots") && is(error.found, "hots"));
  CHECK(is(error.nearest, "hosts") && error.allowed.len > 0 && error.message.len > 0);
  SAME(nexthop_last_error(why, sizeof why, &n), NEXTHOP_OK);
  CHECK(n > error.message.len && memcmp(why + n - error.message.len, error.message.ptr, error.message.len) == 0);
  SAME(make("/no/such/file.yaml", 18, NEXTHOP_DOCUMENT_PATH, 0), NEXTHOP_IO);
  SAME(nexthop_last_error_parts(&error, room, sizeof room, NULL), NEXTHOP_OK);
  CHECK(is(error.file, "/no/such/file.yaml") && is(error.path, "") && error.line == 0);
  SAME(nexthop_engine_free((nexthop_engine){0}), NEXTHOP_INVALID);
  SAME(nexthop_last_error_parts(&error, room, sizeof room, NULL), NEXTHOP_OK);
  CHECK(is(error.file, "") && error.message.len > 0);
  SAME(nexthop_last_error_parts(NULL, room, sizeof room, NULL), NEXTHOP_INVALID);
  error.struct_size = 3;
  SAME(nexthop_last_error_parts(&error, room, sizeof room, NULL), NEXTHOP_INVALID);
}

static void none(void) {
  nexthop_engine engine = mesh(), other = {0};
  SAME(nexthop_engine_new(NULL, NULL, 0, &other), NEXTHOP_INVALID);
  CHECK(says("no documents"));
  SAME(nexthop_update(engine, NULL, 0, NULL), NEXTHOP_INVALID);
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = text("[]");
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_CONFIG);
  SAME(nexthop_complete_status(picked(engine, "checkout").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  document.text = text("clusters: []");
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

static nexthop_status assigned(nexthop_engine engine, const char *cluster, const char *assignment) {
  nexthop_host_op op = NEXTHOP_HOST_OP_INIT;
  op.op = NEXTHOP_HOST_ENDPOINTS;
  op.metadata = text(assignment);
  return nexthop_apply(engine, text(cluster), &op, 1, NULL);
}

static void assignments(void) {
  nexthop_engine engine = mesh();
  SAME(assigned(engine, "first", "{cluster_name: second, endpoints: []}"), NEXTHOP_INVALID);
  CHECK(says("\"first\"") && says("\"second\""));
  SAME(assigned(engine, "first", "{endpoints: []}"), NEXTHOP_CONFIG);
  SAME(assigned(engine, "providers", "{cluster_name: providers}"), NEXTHOP_INVALID);
  CHECK(says("composite") && !says("did you mean"));
  SAME(nexthop_complete_status(picked(engine, "first").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  SAME(assigned(engine, "first", "{cluster_name: first, endpoints: []}"), NEXTHOP_OK);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

static void raised(void) {
  nexthop_engine engine = mesh();
  nexthop_decision open = begun(engine, "narrow"), waits = begun(engine, "narrow");
  SAME(open.kind, NEXTHOP_GO);
  SAME(waits.kind, NEXTHOP_WAIT);
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.text = text("clusters: {narrow: {hosts: [10.0.1.1:80], limits: {connections: 2, pending: 1, requests: 10}}}");
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
  nexthop_ready ready[4];
  size_t n = 0;
  SAME(nexthop_poll_ready(engine, ready, 4, &n), NEXTHOP_OK);
  SAME(n, 1);
  SAME(ready[0].request.id, waits.request.id);
  SAME(nexthop_choose(waits.request, NEXTHOP_NOW, &waits), NEXTHOP_OK);
  SAME(waits.kind, NEXTHOP_GO);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

static void write_file(const char *path, const char *words) {
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(words, file) >= 0 && fclose(file) == 0);
}

static void reloads(void) {
  char path[] = "/tmp/nexthop-documents-XXXXXX";
  int made = mkstemp(path);
  CHECK(made >= 0 && close(made) == 0);
  write_file(path, MESH);
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  document.kind = NEXTHOP_DOCUMENT_PATH;
  document.text = text(path);
  nexthop_engine engine = {0};
  SAME(nexthop_engine_new(NULL, &document, 1, &engine), NEXTHOP_OK);
  uint32_t swapped = 7;
  uint64_t before = 0, after = 0;
  SAME(nexthop_reload(engine, &swapped, &before), NEXTHOP_OK);
  SAME(swapped, 0);
  write_file(path, "clusters: {only: {hosts: [10.0.0.1:80]}}");
  SAME(nexthop_reload(engine, &swapped, &after), NEXTHOP_OK);
  SAME(swapped, 1);
  CHECK(after > before);
  write_file(path, "nonsense");
  SAME(nexthop_reload(engine, &swapped, NULL), NEXTHOP_OK);
  SAME(swapped, 0);
  write_file(path, "clusters: {}");
  SAME(nexthop_reload(engine, NULL, NULL), NEXTHOP_OK);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
  CHECK(remove(path) == 0);
}

static void updates(void) {
  nexthop_engine engine = mesh();
  uint32_t checkout = target(engine, "checkout");
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  uint64_t before = 0, after = 0;
  document.text = text(MESH);
  SAME(nexthop_update(engine, &document, 1, &before), NEXTHOP_OK);
  nexthop_decision open = begun(engine, "checkout"), d = NEXTHOP_DECISION_INIT;
  /* A bad document changes nothing. */
  document.text = text("clusters: 7");
  SAME(nexthop_update(engine, &document, 1, &after), NEXTHOP_CONFIG);
  SAME(nexthop_complete_status(picked(engine, "checkout").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  /* A cluster that goes refuses, and keeps its number until it is back. */
  document.text = text("clusters: {first: {hosts: [10.0.2.1:80]}}");
  SAME(nexthop_update(engine, &document, 1, &after), NEXTHOP_OK);
  CHECK(after > before);
  SAME(nexthop_pick(engine, checkout, 1, (nexthop_str){0}, NEXTHOP_NOW, &d), NEXTHOP_OK);
  SAME(d.kind, NEXTHOP_REFUSED);
  SAME(d.refusal, NEXTHOP_REFUSED_NO_CLUSTER);
  /* Its open attempt is still reported. */
  SAME(nexthop_complete_status(open.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  document.text = text(MESH);
  SAME(nexthop_update(engine, &document, 1, NULL), NEXTHOP_OK);
  SAME(target(engine, "checkout"), checkout);
  SAME(nexthop_complete_status(picked(engine, "checkout").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  /* What was refused told it. */
  char event[2048];
  size_t n = 0;
  SAME(nexthop_poll_event(engine, event, 1, &n), NEXTHOP_SHORT);
  CHECK(n > 1 && n < sizeof event);
  SAME(nexthop_poll_event(engine, event, sizeof event - 1, &n), NEXTHOP_OK);
  event[n] = 0;
  CHECK(strstr(event, "config_rejected") != NULL);
  while (nexthop_poll_event(engine, event, sizeof event, &n) == NEXTHOP_OK) {}
  SAME(nexthop_poll_event(engine, event, sizeof event, &n), NEXTHOP_EMPTY);
  SAME(live(engine), 0);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

static void hundred_thousand(void) {
  enum { HOSTS = 100000 };
  nexthop_engine engine = mesh();
  nexthop_host_op *ops = calloc(HOSTS, sizeof *ops);
  char(*names)[24] = calloc(HOSTS, sizeof *names);
  CHECK(ops && names);
  for (int i = 0; i < HOSTS; i++) {
    ops[i] = (nexthop_host_op)NEXTHOP_HOST_OP_INIT;
    snprintf(names[i], sizeof names[i], "10.%d.%d.%d:80", i / 65536, i / 256 % 256, i % 256);
    ops[i].op = NEXTHOP_HOST_SET;
    ops[i].address = text(names[i]);
    ops[i].weight = 1;
  }
  uint64_t epoch = 0;
  SAME(nexthop_apply(engine, text("checkout"), ops, HOSTS, &epoch), NEXTHOP_OK);
  CHECK(epoch > 0);
  /* Round robin meets a thousand different ones. */
  static unsigned char seen[4 * HOSTS];
  char room[512];
  size_t n;
  for (int i = 0; i < 1000; i++) {
    nexthop_decision d = picked(engine, "checkout");
    CHECK(d.host < sizeof seen && !seen[d.host]);
    seen[d.host] = 1;
    nexthop_host_info host = NEXTHOP_HOST_INFO_INIT;
    SAME(nexthop_host(engine, d.host, d.host_version, &host, room, sizeof room, &n), NEXTHOP_OK);
    SAME(nexthop_complete_status(d.attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  }
  /* Whole or not at all: the bad one is the last. */
  ops[HOSTS - 1].address = text("nonsense");
  CHECK(nexthop_apply(engine, text("checkout"), ops, HOSTS, &epoch) < 0);
  SAME(nexthop_complete_status(picked(engine, "checkout").attempt, 200, NEXTHOP_NOW).code, NEXTHOP_OK);
  ops[HOSTS - 1].port = 80;
  SAME(nexthop_apply(engine, text("checkout"), ops, HOSTS, &epoch), NEXTHOP_INVALID);
  SAME(nexthop_apply(engine, text("none"), ops, 1, &epoch), NEXTHOP_NOT_FOUND);
  SAME(nexthop_apply(engine, text("checkout"), ops, 1, &epoch), NEXTHOP_OK);
  nexthop_decision one = picked(engine, "checkout"), two = picked(engine, "checkout");
  SAME(one.host, two.host);
  free(ops);
  free(names);
  SAME(nexthop_engine_free(engine), NEXTHOP_OK);
}

static void fifty_megabytes(void) {
  size_t size = 50u << 20;
  char *words = malloc(size);
  CHECK(words);
  /* Comments around a good document. */
  memset(words, '#', size);
  for (size_t i = 100; i < size; i += 100) words[i] = '\n';
  memcpy(words, MESH, sizeof MESH - 1);
  words[sizeof MESH - 1] = '\n';
  SAME(make(words, size, NEXTHOP_DOCUMENT_TEXT, 0), NEXTHOP_OK);
  /* One word, and nothing but opening brackets. */
  memset(words, 'a', size);
  CHECK(make(words, size, NEXTHOP_DOCUMENT_TEXT, 0) < 0);
  memset(words, '[', size);
  CHECK(make(words, size, NEXTHOP_DOCUMENT_TEXT, 0) < 0);
  free(words);
}

int main(int count, char **arguments) {
  refused();
  parts();
  none();
  assignments();
  raised();
  reloads();
  updates();
  /* The large ones take too long under an instrumented run. */
  if (count < 2 || strcmp(arguments[1], "--small") != 0) {
    hundred_thousand();
    fifty_megabytes();
  }
  puts("documents: ok");
  return 0;
}
