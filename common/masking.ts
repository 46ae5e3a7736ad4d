/** The variable in which commands of a job run get the token for the run's context. */
export const RUN_CONTEXT_TOKEN = "ODP_CONTEXT_TOKEN";

const MASK = Buffer.from("******");

/**
 * Leaves a secret out of what a command writes, wherever it is cut into pieces. What may be its beginning waits for the
 * next piece, at most the length of the secret.
 */
export class MaskedOutput {
  readonly #secret: Buffer;
  readonly #held = { out: Buffer.alloc(0), err: Buffer.alloc(0) };

  constructor(secret: string) {
    this.#secret = Buffer.from(secret);
  }

  take(data: Uint8Array, stderr: boolean): Buffer {
    const pipe = stderr ? "err" : "out";
    const text = this.#held[pipe].length === 0 ? Buffer.from(data) : Buffer.concat([this.#held[pipe], data]);
    const parts: Buffer[] = [];
    let from = 0;
    for (let at = text.indexOf(this.#secret); at >= 0; at = text.indexOf(this.#secret, from)) {
      parts.push(text.subarray(from, at), MASK);
      from = at + this.#secret.length;
    }
    const until = this.#beginsAt(text, from);
    this.#held[pipe] = text.subarray(until);
    return Buffer.concat([...parts, text.subarray(from, until)]);
  }

  /** What still waits, once nothing more comes. */
  rest(stderr: boolean): Buffer {
    return this.#held[stderr ? "err" : "out"];
  }

  /** Where the secret may have begun that the next piece goes on with. */
  #beginsAt(text: Buffer, from: number): number {
    const first = Math.max(from, text.length - this.#secret.length + 1);
    for (let at = first; at < text.length; at++)
      if (this.#secret.subarray(0, text.length - at).equals(text.subarray(at))) return at;
    return text.length;
  }
}

/** Masks the token that the variables of a command hold; absent: they hold none. Its beginning is no secret. */
export function maskedOutputOf(environment: Readonly<Record<string, string>> | undefined): MaskedOutput | undefined {
  const secret = environment?.[RUN_CONTEXT_TOKEN]?.split(".").at(-1);
  return secret ? new MaskedOutput(secret) : undefined;
}
