package io.nexthop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NativeLoaderTest {
  @TempDir Path folder;

  /** Another JVM, since a library is loaded once; what it prints. */
  private String java(String... options) throws Exception {
    List<String> line = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
    line.addAll(List.of(options));
    line.addAll(List.of("-Djava.io.tmpdir=" + folder, "-cp", System.getProperty("java.class.path"), Prints.class.getName()));
    Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    process.waitFor();
    return printed;
  }

  static final class Prints {
    private Prints() {}

    public static void main(String[] args) {
      System.out.println("version " + Engine.version());
    }
  }

  private Path library() throws IOException {
    Path file = folder.resolve(System.mapLibraryName("nexthop_jni"));
    Files.copy(NativeLoaderTest.class.getResourceAsStream(NativeLoader.resource()), file,
        StandardCopyOption.REPLACE_EXISTING);
    return file;
  }

  @Test
  void fromTheJarAPropertyOrTheSystemsPath() throws Exception {
    assertNotNull(NativeLoader.class.getResource(NativeLoader.resource()));
    String expected = "version " + Engine.version();
    assertTrue(java().contains(expected));
    try (var left = Files.list(folder)) {
      assertEquals(List.of(), left.filter(path -> path.getFileName().toString().startsWith("nexthop")).toList());
    }
    Path file = library();
    assertTrue(java("-D" + NativeLoader.PROPERTY + "=" + file).contains(expected));
    assertTrue(java("-D" + NativeLoader.PROPERTY + "=" + folder).contains(expected));
    assertTrue(java("-Djava.library.path=" + folder).contains(expected));
    String missing = java("-D" + NativeLoader.PROPERTY + "=" + folder.resolve("nothing.so"));
    assertTrue(missing.contains("UnsatisfiedLinkError"), missing);
  }
}
