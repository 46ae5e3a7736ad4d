import { TextDecoder } from "node:util";
import { AppError } from "../../../common/errors.ts";
import type { OutputPiece } from "../hosts/index.ts";

/** Lead and second bytes of the encodings that write a character in one or two bytes. */
const LEADS = range(0x80, 0xff);
const SECONDS = [...range(0x30, 0x7e), ...range(0x80, 0xfe)];
const REPLACEMENT = "\ufffd";
/** More than a host of any installation speaks. */
const ENCODINGS_MAX = 50;

const encoders = new Map<string, ReadonlyMap<string, Buffer>>();

/** The name as the platform knows it; `AppError("invalid")` for one it does not, or that a shell cannot read. */
export function encodingOf(name: string): string {
  const { encoding } = decoderOf(name);
  if (encoding.startsWith("utf-16"))
    throw new AppError("invalid", `argenc cannot be ${encoding}: the command line of a shell has no zero bytes.`);
  return encoding;
}

/**
 * A command line whose text reaches the host's shell in this encoding: as it is where it says the same in both, else as
 * a line of ASCII that makes the shell read the bytes. `AppError("invalid")` names what the encoding does not have.
 */
export function encodedLine(line: string, name: string): string {
  if (!/[^\0-\x7f]/.test(line) || encodingOf(name) === "utf-8") return line;
  const bytes = Buffer.concat([...line].map((character) => bytesOf(character, name)));
  const octal = [...bytes].map((byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
  return `eval "$(printf '%b' '${octal}')"`;
}

/** What commands write in this encoding, as UTF-8; one for each run, as a character may come in pieces. */
export class OutputText {
  readonly #out: TextDecoder;
  readonly #err: TextDecoder;

  constructor(name: string) {
    this.#out = decoderOf(name);
    this.#err = decoderOf(name);
  }

  take({ stderr, data }: OutputPiece): OutputPiece {
    return { stderr, data: Buffer.from((stderr ? this.#err : this.#out).decode(data, { stream: true })) };
  }

  /** What is left of characters that did not come whole. */
  rest(): readonly OutputPiece[] {
    const pieces = [false, true].map((stderr) => ({
      stderr,
      data: Buffer.from((stderr ? this.#err : this.#out).decode()),
    }));
    return pieces.filter(({ data }) => data.length > 0);
  }
}

function decoderOf(name: string): TextDecoder {
  try {
    return new TextDecoder(name);
  } catch (error) {
    throw new AppError("invalid", `argenc: there is no encoding ${JSON.stringify(name)}.`, { cause: error });
  }
}

function bytesOf(character: string, name: string): Buffer {
  if (character <= "\x7f") return Buffer.from(character);
  const bytes = encoderOf(encodingOf(name)).get(character);
  if (bytes) return bytes;
  throw new AppError(
    "invalid",
    `${JSON.stringify(character)} cannot be written in ${encodingOf(name)}, as argenc says.`,
  );
}

/** Made of what the platform reads: it has no other way to write an encoding than UTF-8. */
function encoderOf(encoding: string): ReadonlyMap<string, Buffer> {
  const known = encoders.get(encoding);
  if (known) return known;
  if (encoders.size >= ENCODINGS_MAX) encoders.clear();
  const written = [
    ...LEADS.map((lead) => Buffer.from([lead])),
    ...LEADS.flatMap((lead) => SECONDS.map((second) => Buffer.from([lead, second]))),
  ];
  const read = new TextDecoder(encoding).decode(Buffer.concat(written.flatMap((bytes) => [bytes, Buffer.from("\n")])));
  const encoder = new Map<string, Buffer>();
  for (const [at, text] of read.split("\n").entries()) {
    const bytes = written[at];
    if (bytes && [...text].length === 1 && text !== REPLACEMENT && !encoder.has(text)) encoder.set(text, bytes);
  }
  encoders.set(encoding, encoder);
  return encoder;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}
