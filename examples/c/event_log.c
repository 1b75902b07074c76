/* A log of events: run due maintenance, then write what happened, one JSON object a line. A server does this every second
 * or so, from a thread of its own or a timer of its event loop; this program calls it by hand. */
#include "mesh.h"

/* Grows with the longest event. */
struct log {
  FILE *file; /* opened with "a" by those who want a file */
  char *line;
  size_t room;
};

/* One round. Returns -1 when the engine is closed, or there is no memory. */
static int log_events(nexthop_engine mesh, struct log *log) {
  size_t n;
  uint32_t bits; /* NEXTHOP_WAKE: who waits can go on, see event_loop.c */
  /* Ejections end here when no request makes them end. */
  if (nexthop_maintain(mesh, NEXTHOP_NOW, &bits) != NEXTHOP_OK) return -1;
  for (;;) {
    nexthop_status status = nexthop_poll_event(mesh, log->line, log->room, &n);
    if (status == NEXTHOP_EMPTY) return fflush(log->file);
    if (status == NEXTHOP_SHORT) { /* the event is still there */
      char *more = realloc(log->line, n);
      if (more == NULL) return -1;
      log->line = more;
      log->room = n;
      continue;
    }
    if (status != NEXTHOP_OK) return -1;
    fwrite(log->line, 1, n, log->file);
    fputc('\n', log->file);
  }
}

/* Prints the actions and hosts of what was written; a test of this example reads them. */
static void show(FILE *file) {
  char line[1024], action[16], host[64];
  rewind(file);
  while (fgets(line, sizeof line, file)) {
    const char *at = strstr(line, "\"upstream_url\":"), *what = strstr(line, "\"action\":");
    if (at && what && sscanf(at, "\"upstream_url\":\"%63[^\"]", host) == 1 && sscanf(what, "\"action\":\"%15[^\"]", action) == 1)
      printf("%s %s\n", action, host);
  }
}

int main(void) {
  static const char more[] = "clusters: {web: {hosts: [10.0.0.1:80], outlier: {consecutive_5xx: 1, eject: 30s, max_percent: 100}}}";
  nexthop_engine mesh = open_mesh();
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_decision d = NEXTHOP_DECISION_INIT;
  struct log log = {tmpfile(), NULL, 0};
  document.text = (nexthop_str){more, sizeof more - 1};
  if (log.file == NULL || nexthop_update(mesh, &document, 1, NULL) != NEXTHOP_OK) give_up("documents");

  if (nexthop_pick(mesh, cluster(mesh, "web"), 1, (nexthop_str){NULL, 0}, NEXTHOP_NOW, &d) != NEXTHOP_OK) give_up("pick");
  nexthop_complete_status(d.attempt, 500, NEXTHOP_NOW);
  if (log_events(mesh, &log) != 0) give_up("events");
  nexthop_advance(mesh, 41000000000u); /* the next sweep after its 30 s brings the host back */
  if (log_events(mesh, &log) != 0) give_up("events");
  show(log.file);

  free(log.line);
  fclose(log.file);
  nexthop_engine_free(mesh);
  return 0;
}
