import { CLI_LINE_MAX_BYTES } from "../../common/limits.ts";

export type Stream = "stdout" | "stderr";
export type Write = (stream: Stream, data: Uint8Array) => void;

const NEWLINE = 0x0a;

/**
 * Output of several hosts, told apart: each line has its host in front and is passed on as a whole, so that lines of
 * hosts that write at once do not run into each other. A line longer than `CLI_LINE_MAX_BYTES` goes on in the next one.
 */
export class HostLines {
  readonly #write: Write;
  /** Lines without their end yet, by stream and host. */
  readonly #begun = new Map<string, { readonly host: string; readonly stream: Stream; line: Buffer }>();

  constructor(write: Write) {
    this.#write = write;
  }

  add(host: string, stream: Stream, data: Buffer): void {
    const key = `${stream} ${host}`;
    let rest = Buffer.concat([this.#begun.get(key)?.line ?? Buffer.alloc(0), data]);
    for (;;) {
      const end = rest.subarray(0, CLI_LINE_MAX_BYTES).indexOf(NEWLINE);
      if (end < 0 && rest.length < CLI_LINE_MAX_BYTES) break;
      const line = rest.subarray(0, end < 0 ? CLI_LINE_MAX_BYTES : end);
      rest = rest.subarray(end < 0 ? line.length : end + 1);
      this.#line(host, stream, line);
    }
    if (rest.length > 0) this.#begun.set(key, { host, stream, line: rest });
    else this.#begun.delete(key);
  }

  /** Writes the last lines of hosts, which have no newline. */
  end(): void {
    for (const { host, stream, line } of this.#begun.values()) this.#line(host, stream, line);
    this.#begun.clear();
  }

  #line(host: string, stream: Stream, line: Uint8Array): void {
    this.#write(stream, Buffer.concat([Buffer.from(`${host}: `), line, Buffer.of(NEWLINE)]));
  }
}
