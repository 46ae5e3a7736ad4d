import {
  JOB_ANSWER_MAX_BYTES,
  JOB_OUTPUT_MAX_BYTES,
  JOB_ROW_OUTPUT_MAX_BYTES,
  JOB_TRY_MESSAGE_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import { TextStream } from "../../../common/text/text-stream.ts";
import type { CommandOutcome, OutputPiece } from "../hosts/index.ts";
import type { CommandEnd } from "./open-runs.ts";

/** Writes bytes at an offset of the run's stream; repeating is safe. */
export type AppendOutput = (offset: number, bytes: Uint8Array) => Promise<unknown>;

/** Bytes of earlier tries, and those of them that are stored. */
export interface OutputBefore {
  readonly written: number;
  readonly kept: number;
}

/**
 * Output of one run as it comes: everything up to `JOB_OUTPUT_MAX_BYTES` goes to the stream in order, the first parts
 * are kept for the run's row and for the answer. What is beyond a bound is counted.
 */
export class RunOutput {
  readonly #append: AppendOutput;
  readonly #out = new FirstPart(JOB_ROW_OUTPUT_MAX_BYTES);
  readonly #err = new FirstPart(JOB_ROW_OUTPUT_MAX_BYTES);
  readonly #both = new FirstPart(JOB_ANSWER_MAX_BYTES);
  readonly #before: OutputBefore;
  #waiting: Uint8Array[] = [];
  #accepted: number;
  #writing: Promise<void> | undefined;
  #written: number;
  #failure: unknown;
  readonly #commands: CommandEnd[] = [];

  /** What tries before this one wrote stands before its output, and is not in its first parts. */
  constructor(append: AppendOutput, before: OutputBefore = { written: 0, kept: 0 }) {
    this.#append = append;
    this.#before = before;
    this.#accepted = before.kept;
    this.#written = before.kept;
  }

  take(piece: OutputPiece): void {
    (piece.stderr ? this.#err : this.#out).take(piece.data);
    this.#both.take(piece.data);
    const kept = piece.data.subarray(0, JOB_OUTPUT_MAX_BYTES - this.#accepted);
    if (kept.length === 0 || this.#failure !== undefined) return;
    this.#accepted += kept.length;
    // The sender may use its buffer again.
    this.#waiting.push(kept.slice());
    this.#writing ??= this.#write();
  }

  /** What came since the end of the command before is of this one; what its host did not send is counted with it. */
  ended({ host: _host, message, outDropped = 0, errDropped = 0, ...how }: CommandOutcome): void {
    this.#out.total += outDropped;
    this.#err.total += errDropped;
    this.#both.total += outDropped + errDropped;
    const [out, err] = [this.#out.characters, this.#err.characters];
    this.#commands.push({ ...how, message: beginningOf(message, JOB_TRY_MESSAGE_MAX_CHARACTERS), out, err });
  }

  /** The commands that ended. */
  get commands(): readonly CommandEnd[] {
    return this.#commands;
  }

  get out(): string {
    return this.#out.text();
  }

  get err(): string {
    return this.#err.text();
  }

  /** Both streams as they came. */
  get text(): string {
    return this.#both.text();
  }

  /** Bytes the command wrote, kept or not. */
  get bytes(): number {
    return this.#before.written + this.#both.total;
  }

  /** Bytes of it that are stored. */
  get kept(): number {
    return this.#written;
  }

  get writing(): boolean {
    return this.#writing !== undefined;
  }

  /** Resolves when all that is kept is written; answers why not, when it could not be. */
  async finish(): Promise<unknown> {
    while (this.#writing) await this.#writing;
    return this.#failure;
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#failure === undefined) {
        const bytes = Buffer.concat(this.#waiting);
        this.#waiting = [];
        await this.#append(this.#written, bytes);
        this.#written += bytes.length;
      }
    } catch (error) {
      this.#failure = error;
    } finally {
      if (this.#failure !== undefined) this.#waiting = [];
      this.#writing = undefined;
    }
  }
}

class FirstPart {
  readonly #maxBytes: number;
  readonly #pieces: Uint8Array[] = [];
  #kept = 0;
  total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  take(bytes: Uint8Array): void {
    this.total += bytes.length;
    const kept = bytes.slice(0, this.#maxBytes - this.#kept);
    if (kept.length === 0) return;
    this.#kept += kept.length;
    this.#pieces.push(kept);
  }

  get characters(): number {
    return this.#decoded().length;
  }

  #decoded(): string {
    const stream = new TextStream();
    const text = stream.take(Buffer.concat(this.#pieces));
    // The bound may lie within a character.
    return this.total > this.#kept ? text : text + stream.end();
  }

  text(): string {
    const cut = this.total > this.#kept ? `\n[${this.total - this.#kept} more bytes]` : "";
    return this.#decoded() + cut;
  }
}
