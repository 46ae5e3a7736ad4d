import type { Encoding } from "../../../common/text/encodings.ts";
import { TextStream } from "../../../common/text/text-stream.ts";
import { counted } from "../../../common/text/counted.ts";

/**
 * Reads the output of a command in its encoding and gives it in UTF-8. Without an encoding the bytes pass as they are.
 * Bytes that are no character become U+FFFD; those of the standard output are counted.
 */
export class OutputText {
  readonly #out: TextStream | undefined;
  readonly #err: TextStream | undefined;

  constructor(encoding: Encoding | undefined) {
    this.#out = encoding && new TextStream(encoding);
    this.#err = encoding && new TextStream(encoding);
  }

  out(data: Buffer): Buffer {
    return this.#out === undefined ? data : Buffer.from(this.#out.take(data));
  }

  err(data: Buffer): Buffer {
    return this.#err === undefined ? data : Buffer.from(this.#err.take(data));
  }

  /** The rest of a character of the output that did not come whole. */
  end(): Buffer {
    return Buffer.from(this.#out?.end() ?? "");
  }

  /** Says how many characters of the standard output were none of the encoding; empty when all were. */
  get complaint(): string {
    const count = this.#out?.malformed ?? 0;
    return count === 0
      ? ""
      : `${counted(count, "character of the output is", "characters of the output are")} no ${this.#out?.encoding.name}`;
  }
}
