import type { Fetch, OdpClient } from "../../common/client/index.ts";
import { CLIENT_CALL_TIMEOUT_MS } from "../../common/limits.ts";
import type { Clock, Random } from "../../common/time.ts";
import { findTimeZone, UTC, type TimeZone } from "../../common/times/index.ts";
import { accessOf, type Access } from "./contexts/access.ts";
import type { ContextFile } from "./contexts/file.ts";
import type { CommonWords } from "./declared/program.ts";
import type { Recorded, Shell } from "./declared/shell.ts";
import { UsageError } from "./declared/usage.ts";
import type { View } from "./formats/columns.ts";
import { FORMATS, type Format } from "./formats/names.ts";
import { paintFor } from "./formats/paint.ts";
import { printableLines } from "./formats/printable.ts";
import type { Rendering } from "./formats/rendered.ts";
import type { TimesOf } from "./formats/streamed.ts";
import type { Output } from "./output.ts";
import { pagerOf } from "./pager.ts";

/** Parts of the process. */
export interface ProcessParts {
  /** Version of the program. */
  readonly version: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly contexts: ContextFile;
  readonly output: Pick<Output, "write">;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stdout: {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
    write(data: string | Uint8Array): unknown;
  };
  readonly stderr: { readonly isTTY?: boolean; write(data: string | Uint8Array): unknown };
  on(signal: "SIGINT" | "SIGTERM", listener: () => void): unknown;
  off(signal: "SIGINT" | "SIGTERM", listener: () => void): unknown;
  /** Shows a text with a pager. Returns false if it has to be written at once. */
  readonly pager: ((command: string, text: string) => Promise<boolean>) | undefined;
  /** True if the standard output is a pipe whose reader was there at an earlier call, and is gone. */
  isReaderGone(): Promise<boolean>;
  readonly fetch: Fetch;
  readonly clock: Clock;
  readonly random: Pick<Random, "next">;
  readonly platform: string;
  /** Name of the time zone of this machine. */
  zoneName(): string;
}

/** State that the shells of one command line share. */
interface Shared {
  access?: Promise<Access>;
  ended?: AbortSignal;
  /** True while Ctrl-C is for another program. */
  isUndisturbed?: boolean;
  /** By their timeout. */
  readonly clients: Map<number, OdpClient>;
  /** The shell that gets the warnings of calls; absent: the first one. */
  recording?: Shell;
}

/** The shell of one command line. It loads the client, formats and questions when they are used: a start is faster. */
export class ProcessShell implements Shell {
  readonly #parts: ProcessParts;
  readonly #common: CommonWords;
  readonly #format: Format;
  readonly #fields: readonly string[] | undefined;
  #zone: TimeZone | undefined;
  readonly #shared: Shared;

