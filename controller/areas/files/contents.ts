import { createReadStream } from "node:fs";
import type { TenantRoom } from "../objects/index.ts";
import { keepInRoom } from "../tenants/index.ts";
import type { BlobStore, ByteRange } from "../../store/blobs.ts";
import { beginningOf } from "../../store/blobs/beginning.ts";
import type { Stores } from "../../store/engine.ts";
import { AppError } from "../../../common/errors.ts";
import { BLOB_ROW_MAX_BYTES, FILE_CONTENTS_IN_MEMORY_MAX, FILE_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import { refusing, textOf } from "../../../common/text/text-stream.ts";
import type { Principal } from "../permissions/index.ts";
import type { OpenFile } from "../rules/index.ts";
import { openPlace } from "./open-places.ts";
import type { FileEntry, HeldContent } from "./entries.ts";
import { KnownTexts } from "./known-texts.ts";
import type { FileName } from "./names.ts";
import { placesOf } from "./spaces.ts";
import type { FileStore } from "./store.ts";
import type { Arrivals } from "./transfer/arrivals.ts";
import { revisionOfFile } from "./transfer/expected.ts";
import { KeptContent } from "./transfer/kept-content.ts";
import type { FileVisibility } from "./visible.ts";

/** A file as scripts read it. */
export interface TextFile {
  readonly text: string;
  /** SHA-256 of the content: equal digests mean equal texts. */
  readonly digest: string;
  /** The path at which the file was found. */
  readonly fullname: string;
}

export interface OpenedFile extends OpenFile, Pick<FileEntry, "fullname" | "versionMs"> {
  readonly revision: string;
  /** The bytes from `start` (inclusive) to `end` (exclusive). */
  read(range: ByteRange): AsyncIterable<Uint8Array>;
}

/** New content of a file: a text, the path of a local file, or what `keep` has stored before. */
export type Content = { readonly text: string } | { readonly file: string } | KeptContent;

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

interface ContentDependencies {
  readonly stores: Stores;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom | undefined;
  readonly store: FileStore;
  readonly arrivals: Arrivals;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

/** Contents of files. Every file that is opened, run or served passes `open`. */
export class FileContents {
  readonly #with: ContentDependencies;
  readonly #texts = new KnownTexts();
  /** Number of contents that are only in memory. */
  #inMemory = 0;

  constructor(dependencies: ContentDependencies) {
    this.#with = dependencies;
  }

  /** Opens the first name that is a file. `AppError("not_found")` also if the principal may not see it. */
  async open(principal: Principal, names: readonly FileName[]): Promise<OpenedFile> {
    const places = placesOf(names).map((place) => openPlace(principal, place));
    const found = (await this.#with.store.get(principal, places)).filter((one) => one !== undefined);
    const entry = found.find(({ content }) => content !== undefined) ?? found[0];
    const visibility = await this.#with.visibilityOf(principal);
    if (!entry || !visibility.shown(entry))
      throw new AppError("not_found", `There is no file ${names[0]?.path ?? ""}.`);
    if (!entry.content) throw new AppError("invalid", `${entry.fullname} is a folder, not a file.`);
    visibility.requireContent(entry);
    const { blobs } = await this.#with.stores.tenant(principal.tenant);
    const { digest } = entry.content;
    const { size, modifiedMs, versionMs, fullname } = entry;
    const read = (range?: ByteRange): AsyncIterable<Uint8Array> => blobs.read(digest, range);
    return { digest, size, modifiedMs, versionMs, fullname, revision: revisionOfFile(entry), bytes: read(), read };
  }

  /** `AppError("invalid")` if the file is no text, `too_large` beyond `FILE_TEXT_MAX_BYTES`. */
  async read(principal: Principal, names: readonly FileName[]): Promise<TextFile> {
    const file = await this.open(principal, names);
    const { digest, fullname } = file;
    if (file.size > FILE_TEXT_MAX_BYTES)
      throw new AppError("too_large", `${fullname} has more than ${FILE_TEXT_MAX_BYTES} bytes: download it.`);
    const known = this.#texts.get(principal.tenant, digest);
    if (known !== undefined) return { text: known, digest, fullname };
    const parts: Uint8Array[] = [];
    for await (const part of file.bytes) parts.push(part);
    const text = textOf(Buffer.concat(parts), refusing(fullname, "download it"));
    this.#texts.keep(principal.tenant, digest, text);
    return { text, digest, fullname };
  }

  /** Stores the content under a new mark, unless it is stored already. */
  keep(principal: Principal, content: Content): Promise<KeptContent> {
    if (content instanceof KeptContent) return Promise.resolve(content);
    if ("text" in content) return this.keepBytes(principal, [Buffer.from(content.text)]);
    return this.#storeFile(principal, content.file);
  }

  /** `AppError("too_large")`, which names the quota, if the tenant has no room for so many bytes. */
  async requireRoom({ tenant }: Principal, bytes: number): Promise<void> {
    const { room } = this.#with;
    if (room?.isLimited(tenant)) await room.require(tenant, { objects: 0, bytes });
  }

  /**
   * Stores the bytes under a new mark, which the caller uses or releases. No mark stays if it fails. On a store with
   * `spansSeams`, a small content stays in memory.
   */
  async keepBytes(principal: Principal, bytes: Bytes): Promise<KeptContent> {
    const { tenant } = principal;
    const { objects, blobs } = await this.#with.stores.tenant(tenant);
    if (objects.spansSeams !== true) return this.#store(tenant, blobs, bytes);
    const begun = await beginningOf(bytes, BLOB_ROW_MAX_BYTES);
    if (begun.isWhole) return this.#hold(tenant, blobs, begun.bytes);
    try {
      return await this.#store(tenant, blobs, begun.all);
    } finally {
      await begun.end();
    }
  }

  async #storeFile({ tenant }: Principal, path: string): Promise<KeptContent> {
    const { blobs } = await this.#with.stores.tenant(tenant);
    return this.#store(tenant, blobs, bytesOfFile(path));
  }

  #store(tenant: string, blobs: BlobStore, bytes: Bytes): Promise<KeptContent> {
    const { room, arrivals } = this.#with;
    return arrivals.keep(tenant, (mark, beforeMark) =>
      keepInRoom({ room, tenant }, bytes, (admitted) => blobs.put(admitted, mark, beforeMark)),
    );
  }

  /** Keeps a small content in memory, so that its change can store it in its own commit. */
  async #hold(tenant: string, blobs: BlobStore, bytes: Uint8Array): Promise<KeptContent> {
    if (this.#inMemory >= FILE_CONTENTS_IN_MEMORY_MAX) return this.#store(tenant, blobs, [bytes]);
    const { room, arrivals } = this.#with;
    const growth = { objects: 0, bytes: bytes.length };
    this.#inMemory += 1;
    try {
      if (room?.isLimited(tenant)) await room.take(tenant, growth);
    } catch (error) {
      this.#inMemory -= 1;
      throw error;
    }
    return arrivals.hold(tenant, {
      bytes,
      marking: (mark, beforeMark) => blobs.put([bytes], mark, beforeMark),
      letGo: (isUsed) => {
        this.#inMemory -= 1;
        if (!isUsed && room?.isLimited(tenant)) room.count(tenant, { objects: 0, bytes: -bytes.length });
      },
    });
  }

  /** Marks a stored content once more, for another file. `size` is needed only by a save. */
  async markAnew(principal: Principal, { digest }: HeldContent, size = 0): Promise<KeptContent> {
    const { stores, arrivals } = this.#with;
    const { blobs } = await stores.tenant(principal.tenant);
    return arrivals.keep(principal.tenant, async (mark, beforeMark) => {
      const info = { digest, size };
      await beforeMark(info);
      await blobs.mark(digest, mark);
      return info;
    });
  }
}

/** Opens the file when it is read. So it is not left open if its content is refused before. */
async function* bytesOfFile(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>;
}
