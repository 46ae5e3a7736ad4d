/** The parts of a file's state that matter here. */
interface Headed {
  readonly serial: number;
  readonly heading?: object;
}

/**
 * Limits the total size of the heading lines in the marks of one policy. Beyond the limit, a file has its heading line
 * only in memory. After a restart, the agent searches for it in the part of the file that was read.
 */
export class KeptHeadings {
  readonly #maxBytes: number;
  readonly #bytes = new Map<number, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The text of a mark. It contains the heading line if the limit allows it. */
  stored(state: Headed): string {
    const bytes = storedBytes(state);
    const isKept = this.#total - this.#bytesOf(state.serial) + bytes <= this.#maxBytes;
    this.#set(state.serial, isKept ? bytes : 0);
    return JSON.stringify(isKept ? state : { ...state, heading: undefined });
  }

  /** Counts the heading line of a mark that is stored already. */
  note(state: Headed): void {
    this.#set(state.serial, storedBytes(state));
  }

  forget(serial: number): void {
    this.#set(serial, 0);
  }

  #set(serial: number, bytes: number): void {
    this.#total += bytes - this.#bytesOf(serial);
    if (bytes > 0) this.#bytes.set(serial, bytes);
    else this.#bytes.delete(serial);
  }

  #bytesOf(serial: number): number {
    return this.#bytes.get(serial) ?? 0;
  }
}

/** Bytes of the heading line in the mark, as JSON: a control character takes up to six. */
function storedBytes({ heading }: Headed): number {
  return heading === undefined ? 0 : Buffer.byteLength(JSON.stringify(heading));
}
