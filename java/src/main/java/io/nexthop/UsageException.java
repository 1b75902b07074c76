package io.nexthop;

/** A call that is wrong in itself or at this moment; nothing has changed. */
public final class UsageException extends NexthopException {
  private static final long serialVersionUID = 1L;

  UsageException(String code, String message) {
    super(code, message);
  }
}
