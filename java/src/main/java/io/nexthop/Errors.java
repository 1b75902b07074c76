package io.nexthop;

import java.nio.charset.StandardCharsets;

/** Turns the library's status numbers and its last sentence into exceptions. */
final class Errors {
  static final int INVALID = -1;
  static final int ENDED = -2;
  static final int STATE = -3;
  static final int CLOSED = -4;
  static final int CONFIG = -5;
  static final int IO = -6;
  static final int NOT_FOUND = -7;
  static final int LIMIT = -8;
  static final int EMPTY = -10;
  static final int PANIC = -11;
  /** The glue's own: the JVM has an OutOfMemoryError pending or the allocation failed. */
  static final int NO_MEMORY = -100;

  private Errors() {}

  /** The exception of a status below 0; asks for the calling thread's last sentence. */
  static RuntimeException of(int status) {
    byte[] text = Native.lastError();
    return of(status, text == null ? "" : new String(text, StandardCharsets.UTF_8));
  }

  static RuntimeException of(int status, String sentence) {
    return switch (status) {
      case INVALID -> new UsageException("invalid", or(sentence, "invalid argument"));
      case ENDED -> new UsageException("ended", or(sentence, "the attempt or request has ended"));
      case STATE -> new UsageException("state", or(sentence, "not legal in this state"));
      case CLOSED -> new UsageException("closed", or(sentence, "the engine is closed"));
      case NOT_FOUND -> new UsageException("not_found", or(sentence, "not found"));
      case LIMIT -> new UsageException("limit", or(sentence, "a fixed limit is reached"));
      case CONFIG, IO -> config(or(sentence, "the document was refused"));
      default -> new InternalException(or(sentence, "status " + status));
    };
  }

  static UsageException invalid(String sentence) {
    return new UsageException("invalid", sentence);
  }

  private static String or(String sentence, String otherwise) {
    return sentence.isEmpty() ? otherwise : sentence;
  }

  private static ConfigException config(String sentence) {
    byte[] packed = Native.lastErrorParts();
    if (packed == null) {
      return new ConfigException(sentence, "", 0, 0, "", "", "", "");
    }
    Unpacker parts = new Unpacker(packed);
    int line = parts.intValue();
    int column = parts.intValue();
    return new ConfigException(sentence, parts.text(), line, column, parts.text(), parts.text(), parts.text(),
        parts.text());
  }
}
