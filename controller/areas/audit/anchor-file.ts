import { dirname } from "node:path";
import { anchorLine, NewestAnchors, type Anchor } from "../../../common/audit-anchor.ts";
import type { Files } from "../../../common/files.ts";
import { AUDIT_ANCHOR_READ_BYTES } from "../../../common/limits.ts";
import { isMissing, isThere, makeFolder, syncFolder, writeWholly } from "../../files.ts";

/**
 * An append-only file with digests of the audit trail, one per line. It is opened again for every write, so that it can
 * be moved away and shared by several controllers.
 */
export class AnchorFile {
  readonly path: string;
  readonly #files: Files;
  /** True if the last write may have left an incomplete line. */
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
      // In append mode the position has no effect.
      await writeWholly(handle, Buffer.from(text), size);
      await handle.sync();
      this.#torn = false;
    } finally {
      await handle.close();
    }
    if (isNew) await syncFolder(this.#files, dirname(this.path));
  }

  /** The newest anchors of a tenant; empty when the file does not exist. */
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
        rest = lines.pop()!;
        yield* lines;
      }
      yield rest;
    } finally {
      await handle.close();
    }
  }
}
