package io.nexthop;

/** A bug in nexthop, contained: a hot call loses its request only, an update leaves the old documents serving. */
public final class InternalException extends NexthopException {
  private static final long serialVersionUID = 1L;

  InternalException(String message) {
    super("panic", message);
  }
}
