/** State of a file as it is marked. */
interface Headed {
  readonly serial: number;
  readonly heading?: object;
}

/**
 * Bounds the heading lines in the marks of all files of a policy. A file beyond the bound has its heading line in memory
 * only; after a restart the agent looks for it in what was read of the file.
 */
export class KeptHeadings {
  readonly #maxBytes: number;
  readonly #bytes = new Map<number, number>();
  #total = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The text of a mark. */
  stored(state: Headed): string {
    const bytes = storedBytes(state);
    const isKept = this.#total - this.#bytesOf(state.serial) + bytes <= this.#maxBytes;
    this.#set(state.serial, isKept ? bytes : 0);
    return JSON.stringify(isKept ? state : { ...state, heading: undefined });
  }

  /** Counts a mark that is stored. */
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

/** Bytes of the heading in the mark: control characters take six each. */
function storedBytes({ heading }: Headed): number {
  return heading === undefined ? 0 : Buffer.byteLength(JSON.stringify(heading));
}
