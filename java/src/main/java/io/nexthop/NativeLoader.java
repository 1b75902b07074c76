package io.nexthop;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Finds the shared object: system property {@code nexthop.library.path} (a file or its directory), then
 * {@code java.library.path}, then the one inside the jar, extracted to a private directory.
 */
final class NativeLoader {
  static final String PROPERTY = "nexthop.library.path";
  private static final String LIBRARY = "nexthop_jni";

  private NativeLoader() {}

  static void load() {
    String configured = System.getProperty(PROPERTY);
    if (configured != null) {
      Path path = Path.of(configured);
      Path file = Files.isDirectory(path) ? path.resolve(System.mapLibraryName(LIBRARY)) : path;
      System.load(file.toAbsolutePath().toString());
      return;
    }
    UnsatisfiedLinkError first;
    try {
      System.loadLibrary(LIBRARY);
      return;
    } catch (UnsatisfiedLinkError notThere) {
      first = notThere;
    }
    String resource = resource();
    try (InputStream bundled = NativeLoader.class.getResourceAsStream(resource)) {
      if (bundled == null) {
        throw new UnsatisfiedLinkError("no " + System.mapLibraryName(LIBRARY) + ": not at the system property "
            + PROPERTY + ", not on java.library.path (" + first.getMessage() + "), not in the jar as " + resource);
      }
      extract(bundled);
    } catch (IOException failed) {
      UnsatisfiedLinkError error = new UnsatisfiedLinkError("cannot extract " + resource + ": " + failed
          + "; set the system property " + PROPERTY + " to the library's file");
      error.initCause(failed);
      throw error;
    }
  }

  /** Where the jar holds the library for this system. */
  static String resource() {
    String os = System.getProperty("os.name", "").toLowerCase(Locale.ROOT);
    String system = os.startsWith("linux") ? "linux" : os.startsWith("mac") ? "macos" : "windows";
    String arch = switch (System.getProperty("os.arch", "")) {
      case "amd64", "x86_64" -> "x86_64";
      case "aarch64", "arm64" -> "aarch64";
      default -> System.getProperty("os.arch", "");
    };
    String libc = system.equals("linux") && Files.exists(Path.of("/lib/ld-musl-" + arch + ".so.1")) ? "-musl" : "";
    return "/io/nexthop/native/" + system + "-" + arch + libc + "/" + System.mapLibraryName(LIBRARY);
  }

  private static void extract(InputStream bundled) throws IOException {
    // The JDK gives the directory a random name that only its owner may enter.
    Path directory = Files.createTempDirectory("nexthop");
    Path file = directory.resolve(System.mapLibraryName(LIBRARY));
    try {
      Files.copy(bundled, file, StandardCopyOption.REPLACE_EXISTING);
      System.load(file.toString());
    } finally {
      // A loaded library needs its file no longer, except on Windows.
      if (!deleted(file) || !deleted(directory)) {
        directory.toFile().deleteOnExit();
        file.toFile().deleteOnExit();
      }
    }
  }

  private static boolean deleted(Path path) {
    try {
      return Files.deleteIfExists(path);
    } catch (IOException busy) {
      return false;
    }
  }
}
