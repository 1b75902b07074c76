package io.nexthop;

import java.nio.file.Path;
import java.util.Objects;

/** Documents as {@code nexthop_jni.c} reads them. */
final class Documents {
  private static final int TEXT = 0;
  private static final int PATH = 1;
  private static final int RUNTIME = 2;

  private final Packer out = new Packer(256);
  private int count;
  private int dialect;

  Documents() {
    out.intValue(0);
  }

  /** Of the documents that follow. */
  void dialect(int number) {
    dialect = number;
  }

  Documents files(Path... files) {
    for (Path file : Objects.requireNonNull(files, "files")) {
      add(PATH, dialect, null, Objects.requireNonNull(file, "file").toString());
    }
    return this;
  }

  Documents texts(String... texts) {
    for (String text : Objects.requireNonNull(texts, "documents")) {
      add(TEXT, dialect, null, Objects.requireNonNull(text, "document"));
    }
    return this;
  }

  Documents text(String name, String text) {
    add(TEXT, dialect, Objects.requireNonNull(name, "name"), Objects.requireNonNull(text, "text"));
    return this;
  }

  Documents runtime(String json) {
    add(RUNTIME, 0, null, Objects.requireNonNull(json, "json"));
    return this;
  }

  private void add(int kind, int language, String name, String text) {
    out.byteValue(kind).byteValue(language).text("name", name).text("document", text);
    count++;
  }

  byte[] done() {
    out.patch(0, count);
    return out.roomy();
  }
}
