import {
  JOB_ANSWER_MAX_BYTES,
  JOB_OUTPUT_MAX_BYTES,
  JOB_ROW_OUTPUT_MAX_BYTES,
  JOB_TRY_MESSAGE_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { TextStream } from "../../../../common/text/text-stream.ts";
import type { CommandOutcome, OutputPiece } from "../../hosts/index.ts";
import type { CommandEnd } from "../runs/open-runs.ts";

/** Writes bytes at an offset of the run's stream. Safe to repeat. */
export type AppendOutput = (offset: number, bytes: Uint8Array) => Promise<unknown>;

/** Number of bytes that earlier tries wrote, and of those that are stored. */
export interface OutputBefore {
  readonly written: number;
  readonly kept: number;
}

/**
 * Output of one run as it arrives. The first `JOB_OUTPUT_MAX_BYTES` go to the stream, in order. The first bytes are
 * also kept for the run's row and for the answer. Bytes beyond these limits are only counted.
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

  /**
   * In the stream, the output of earlier tries comes before this output. The texts for the row and the answer do not
   * contain it.
   */
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
    // Copy the bytes, because the sender may reuse its buffer.
    this.#waiting.push(kept.slice());
    this.#writing ??= this.#write();
  }

  /**
   * Marks the end of a command: all output since the previous end belongs to it. Bytes that the host dropped are added
   * to the totals of the run's output.
   */
  ended({ host: _host, message, outDropped = 0, errDropped = 0, ...how }: CommandOutcome): void {
    this.#out.total += outDropped;
    this.#err.total += errDropped;
    this.#both.total += outDropped + errDropped;
    const [out, err] = [this.#out.characters, this.#err.characters];
    this.#commands.push({ ...how, message: beginningOf(message, JOB_TRY_MESSAGE_MAX_CHARACTERS), out, err });
  }

  /** The finished commands, in order. */
  get commands(): readonly CommandEnd[] {
    return this.#commands;
  }

  get out(): string {
    return this.#out.text();
  }

  get err(): string {
    return this.#err.text();
  }

  /** Both streams together, in the order of arrival. */
  get text(): string {
    return this.#both.text();
  }

  /** Bytes that the commands wrote, stored or not. */
  get bytes(): number {
    return this.#before.written + this.#both.total;
  }

  /** Number of stored bytes. */
  get kept(): number {
    return this.#written;
  }

  get writing(): boolean {
    return this.#writing !== undefined;
  }

  /** Waits until all kept output is written. Answers the error if a write failed, otherwise undefined. */
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
    // At the limit, the last character may be incomplete: then it is left out.
    return this.total > this.#kept ? text : text + stream.end();
  }

  text(): string {
    const cut = this.total > this.#kept ? `\n[${this.total - this.#kept} more bytes]` : "";
    return this.#decoded() + cut;
  }
}
