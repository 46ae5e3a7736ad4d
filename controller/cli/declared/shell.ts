import type { Fetch, OdpClient } from "../../../common/client/index.ts";
import type { Clock, Random } from "../../../common/time.ts";
import type { TimeZone } from "../../../common/times/index.ts";
import type { Access } from "../contexts/access.ts";
import type { ContextFile } from "../contexts/file.ts";
import type { View } from "../formats/columns.ts";
import type { Format } from "../formats/names.ts";
import type { TimesOf } from "../formats/streamed.ts";

/** A text that a command has written. */
export interface Recorded {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

/** The program as its commands see it. */
export interface Shell {
  /** A client of the controller, with the credentials of the user. The warnings of its calls are noted. */
  client(timeoutMs?: number): Promise<OdpClient>;
  /** For clients with other credentials. */
  readonly fetch: Fetch;
  access(): Promise<Access>;
  readonly contexts: ContextFile;
  /** Fires at the first SIGINT or SIGTERM, from the first use of this member on. */
  ended(): AbortSignal;
  /** Fire at the first and at the second signal. */
  signals(): { readonly first: AbortSignal; readonly second: AbortSignal; readonly release: () => void };
  /** During the work, Ctrl-C is for the program that the work runs. */
  undisturbed<T>(work: () => Promise<T>): Promise<T>;
  /** Waits for a slow reader. Returns false if nothing can be written any more. */
  write(data: string | Uint8Array): Promise<boolean>;
  /** True if the output is a pipe whose reader was there at an earlier call, and is gone. */
  isReaderGone(): Promise<boolean>;
  /** Passes on output of other programs as it comes. */
  pass(stream: "stdout" | "stderr", data: Uint8Array): void;
  /** Writes a line for people to the standard error. */
  note(text: string): void;
  /** Writes a list of things, one thing or a text in the format that the user wants. */
  show(answer: unknown, view?: View): Promise<void>;
  /**
   * Writes the rows of a list as they arrive. `timesOf` is for tables. Returns false if nothing can be written any more;
   * the rest is then not read.
   */
  stream(batches: AsyncIterable<readonly unknown[]>, timesOf?: TimesOf): Promise<boolean>;
  /** True if a pager shows answers that are longer than the terminal. */
  readonly isPaged: boolean;
  /** A shell with the same client, whose output is kept in place of being written. */
  recording(): { readonly shell: Shell; readonly recorded: readonly Recorded[] };
  /** Size of the terminal that shows the answers; `undefined`: the output is no terminal. */
  readonly terminal: { readonly columns: number; readonly rows: number } | undefined;
  readonly format: Format;
  /** Zone of the shown times. */
  readonly zone: TimeZone;
  /** Reads a file, or the standard input for `-`. */
  input(path: string): Promise<Buffer>;
  /** Asks for a text that is not shown. Without a terminal, reads the next line of the standard input. */
  secret(question: string): Promise<string>;
  /** True if the standard input is a terminal. */
  readonly isTyped: boolean;
  /** Version of this program. */
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown };
  readonly clock: Clock;
  readonly random: Pick<Random, "next">;
  readonly platform: string;
}
