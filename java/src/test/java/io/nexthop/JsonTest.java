package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class JsonTest {
  @Test
  void readsWhatItWrites() {
    for (String text : List.of("{}", "[]", "null", "true", "[1,-2,3.5,\"a\"]", "{\"a\":{\"b\":[{},[]]},\"c\":\"\\u00e9\"}",
        "\"\\n\\t\\\"\\\\/\"", "18446744073709551615", "-9223372036854775808", "1e3")) {
      Object value = Json.parse(text);
      assertEquals(value, Json.parse(Json.text(value)), text);
    }
    assertEquals(new BigInteger("18446744073709551615"), Json.parse("18446744073709551615"));
    assertEquals(Long.MIN_VALUE, Json.parse("-9223372036854775808"));
    assertEquals("\ud83d\ude00", Json.parse(Json.text("\ud83d\ude00")));
    assertNull(Json.parse(" null "));
    assertEquals(Map.of("value", 1L), Json.object("1"));
    assertEquals("[null,false,\"c\"]", Json.text(Arrays.asList(null, false, 'c')));
  }

  @Test
  void refusesWhatIsNoJson() {
    for (String text : List.of("", "{", "[1", "{\"a\"}", "{a:1}", "tru", "1 2", "\"", "\"\\u12\"", "\"\\uzzzz\"", "--1",
        "[1,]", "[".repeat(10_000))) {
      assertThrows(InternalException.class, () -> Json.parse(text), text);
    }
    Meshes.usage("invalid", () -> Json.text(Double.POSITIVE_INFINITY));
  }
}
