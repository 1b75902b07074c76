/* Just enough HTTP/1.1 for the experiment: GET and POST over kept connections, one for each port of 127.0.0.1. */
#ifndef HTTP_H
#define HTTP_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

typedef struct {
  int status;       /* or -1 */
  int connected;    /* whether a connection was there when it failed */
  int timed_out;
  char body[4096];
} http_reply;

static int http_sockets[65536]; /* 0: none */

static inline int http_connect(uint16_t port) {
  if (http_sockets[port]) return http_sockets[port];
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int s = socket(AF_INET, SOCK_STREAM, 0);
  if (s < 0) return -1;
  if (connect(s, (struct sockaddr *)&to, sizeof to) != 0) {
    close(s);
    return -1;
  }
  return http_sockets[port] = s;
}

static inline http_reply http_broken(uint16_t port, http_reply reply) {
  reply.timed_out = errno == EAGAIN || errno == EWOULDBLOCK;
  close(http_sockets[port]);
  http_sockets[port] = 0;
  reply.status = -1;
  return reply;
}

/* `header` is one whole line with its end, or "". */
static inline http_reply http_send(uint16_t port, const char *method, const char *path, const char *header, uint64_t timeout_ns) {
  http_reply reply = {.status = -1};
  char text[8192];
  int s = http_connect(port);
  if (s < 0) return reply;
  reply.connected = 1;
  struct timeval limit = {.tv_sec = 60};
  if (timeout_ns / 1000000000 < 60) limit = (struct timeval){(time_t)(timeout_ns / 1000000000), (suseconds_t)(timeout_ns / 1000 % 1000000)};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nhost: lab.example\r\ncontent-length: 0\r\n%s\r\n", method, path, header);
  errno = 0;
  if (send(s, text, (size_t)n, MSG_NOSIGNAL) != n) return http_broken(port, reply);
  size_t have = 0;
  char *end = NULL;
  while (end == NULL) {
    ssize_t got = recv(s, text + have, sizeof text - 1 - have, 0);
    if (got <= 0) return http_broken(port, reply);
    have += (size_t)got;
    text[have] = 0;
    end = strstr(text, "\r\n\r\n");
  }
  reply.status = atoi(text + sizeof "HTTP/1.1 " - 1);
  size_t length = 0, start = (size_t)(end + 4 - text);
  for (char *line = text; line < end; line = strstr(line, "\r\n") + 2)
    if (strncasecmp(line, "content-length:", 15) == 0) length = strtoul(line + 15, NULL, 10);
  if (length >= sizeof reply.body || start + length >= sizeof text) return http_broken(port, reply);
  while (have < start + length) {
    ssize_t got = recv(s, text + have, start + length - have, 0);
    if (got <= 0) return http_broken(port, reply);
    have += (size_t)got;
  }
  memcpy(reply.body, text + start, length);
  reply.body[length] = 0;
  return reply;
}

#endif
