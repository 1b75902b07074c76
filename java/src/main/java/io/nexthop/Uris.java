package io.nexthop;

import java.net.URI;
import java.nio.charset.StandardCharsets;

/** The URI of a host and a path; a path as it came from a client may hold what {@link URI} refuses. */
final class Uris {
  private static final String PLAIN = "-._~!$&'()*+,;=:@/?";

  private Uris() {}

  static URI of(Host host, String path) {
    if (host.port() == 0) {
      throw Errors.invalid(host.address() + " is no network address, so it has no URI");
    }
    String scheme = host.secure() ? "https" : "http";
    String usual = host.secure() ? ":443" : ":80";
    String address = host.address();
    if (address.endsWith(usual)) {
      address = address.substring(0, address.length() - usual.length());
    }
    String slash = path.startsWith("/") ? "" : "/";
    return URI.create(scheme + "://" + address + slash + escaped(path));
  }

  private static String escaped(String path) {
    StringBuilder out = null;
    byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < bytes.length; i++) {
      int c = bytes[i] & 0xff;
      boolean fine = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
          || c < 0x80 && PLAIN.indexOf(c) >= 0 || c == '%' && hex(bytes, i + 1) && hex(bytes, i + 2);
      if (!fine && out == null) {
        out = new StringBuilder(path.length() + 16).append(new String(bytes, 0, i, StandardCharsets.US_ASCII));
      }
      if (out != null) {
        if (fine) {
          out.append((char) c);
        } else {
          out.append('%').append(Character.forDigit(c >> 4, 16)).append(Character.forDigit(c & 15, 16));
        }
      }
    }
    return out == null ? path : out.toString();
  }

  private static boolean hex(byte[] bytes, int at) {
    return at < bytes.length && Character.digit(bytes[at], 16) >= 0;
  }
}
