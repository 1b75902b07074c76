package io.nexthop;

/** A document was refused whole, or could not be read; what served before goes on serving. */
public final class ConfigException extends NexthopException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final int line;
  private final int column;
  private final String path;
  private final String found;
  private final String allowed;
  private final String nearest;

  ConfigException(String message, String file, int line, int column, String path, String found, String allowed,
      String nearest) {
    super("config", message);
    this.file = file;
    this.line = line;
    this.column = column;
    this.path = path;
    this.found = found;
    this.allowed = allowed;
    this.nearest = nearest;
  }

  /** Name of the document, or the file that could not be read; may be empty. */
  public String file() {
    return file;
  }

  /** Line, counted from 1; 0 when the whole document is meant. */
  public int line() {
    return line;
  }

  /** Column, counted from 1; 0 when the whole document is meant. */
  public int column() {
    return column;
  }

  /** Place inside the document, such as {@code clusters[3].outlier_detection.interval}; may be empty. */
  public String path() {
    return path;
  }

  /** What stands at that place; may be empty. */
  public String found() {
    return found;
  }

  /** What may stand there; may be empty. */
  public String allowed() {
    return allowed;
  }

  /** The known name nearest to an unknown one; empty when none is near. */
  public String nearest() {
    return nearest;
  }
}
