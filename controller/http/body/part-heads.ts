import { HTTP_PART_HEAD_MAX_BYTES, HTTP_PARTS_MAX } from "../../../common/limits.ts";
import { charsetNameIn } from "./charset.ts";

/** Beginning of a part's name, and the charset of its content type. */
interface PartHead {
  readonly name: string;
  readonly charset: string | undefined;
}

const NAME = /^content-disposition:.*?;\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))/im;
const TYPE = /^content-type:(.*)/im;
/** Characters of a name that are compared. */
const NAME_CHARACTERS = 500;
const LINE_END = "\r\n";
const HEAD_END = Buffer.from("\r\n\r\n");

/**
 * Reads the heads of parts from a multipart body, in addition to its parser. The parser reports no charset of a part,
 * and does not decode most of them.
 */
export class PartHeads {
  readonly #delimiter: Buffer;
  readonly #heads: PartHead[] = [];
  /**
   * Bytes since the last delimiter or head. The first delimiter may lack the line break before it, so the window begins
   * with one.
   */
  #window: Buffer = Buffer.from(LINE_END);
  #isInHead = false;

  constructor(contentType: string) {
    const [, quoted, plain = ""] = /;\s*boundary=(?:"([^"]*)"|([^\s;]*))/i.exec(contentType) ?? [];
    this.#delimiter = Buffer.from(`${LINE_END}--${quoted ?? plain}`, "latin1");
  }

  add(chunk: Buffer): void {
    this.#window = Buffer.concat([this.#window, chunk]);
    while (this.#isInHead ? this.#endHead() : this.#beginHead());
  }

  /** Charset of the next part with that name. Skips the parts before it, which the parser has left out. */
  charsetOf(name: string | undefined): string | undefined {
    const wanted = beginning(name ?? "");
    const at = this.#heads.findIndex((head) => head.name === wanted);
    const charset = this.#heads[at]?.charset;
    this.#heads.splice(0, at + 1);
    return charset?.toLowerCase();
  }

  /** Returns false if the window has no complete delimiter. */
  #beginHead(): boolean {
    const at = this.#window.indexOf(this.#delimiter);
    this.#isInHead = at >= 0;
    this.#window = this.#window.subarray(at >= 0 ? at + this.#delimiter.length : 1 - this.#delimiter.length);
    return this.#isInHead;
  }

  #endHead(): boolean {
    const at = this.#window.indexOf(HEAD_END);
    if (at < 0 && this.#window.length < HTTP_PART_HEAD_MAX_BYTES) return false;
    const end = at < 0 ? this.#window.length : at;
    this.#note(this.#window.toString("latin1", 0, end));
    // The line break of an empty head may begin the next delimiter.
    this.#window = this.#window.subarray(at < 0 ? end : end + LINE_END.length);
    this.#isInHead = false;
    return true;
  }

  #note(head: string): void {
    const [, quoted, bare = ""] = NAME.exec(head) ?? [];
    const charset = charsetNameIn(TYPE.exec(head)?.[1] ?? "");
    const name = beginning(Buffer.from(quoted ?? bare, "latin1").toString());
    if (this.#heads.length < HTTP_PARTS_MAX) this.#heads.push({ name, charset });
  }
}

/**
 * The form in which names are compared. It is short: a head that the parser has left out is compared with the names of
 * all later parts.
 */
function beginning(name: string): string {
  return name.slice(0, NAME_CHARACTERS).replaceAll("\\", "");
}
