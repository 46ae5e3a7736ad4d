/** The variable in which commands of a job run get the token for the run's context. */
export const RUN_CONTEXT_TOKEN = "ODP_CONTEXT_TOKEN";

/** The variable in which a deployment gets the key of an external agent. */
export const EXTERNAL_AGENT_KEY = "ODP_EXTERNAL_AGENT_KEY";

const MASK = new TextEncoder().encode("******");

/**
 * Replaces a secret in the output of a command, even if the output arrives in pieces. Bytes that may begin the secret
 * are held back until the next piece; they are always fewer than the secret has.
 */
export class MaskedOutput {
  readonly #secret: Uint8Array;
  readonly #held = { out: new Uint8Array(), err: new Uint8Array() };

  constructor(secret: string) {
    this.#secret = new TextEncoder().encode(secret);
  }

  take(data: Uint8Array, stderr: boolean): Uint8Array {
    const pipe = stderr ? "err" : "out";
    const text = joined([this.#held[pipe], data]);
    const parts: Uint8Array[] = [];
    let from = 0;
    let at = this.#begins(text, from);
    while (at + this.#secret.length <= text.length) {
      parts.push(text.subarray(from, at), MASK);
      from = at + this.#secret.length;
      at = this.#begins(text, from);
    }
    this.#held[pipe] = text.slice(at);
    return joined([...parts, text.subarray(from, at)]);
  }

  /** The bytes held back, when no more output comes. */
  rest(stderr: boolean): Uint8Array {
    return this.#held[stderr ? "err" : "out"];
  }

  /**
   * Position of the secret, or of its possible beginning at the end of `text`; the length of `text` if there is
   * neither.
   */
  #begins(text: Uint8Array, from: number): number {
    const [first = 0] = this.#secret;
    for (let at = text.indexOf(first, from); at >= 0; at = text.indexOf(first, at + 1)) {
      const piece = text.subarray(at, at + this.#secret.length);
      if (piece.every((byte, index) => byte === this.#secret[index])) return at;
    }
    return text.length;
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * Masks the secret in the variables of a command: the last part of the token, whose other parts are not secret, or the
 * key of an external agent without the white space around it. `undefined` if the variables have no secret.
 */
export function maskedOutputOf(environment: Readonly<Record<string, string>> | undefined): MaskedOutput | undefined {
  const token = environment?.[RUN_CONTEXT_TOKEN]?.split(".").at(-1);
  const secret = token || environment?.[EXTERNAL_AGENT_KEY]?.trim();
  return secret ? new MaskedOutput(secret) : undefined;
}
