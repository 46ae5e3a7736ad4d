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

/** Masks several secrets. */
class MaskedOutputs {
  readonly #masks: readonly MaskedOutput[];

  constructor(secrets: readonly string[]) {
    this.#masks = secrets.map((secret) => new MaskedOutput(secret));
  }

  take(data: Uint8Array, stderr: boolean): Uint8Array {
    return this.#masks.reduce((rest, mask) => mask.take(rest, stderr), data);
  }

  /** The bytes held back, when no more output comes. */
  rest(stderr: boolean): Uint8Array {
    const none: Uint8Array = new Uint8Array();
    return this.#masks.reduce((held, mask) => joined([mask.take(held, stderr), mask.rest(stderr)]), none);
  }
}

/** Shorter lines of a key with several lines are no secrets: `{` or `---`. */
const SECRET_LINE_MIN_CHARACTERS = 6;

/**
 * Masks the secrets in the variables of a command: the last part of the token, whose other parts are not secret, or the
 * lines of the key of an external agent. `undefined` if the variables have no secret.
 */
export function maskedOutputOf(
  environment: Readonly<Record<string, string>> | undefined,
): Pick<MaskedOutput, "take" | "rest"> | undefined {
  const token = environment?.[RUN_CONTEXT_TOKEN]?.split(".").at(-1);
  if (token) return new MaskedOutput(token);
  const lines = (environment?.[EXTERNAL_AGENT_KEY] ?? "").trim().split(/\s*\n\s*/);
  const secrets = lines.filter(({ length }) => length >= (lines.length > 1 ? SECRET_LINE_MIN_CHARACTERS : 1));
  return secrets.length > 0 ? new MaskedOutputs(secrets) : undefined;
}
