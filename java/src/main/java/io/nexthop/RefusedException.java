package io.nexthop;

/** A refusal, thrown by the calls that wait. Carries no stack trace: overload is when it must be cheap. */
public final class RefusedException extends NexthopException {
  private static final long serialVersionUID = 1L;

  private final transient Refusal refusal;

  RefusedException(Refusal refusal) {
    super("refused", sentence(refusal), false);
    this.refusal = refusal;
  }

  /** Why there will be no attempt. */
  public Refusal refusal() {
    return refusal;
  }

  /** What to answer the client. */
  public LocalReply reply() {
    return refusal.reply();
  }

  private static String sentence(Refusal refusal) {
    String resource = refusal.resource() == null ? "" : " (" + refusal.resource() + ")";
    String missing = refusal.missing().isEmpty() ? "" : "; " + refusal.missing();
    LocalReply reply = refusal.reply();
    return "no attempt: " + refusal.refusal() + resource + missing + "; the local reply is " + reply.status() + " "
        + reply.flags() + ", " + reply.details();
  }
}
