import { Readable } from "node:stream";
import { errorText } from "../../../../common/errors.ts";
import { JOB_STREAM_BUFFER_BYTES } from "../../../../common/limits.ts";
import type { OutputPiece } from "../../hosts/index.ts";
import { endOf } from "../history/answers.ts";
import type { Execution } from "../types.ts";

/**
 * Output of a run as lines of JSON for one caller. Each piece is `{host, stream, data}`. The id follows as `{runid}`
 * when it is known. The last line is `{runid, runs, skipped}`.
 */
export class OutputStream {
  readonly content = new Readable({ read: () => undefined });
  /** Number of bytes that were omitted because the caller read too slowly. They are stored nevertheless. */
  #skipped = 0;

  take(host: string, { stderr, data }: OutputPiece): void {
    if (this.content.destroyed) return;
    if (this.content.readableLength > JOB_STREAM_BUFFER_BYTES) this.#skipped += data.length;
    else this.#line({ host, stream: stderr ? "stderr" : "stdout", data: Buffer.from(data).toString("base64") });
  }

  /** Writes the id of the run now, and the last line when the execution ends. */
  follow({ runId, finished }: Execution): void {
    if (!this.content.destroyed) this.#line({ runid: runId });
    finished.then(
      (runs) => this.#end({ runid: runId, runs: runs.map(endOf), skipped: this.#skipped }),
      (error: unknown) => this.#end({ runid: runId, runs: [], skipped: this.#skipped, message: errorText(error) }),
    );
  }

  #end(last: unknown): void {
    if (this.content.destroyed) return;
    this.#line(last);
    this.content.push(null);
  }

  #line(value: unknown): void {
    this.content.push(`${JSON.stringify(value)}\n`);
  }
}
