package io.nexthop;

/** What can be told wrong without asking the library. */
final class Checks {
  private Checks() {}

  /** A status, in the words of the library: the boundary has 16 bits for it. */
  static int status(int status) {
    if (status != 0 && (status < 100 || status > 999)) {
      throw Errors.invalid("the status is " + status + "; it is 100 to 999, or 0 for a success without one");
    }
    return status;
  }

  /** An attempt number, told as the signed number that it is here. */
  static int number(int attempt) {
    if (attempt < 1) {
      throw Errors.invalid(
          "the attempt number is " + attempt + "; attempts count from 1 to " + Integer.MAX_VALUE);
    }
    return attempt;
  }
}
