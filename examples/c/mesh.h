/* What the three programs share: a small mesh on a manual clock, so that they always do the same. */
#ifndef MESH_H
#define MESH_H

#include "nexthop.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char DOCUMENT[] =
    "clusters:\n"
    "  checkout:\n"
    "    hosts: [10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80]\n"
    "    policy: round_robin\n"
    "    retry: {on: [5xx, connect-failure], times: 2, backoff: {base: 25ms, max: 250ms}}\n"
    "  narrow:\n"
    "    hosts: [10.0.1.1:80]\n"
    "    limits: {connections: 1, pending: 2, requests: 10}\n"
    "  first: {hosts: [10.0.2.1:80]}\n"
    "  second: {hosts: [10.0.3.1:80]}\n"
    "  providers: {composite: [first, second]}\n";

/* Prints the library's sentence and gives up. */
static inline void give_up(const char *what) {
  char why[512];
  size_t n = 0;
  if (nexthop_last_error(why, sizeof why, &n) != NEXTHOP_OK) n = 0;
  fprintf(stderr, "%s: %.*s\n", what, (int)n, why);
  exit(1);
}

static inline nexthop_engine open_mesh(void) {
  nexthop_options options = NEXTHOP_OPTIONS_INIT;
  nexthop_document document = NEXTHOP_DOCUMENT_INIT;
  nexthop_engine mesh;
  if (nexthop_abi_version() != NEXTHOP_ABI) {
    fprintf(stderr, "the library has interface %u, this program was built for %u\n", nexthop_abi_version(), NEXTHOP_ABI);
    exit(1);
  }
  options.clock = NEXTHOP_CLOCK_MANUAL; /* a program of yours leaves this out */
  options.workers = 1;
  options.seed = 1;
  document.text = (nexthop_str){DOCUMENT, sizeof DOCUMENT - 1}; /* or a path, with kind NEXTHOP_DOCUMENT_PATH */
  if (nexthop_engine_new(&options, &document, 1, &mesh) != NEXTHOP_OK) give_up("engine");
  return mesh;
}

static inline uint32_t cluster(nexthop_engine mesh, const char *name) {
  uint32_t number;
  if (nexthop_resolve(mesh, (nexthop_str){name, strlen(name)}, &number) != NEXTHOP_OK) give_up(name);
  return number;
}

#endif
