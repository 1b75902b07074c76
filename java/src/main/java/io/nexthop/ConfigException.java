package io.nexthop;

/** A document was refused whole, or could not be read; what served before goes on serving. */
public final class ConfigException extends NexthopException {
  private static final long serialVersionUID = 1L;

  private final String file;
  private final int line;
  private final int column;
  private final String path;

  ConfigException(String message, String file, int line, int column, String path) {
    super("config", message);
    this.file = file;
    this.line = line;
    this.column = column;
    this.path = path;
  }

  /** Name of the document. */
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
}
