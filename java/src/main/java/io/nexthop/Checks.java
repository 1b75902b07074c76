package io.nexthop;

/** What can be told wrong without asking the library. */
final class Checks {
  private Checks() {}

  /** A status that fits the boundary's 16 bits; whether it is legal is the engine's to say. */
  static int status(int status) {
    if (status != 0 && (status < 100 || status > 999)) {
      throw Errors.invalid("status is " + status + ", not 0 or 100 to 999");
    }
    return status;
  }
}
