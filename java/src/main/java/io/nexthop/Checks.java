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

  /** An attempt number, told as the signed number that it is here; 0 when the caller does not know it. */
  static int number(int attempt) {
    return number(attempt, 0);
  }

  /** The same where a whole head comes with it, whose number 0 means a request of more attempts. */
  static int known(int attempt) {
    return number(attempt, 1);
  }

  private static int number(int attempt, int least) {
    if (attempt < least) {
      throw Errors.invalid(
          "the attempt number is " + attempt + "; attempts count from 1 to " + Integer.MAX_VALUE);
    }
    return attempt;
  }
}
