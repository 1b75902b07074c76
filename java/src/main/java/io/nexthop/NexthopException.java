package io.nexthop;

/** Everything that nexthop throws. */
public class NexthopException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String code;

  NexthopException(String code, String message) {
    super(message);
    this.code = code;
  }

  NexthopException(String code, String message, boolean stack) {
    super(message, null, stack, stack);
    this.code = code;
  }

  /**
   * What happened, as a word: {@code invalid}, {@code ended}, {@code state}, {@code closed}, {@code not_found},
   * {@code limit}, {@code config}, {@code refused}, {@code would_wait}, {@code panic}.
   */
  public String code() {
    return code;
  }
}