  constructor(parts: ProcessParts, common: CommonWords, shared: Shared = { clients: new Map() }) {
    this.#parts = parts;
    this.#common = common;
    this.#shared = shared;
    this.#format = formatOf(common);
    this.#fields = fieldsOf(common.fields);
    if (this.#fields && this.#format === "name") throw new UsageError("--fields and -o name exclude each other.");
    this.#zone = zoneOf(common);
  }

  get contexts(): ContextFile {
    return this.#parts.contexts;
  }

  get version(): string {
    return this.#parts.version;
  }

  get environment(): Shell["environment"] {
    return this.#parts.environment;
  }

  get stderr(): Shell["stderr"] {
    return this.#parts.stderr;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  get fetch(): Fetch {
    return this.#parts.fetch;
  }

  get random(): Pick<Random, "next"> {
    return this.#parts.random;
  }

  get platform(): string {
    return this.#parts.platform;
  }

  access(): Promise<Access> {
    const { context, url, user } = this.#common;
    const words = { context: textOf(context), url: textOf(url), user: textOf(user) };
    return (this.#shared.access ??= accessOf(words, this.environment, this.contexts));
  }

  async client(timeoutMs = CLIENT_CALL_TIMEOUT_MS): Promise<OdpClient> {
    const { url, credentials } = await this.access();
    const { clients } = this.#shared;
    const onWarning = (text: string): void => (this.#shared.recording ?? this).note(`warning: ${text}`);
    const { OdpClient } = await import("../../common/client/index.ts");
    const client =
      clients.get(timeoutMs) ?? new OdpClient({ url, timeoutMs, onWarning, fetch: this.fetch, ...credentials });
    clients.set(timeoutMs, client);
    return client;
  }

  ended(): AbortSignal {
    if (this.#shared.ended === undefined) {
      const { first, release } = this.signals();
      // A second signal ends the process, if the command does not end by the first one.
      first.addEventListener("abort", release, { once: true });
      this.#shared.ended = first;
    }
    return this.#shared.ended;
  }

  signals(): ReturnType<Shell["signals"]> {
    const [first, second] = [new AbortController(), new AbortController()];
    const interrupt = (): void => (first.signal.aborted ? second : first).abort();
    const onKey = (): void => {
      if (!this.#shared.isUndisturbed) interrupt();
    };
    this.#parts.on("SIGINT", onKey);
    this.#parts.on("SIGTERM", interrupt);
    const release = (): void => {
      this.#parts.off("SIGINT", onKey);
      this.#parts.off("SIGTERM", interrupt);
    };
    return { first: first.signal, second: second.signal, release };
  }

  async undisturbed<T>(work: () => Promise<T>): Promise<T> {
    const ignore = (): void => undefined;
    this.#parts.on("SIGINT", ignore);
    this.#shared.isUndisturbed = true;
    try {
      return await work();
    } finally {
      this.#shared.isUndisturbed = false;
      this.#parts.off("SIGINT", ignore);
    }
  }

  write(data: string | Uint8Array): Promise<boolean> {
    return this.#parts.output.write(data);
  }

  isReaderGone(): Promise<boolean> {
    return this.#parts.isReaderGone();
  }

  pass(stream: "stdout" | "stderr", data: Uint8Array): void {
    this.#parts[stream].write(data);
  }

  note(text: string): void {
    this.#parts.stderr.write(`${printableLines(text)}\n`);
  }

  async show(answer: unknown, view?: View): Promise<void> {
    const { rendered } = await import("./formats/rendered.ts");
    const text = rendered(answer, this.#rendering(), view);
    if (!(await this.#page(text))) await this.write(text);
  }

  async stream(batches: AsyncIterable<readonly unknown[]>, timesOf?: TimesOf): Promise<boolean> {
    const { streamedText } = await import("./formats/streamed.ts");
    for await (const text of streamedText(batches, this.#rendering(), timesOf))
      if (!(await this.write(text))) return false;
    return true;
  }

  #rendering(): Rendering {
    const { stdout, environment, clock } = this.#parts;
    const { terminal } = this;
    return {
      ...{ format: this.#format, fields: this.#fields, width: terminal?.columns, paint: paintFor(stdout, environment) },
      // Found once a time is shown: the name of the zone takes longer than a table.
      zone: { offsetMs: (atMs: number) => this.zone.offsetMs(atMs) },
      ...(terminal && { nowMs: clock.nowMs() }),
    };
  }

  get isPaged(): boolean {
    const { pager, environment } = this.#parts;
    const isWanted = this.#common["no-pager"] !== true && pagerOf(environment) !== undefined;
    return isWanted && pager !== undefined && this.terminal !== undefined;
  }

  /** Returns false if the text has to be written. */
  async #page(text: string): Promise<boolean> {
    const { terminal, isPaged } = this;
    const { pager, environment } = this.#parts;
    const command = pagerOf(environment);
    if (!isPaged || terminal === undefined || pager === undefined || command === undefined) return false;
    if (countOf(text, "\n") < terminal.rows) return false;
    return this.undisturbed(() => pager(command, text));
  }

  recording(): ReturnType<Shell["recording"]> {
    const recorded: Recorded[] = [];
    const record = (stream: Recorded["stream"], data: string | Uint8Array): true => {
      recorded.push({ stream, text: Buffer.from(data).toString() });
      return true;
    };
    const { stdout, stderr } = this.#parts;
    const parts = {
      ...this.#parts,
      pager: undefined,
      output: { write: (data: string | Uint8Array) => Promise.resolve(record("stdout", data)) },
      stdout: { ...sizeOf(stdout), write: (data: string | Uint8Array) => record("stdout", data) },
      stderr: { isTTY: stderr.isTTY === true, write: (data: string | Uint8Array) => record("stderr", data) },
    };
    const shell = new ProcessShell(parts, this.#common, this.#shared);
    this.#shared.recording = shell;
    return { shell, recorded };
  }

  get terminal(): Shell["terminal"] {
    const { isTTY, columns, rows } = sizeOf(this.#parts.stdout);
    return isTTY ? { columns, rows } : undefined;
  }

  get zone(): TimeZone {
    return (this.#zone ??= findTimeZone(this.#parts.zoneName()) ?? UTC);
  }

  get format(): Format {
    return this.#format;
  }

  async input(path: string): Promise<Buffer> {
    const { inputOf } = await import("./input.ts");
    return inputOf(path, this.#parts.stdin);
  }

  get isTyped(): boolean {
    return this.#parts.stdin.isTTY === true;
  }

  async secret(question: string): Promise<string> {
    const { stdin, stderr } = this.#parts;
    const { secretLine } = await import("./contexts/secret.ts");
    return secretLine(question, { stdin, stderr, signal: this.ended() });
  }
}

/** Size of a terminal that does not tell it. */
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

function sizeOf({ isTTY, columns, rows }: ProcessParts["stdout"]) {
  return { isTTY: isTTY === true, columns: columns || DEFAULT_COLUMNS, rows: rows || DEFAULT_ROWS };
}

function formatOf({ output, json }: CommonWords): Format {
  const format = FORMATS.find((one) => one === output);
  if (json !== true) return format ?? "table";
  if (format !== undefined && format !== "json") throw new UsageError(`--json and -o ${format} exclude each other.`);
  return "json";
}

function fieldsOf(text: CommonWords["fields"]): readonly string[] | undefined {
  if (typeof text !== "string") return undefined;
  const fields = text.split(",").map((name) => name.trim());
  if (fields.includes("")) throw new UsageError(`--fields takes names separated by commas, as --fields name,status.`);
  return fields;
}

function zoneOf({ zone, utc }: CommonWords): TimeZone | undefined {
  if (utc === true) {
    if (zone !== undefined) throw new UsageError("--zone and --utc exclude each other.");
    return UTC;
  }
  if (typeof zone !== "string") return undefined;
  const found = findTimeZone(zone);
  if (found !== undefined) return found;
  throw new UsageError(`There is no time zone ${zone}: --zone takes a name such as Europe/Oslo, UTC, or +01:00.`);
}

function countOf(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1)) count++;
  return count;
}

function textOf(value: string | true | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
