import { dirname } from "node:path";
import { anchorLine, NewestAnchors, type Anchor } from "../../../common/audit-anchor.ts";
import type { Files } from "../../../common/files.ts";
import { AUDIT_ANCHOR_READ_BYTES } from "../../../common/limits.ts";
import { isMissing, isThere, makeFolder, syncFolder, writeWholly } from "../../files.ts";

/**
 * Digests of the audit trail, one a line, in a file that only grows. It is opened anew for every write, so that it may
 * be moved away, and several controllers may share one.
 */
export class AnchorFile {
  readonly path: string;
  readonly #files: Files;
  /** The last write may have left a part of a line. */
  #torn = true;

  constructor(path: string, files: Files) {
    this.path = path;
    this.#files = files;
  }

  /** Durable when it resolves. */
  async append(anchors: readonly Anchor[]): Promise<void> {
    const isNew = !(await isThere(this.#files, this.path));
    if (isNew) await makeFolder(this.#files, dirname(this.path));
    const handle = await this.#files.open(this.path, "a", 0o600);
    try {
      const { size } = await handle.stat();
      const text = (this.#torn && size > 0 ? "\n" : "") + anchors.map(anchorLine).join("");
      this.#torn = true;
      // Where appending is asked for the position does not count.
      await writeWholly(handle, Buffer.from(text), size);
      await handle.sync();
      this.#torn = false;
    } finally {
      await handle.close();
    }
    if (isNew) await syncFolder(this.#files, dirname(this.path));
  }

  /** What stands there of a tenant; nothing when there is no file. */
  async read(tenant: string): Promise<NewestAnchors> {
    const newest = new NewestAnchors(tenant);
    for await (const line of this.#lines()) newest.add(line);
    return newest;
  }

  async *#lines(): AsyncGenerator<string> {
    const handle = await this.#files.open(this.path, "r").catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
    if (handle === undefined) return;
    try {
      const [bytes, decoder] = [new Uint8Array(AUDIT_ANCHOR_READ_BYTES), new TextDecoder()];
      let [position, rest] = [0, ""];
      for (;;) {
        const { bytesRead } = await handle.read(bytes, 0, bytes.length, position);
        if (bytesRead === 0) break;
        position += bytesRead;
        const lines = (rest + decoder.decode(bytes.subarray(0, bytesRead), { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        yield* lines;
      }
      yield rest;
    } finally {
      await handle.close();
    }
  }
}
