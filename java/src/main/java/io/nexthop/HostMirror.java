package io.nexthop;

/**
 * The face's own host objects by slot. Equal version = same object; else that one record is fetched. Slots fill
 * lazily in chunks, so a million hosts cost only those that are used.
 */
final class HostMirror {
  private static final int CHUNK = 1024;

  private final long engine;
  private volatile Host[][] chunks = new Host[0][];

  HostMirror(long engine) {
    this.engine = engine;
  }

  Host get(int slot, int version) {
    Host[][] all = chunks;
    int chunk = slot >>> 10;
    if (chunk < all.length) {
      // A racy read is fine: hosts have final fields only, and an old one has another version.
      Host host = all[chunk][slot & CHUNK - 1];
      if (host != null && host.version == version) {
        return host;
      }
    }
    return fetch(slot, version);
  }

  private Host fetch(int slot, int version) {
    byte[] packed = Native.host(engine, slot, version);
    if (packed == null && Native.lastStatus() == Errors.NOT_FOUND) {
      packed = Native.host(engine, slot, 0); // it changed between the decision and this
    }
    if (packed == null) {
      throw Errors.of(Native.lastStatus());
    }
    Unpacker in = new Unpacker(packed);
    int found = in.intValue();
    long weight = in.intValue() & 0xffff_ffffL;
    int bits = in.intValue();
    int port = in.intValue();
    int priority = in.intValue();
    long connectTimeout = in.longValue();
    Host host = new Host(found, in.text(), port, in.text(), in.text(), weight, priority, in.text(), in.text(),
        in.text(), in.text(), (bits & 1) != 0, Durations.of(connectTimeout));
    chunk(slot >>> 10)[slot & CHUNK - 1] = host;
    return host;
  }

  private synchronized Host[] chunk(int index) {
    Host[][] all = chunks;
    if (index >= all.length) {
      Host[][] more = java.util.Arrays.copyOf(all, Math.max(index + 1, all.length * 2));
      for (int i = all.length; i < more.length; i++) {
        more[i] = new Host[CHUNK];
      }
      chunks = more;
      all = more;
    }
    return all[index];
  }
}
