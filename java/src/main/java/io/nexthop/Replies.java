package io.nexthop;

import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;

/** Reads refusals, local replies and added headers. */
final class Replies {
  private static final int NO_CLUSTER = 5;

  private Replies() {}

  /** The refusal of a choice for this name, as {@code resolve} takes it; null = matched. */
  static Refusal refusal(Engine engine, String name, DecisionBuffer d) {
    int kind = d.refusal();
    Host host = d.hostVersion() == 0 ? null : engine.hosts.get(d.host(), d.hostVersion());
    String missing = kind == NO_CLUSTER && name != null ? engine.missing(name) : "";
    int resource = d.resource();
    long after = d.waiting();
    LocalReply reply = local(d.request());
    return new Refusal(Names.of(Names.REFUSAL, kind), resource == 0 ? null : Names.of(Names.RESOURCE, resource),
        after == 0 || after == Durations.NEVER ? null : Durations.of(after), host,
        reply != null ? reply : named(kind, d.status(), d.flags()), missing);
  }

  private static LocalReply named(int kind, int status, int flags) {
    return new LocalReply(status, Names.flags(flags), Names.raw(Names.DETAILS, kind), Map.of(),
        Names.raw(Names.BODY, kind));
  }

  /** What the engine would answer for this request; null when it has none, or not any more. */
  static LocalReply local(long request) {
    byte[] packed = Native.reply(request);
    if (packed == null) {
      return null;
    }
    Unpacker in = new Unpacker(packed);
    int status = in.intValue();
    String flags = Names.flags(in.intValue());
    String details = in.text();
    String body = in.text();
    String[] pairs = split(in.text());
    Map<String, String> headers = new LinkedHashMap<>();
    for (int i = 0; i + 1 < pairs.length; i += 2) {
      headers.merge(pairs[i], pairs[i + 1], (a, b) -> a + ", " + b);
    }
    return new LocalReply(status, flags, details, Collections.unmodifiableMap(headers), body);
  }

  /** Headers to add (a value) or to remove (empty) for an attempt or for the client. */
  static Map<String, Optional<String>> extra(long id) {
    byte[] packed = Native.extraHeaders(id);
    if (packed == null) {
      throw Errors.of(Native.lastStatus());
    }
    String[] pairs = split(new String(packed, StandardCharsets.UTF_8));
    Map<String, Optional<String>> headers = new LinkedHashMap<>();
    for (int i = 0; i + 1 < pairs.length; i += 2) {
      String value = pairs[i + 1];
      headers.put(pairs[i], value.equals("\1") ? Optional.empty() : Optional.of(value));
    }
    return Collections.unmodifiableMap(headers);
  }

  /** NUL-terminated texts in a row. */
  private static String[] split(String texts) {
    return texts.isEmpty() ? new String[0] : texts.split("\0", -1);
  }
}
