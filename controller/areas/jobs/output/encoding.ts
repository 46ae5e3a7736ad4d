import { AppError } from "../../../../common/errors.ts";
import { encodingNamed, UTF8, type Encoding } from "../../../../common/text/encodings.ts";
import { decodeText, TextStream } from "../../../../common/text/text-stream.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { OutputPiece } from "../../hosts/index.ts";

/** Values of the first byte (`LEADS`) and second byte in encodings that write a character as one or two bytes. */
const LEADS = range(0x80, 0xff);
const SECONDS = [...range(0x30, 0x7e), ...range(0x80, 0xfe)];
const REPLACEMENT = "\ufffd";
/** More encodings than the hosts of an installation use. Bounds the cache. */
const ENCODINGS_MAX = 50;

const encoders = new Map<string, ReadonlyMap<string, Buffer>>();

/** `AppError("invalid")` for an unknown name, or an encoding that a shell cannot read. */
export function encodingOf(name: string): Encoding {
  const encoding = encodingNamed(name, "argenc");
  if (encoding.unitBytes > 1)
    throw new AppError("invalid", `argenc cannot be ${encoding.name}: the command line of a shell has no zero bytes.`);
  return encoding;
}

/**
 * The command line in a form that reaches the host's shell in this encoding. If its text is the same in both encodings,
 * it is not changed. Otherwise it becomes an ASCII line that makes the shell decode the bytes. `AppError("invalid")`
 * names the characters that the encoding does not have.
 */
export function encodedLine(line: string, name: string): string {
  if (!/[^\0-\x7f]/.test(line)) return line;
  const encoding = encodingOf(name);
  if (encoding.kind === UTF8.kind) return line;
  const bytes = Buffer.concat([...line].map((character) => bytesOf(character, encoding)));
  const octal = [...bytes].map((byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
  return `eval "$(printf '%b' '${octal}')"`;
}

/**
 * Converts the output of commands from an encoding to UTF-8. Use one object for each run, because a character may
 * arrive in several pieces.
 */
export class OutputText {
  readonly #out: TextStream;
  readonly #err: TextStream;

  constructor(name: string) {
    const encoding = encodingNamed(name, "argenc");
    this.#out = new TextStream(encoding);
    this.#err = new TextStream(encoding);
  }

  /**
   * A message that says how many characters of the output were invalid in the encoding and became U+FFFD. Empty if all
   * were valid.
   */
  get complaint(): string {
    const count = this.#out.malformed + this.#err.malformed;
    return count === 0
      ? ""
      : `${counted(count, "character of the output is", "characters of the output are")} no ${this.#out.encoding.name}, as argenc says.`;
  }

  take({ stderr, data }: OutputPiece): OutputPiece {
    return { stderr, data: Buffer.from((stderr ? this.#err : this.#out).take(data)) };
  }

  /** The pieces for characters that never arrived completely. Call it at the end of the output. */
  rest(): readonly OutputPiece[] {
    const pieces = [false, true].map((stderr) => ({
      stderr,
      data: Buffer.from((stderr ? this.#err : this.#out).end()),
    }));
    return pieces.filter(({ data }) => data.length > 0);
  }
}

function bytesOf(character: string, encoding: Encoding): Buffer {
  if (character <= "\x7f") return Buffer.from(character);
  const bytes = encoderOf(encoding).get(character);
  if (bytes) return bytes;
  throw new AppError("invalid", `${JSON.stringify(character)} cannot be written in ${encoding.name}, as argenc says.`);
}

/** Bytes by character. Made with the decoder, because the platform can encode only UTF-8. */
function encoderOf(encoding: Encoding): ReadonlyMap<string, Buffer> {
  const known = encoders.get(encoding.name);
  if (known) return known;
  if (encoders.size >= ENCODINGS_MAX) encoders.clear();
  const written = [
    ...LEADS.map((lead) => Buffer.from([lead])),
    ...LEADS.flatMap((lead) => SECONDS.map((second) => Buffer.from([lead, second]))),
  ];
  const lines = Buffer.concat(written.flatMap((bytes) => [bytes, Buffer.from("\n")]));
  const { text: read } = decodeText(lines, encoding);
  const encoder = new Map<string, Buffer>();
  for (const [at, text] of read.split("\n").entries()) {
    const bytes = written[at];
    if (bytes && [...text].length === 1 && text !== REPLACEMENT && !encoder.has(text)) encoder.set(text, bytes);
  }
  encoders.set(encoding.name, encoder);
  return encoder;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
