import type { FileService } from "../../../controller/areas/files/index.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { entriesUnder } from "../../../controller/store/kv/entries.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { uploadFolder } from "../runs/archives.ts";
import { testPrincipal } from "../time/runtime.ts";
import { fileController, type FileController } from "./files.ts";

export interface ImportOptions {
  /** Absent: an administrator. */
  readonly as?: Principal;
  /** Absent: the service of the controller. */
  readonly files?: FileService;
  readonly depth?: number | undefined;
  readonly space?: "user" | "system";
}

/** A controller with files on an engine of its own, and a folder for the archives that it imports. */
export class FileArchiveWorld {
  readonly engine: TestEngine;
  readonly one: FileController;
  readonly #folder: Awaited<ReturnType<typeof uploadFolder>>;

  private constructor(engine: TestEngine, folder: Awaited<ReturnType<typeof uploadFolder>>) {
    this.engine = engine;
    this.one = fileController(engine);
    this.#folder = folder;
  }

  static async open(): Promise<FileArchiveWorld> {
    return new FileArchiveWorld(await openTestEngine(), await uploadFolder());
  }

  async import(archive: Buffer, { as = testPrincipal(), files = this.one.files, ...options }: ImportOptions = {}) {
    const { path } = await this.#folder.upload("a.zip", archive);
    const { depth, space = "user" } = options;
    return files.archives.import(as, { path }, { space, depth });
  }

  /** Number of imports in the journal. */
  async open(): Promise<number> {
    const { kv } = await this.engine.tenant("matrix");
    const found: string[] = [];
    for await (const { key } of entriesUnder(kv, "files/imports/")) found.push(key);
    return found.length;
  }

  async close(): Promise<void> {
    await this.one[Symbol.asyncDispose]();
    await this.engine.close();
    await this.#folder.remove();
  }
}
