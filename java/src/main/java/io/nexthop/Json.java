package io.nexthop;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads and writes JSON: objects keep their order, whole numbers stay whole. For cold calls only. */
final class Json {
  private static final int DEPTH = 256;

  private final String text;
  private int at;

  private Json(String text) {
    this.text = text;
  }

  /** An object's members; a text that is something else is wrapped under the name {@code value}. */
  static Map<String, Object> object(String text) {
    Object value = parse(text);
    if (value instanceof Map<?, ?> map) {
      @SuppressWarnings("unchecked") // keys of parsed objects are strings
      Map<String, Object> members = (Map<String, Object>) map;
      return members;
    }
    return Collections.singletonMap("value", value);
  }

  /** The objects of an array. */
  static List<Map<String, Object>> objects(String text) {
    List<Map<String, Object>> all = new ArrayList<>();
    if (parse(text) instanceof List<?> items) {
      for (Object item : items) {
        if (item instanceof Map<?, ?> map) {
          @SuppressWarnings("unchecked") // as above
          Map<String, Object> members = (Map<String, Object>) map;
          all.add(members);
        }
      }
    }
    return all;
  }

  static Object parse(String text) {
    Json json = new Json(text);
    Object value = json.value(0);
    json.blank();
    if (json.at != text.length()) {
      throw json.bad("end of text");
    }
    return value;
  }

  static String text(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out, 0);
    return out.toString();
  }

  private InternalException bad(String wanted) {
    return new InternalException("JSON: expected " + wanted + " at character " + at);
  }

  private void blank() {
    while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
      at++;
    }
  }

  private boolean take(char c) {
    blank();
    if (at < text.length() && text.charAt(at) == c) {
      at++;
      return true;
    }
    return false;
  }

  private void need(char c) {
    if (!take(c)) {
      throw bad("'" + c + "'");
    }
  }

  private Object value(int depth) {
    blank();
    if (at >= text.length() || depth > DEPTH) {
      throw bad("a value");
    }
    return switch (text.charAt(at)) {
      case '{' -> members(depth);
      case '[' -> items(depth);
      case '"' -> string();
      case 't' -> word("true", true);
      case 'f' -> word("false", false);
      case 'n' -> word("null", null);
      default -> number();
    };
  }

  private Object word(String word, Object value) {
    if (!text.startsWith(word, at)) {
      throw bad(word);
    }
    at += word.length();
    return value;
  }

  private Map<String, Object> members(int depth) {
    Map<String, Object> map = new LinkedHashMap<>();
    at++;
    if (!take('}')) {
      do {
        blank();
        if (at >= text.length() || text.charAt(at) != '"') {
          throw bad("a name");
        }
        String name = string();
        need(':');
        map.put(name, value(depth + 1));
      } while (take(','));
      need('}');
    }
    return Collections.unmodifiableMap(map);
  }

  private List<Object> items(int depth) {
    List<Object> list = new ArrayList<>();
    at++;
    if (!take(']')) {
      do {
        list.add(value(depth + 1));
      } while (take(','));
      need(']');
    }
    return Collections.unmodifiableList(list);
  }

  private String string() {
    StringBuilder out = new StringBuilder();
    for (at++; at < text.length(); at++) {
      char c = text.charAt(at);
      if (c == '"') {
        at++;
        return out.toString();
      }
      out.append(c == '\\' ? escape() : c);
    }
    throw bad("'\"'");
  }

  private char escape() {
    if (++at >= text.length()) {
      throw bad("an escape");
    }
    char c = text.charAt(at);
    return switch (c) {
      case 'n' -> '\n';
      case 't' -> '\t';
      case 'r' -> '\r';
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'u' -> {
        if (at + 4 >= text.length()) {
          throw bad("four hex digits");
        }
        try {
          char code = (char) Integer.parseInt(text, at + 1, at + 5, 16);
          at += 4;
          yield code;
        } catch (NumberFormatException notHex) {
          throw bad("four hex digits");
        }
      }
      default -> c;
    };
  }

  private Object number() {
    int from = at;
    boolean whole = true;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
      whole &= ".eE".indexOf(text.charAt(at)) < 0;
      at++;
    }
    String digits = text.substring(from, at);
    try {
      if (!whole) {
        return Double.valueOf(digits);
      }
      if (digits.length() < 19) {
        return Long.valueOf(digits);
      }
      BigInteger big = new BigInteger(digits);
      return big.bitLength() < Long.SIZE ? (Object) big.longValue() : big;
    } catch (NumberFormatException notOne) {
      at = from;
      throw bad("a value");
    }
  }

  private static void write(Object value, StringBuilder out, int depth) {
    if (depth > DEPTH) {
      throw Errors.invalid("the value is nested more than " + DEPTH + " deep");
    }
    if (value == null || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof Number number) {
      double real = number.doubleValue();
      if (Double.isNaN(real) || Double.isInfinite(real)) {
        throw Errors.invalid("JSON has no number " + number);
      }
      out.append(number);
    } else if (value instanceof Map<?, ?> map) {
      String comma = "{";
      for (Map.Entry<?, ?> entry : map.entrySet()) {
        quote(String.valueOf(entry.getKey()), out.append(comma));
        write(entry.getValue(), out.append(':'), depth + 1);
        comma = ",";
      }
      out.append(map.isEmpty() ? "{}" : "}");
    } else if (value instanceof Iterable<?> items) {
      out.append('[');
      String comma = "";
      for (Object item : items) {
        write(item, out.append(comma), depth + 1);
        comma = ",";
      }
      out.append(']');
    } else if (value instanceof CharSequence || value instanceof Character) {
      quote(value.toString(), out);
    } else {
      throw Errors.invalid("JSON has no " + value.getClass().getName());
    }
  }

  private static void quote(String value, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < 0x20 || Character.isSurrogate(c)) {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }
}
