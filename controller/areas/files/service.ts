import { createReadStream } from "node:fs";
import { AppError } from "../../../common/errors.ts";
import { FILE_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import { relativePath } from "../../../common/paths.ts";
import type { Random } from "../../../common/time.ts";
import type { Stores } from "../../store/engine.ts";
import { TAGS_COLUMN, type Edit, type ObjectRow, type Objects } from "../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../permissions/index.ts";
import type { FileSource, OpenFile } from "../rules/index.ts";
import { FILE_CLASS } from "./classes.ts";

/** The user's file space and the system's are two trees. */
export type Space = "user" | "system";

export interface FileName {
  readonly path: string;
  readonly space: Space;
}

/** A file's content comes from a text or from an uploaded part. */
export type Content = { readonly text: string } | { readonly file: string };

const MARK_BYTES = 12;

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Objects;
  readonly nowMs: () => number;
  readonly random: Random;
}

/**
 * What a row says of its content. The mark is new with every write, so that replacing a content never releases another
 * writer's.
 */
interface Held {
  readonly digest: string;
  readonly mark: string;
}

/** Files of a tenant: content in the blob store, metadata as objects of `/filesystem`. */
export class FileService implements FileSource {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /** Inserts or replaces; the old content stays until it has no reference. */
  async write(principal: Principal, name: FileName, content: Content): Promise<void> {
    requirePermission(principal, "files:write");
    const { stores, objects, nowMs, random } = this.#dependencies;
    const fullname = fullName(name.path);
    const { blobs } = await stores.tenant(principal.tenant);
    const bytes =
      "text" in content ? [Buffer.from(content.text)] : (createReadStream(content.file) as AsyncIterable<Uint8Array>);
    const mark = `file/${Buffer.from(random.bytes(MARK_BYTES)).toString("base64url")}`;
    const before = await this.#held(principal, name);
    const blob = await blobs.put(bytes, mark);
    const slash = fullname.lastIndexOf("/");
    await objects.insert(system(principal), `${principal.ospace}${FILE_CLASS.path}`, [
      {
        space: name.space,
        fullname,
        name: fullname.slice(slash + 1),
        parent: fullname.slice(0, slash) || "/",
        ftype: /\.([^./]+)$/.exec(fullname)?.[1]?.toLowerCase() ?? "",
        size: blob.size,
        owner: principal.user,
        digest: blob.digest,
        mark,
        modified: nowMs(),
      },
    ]);
    if (before) await blobs.unmark(before.digest, before.mark);
  }

  /** Changes the tags of a file, by the id of its object; false when there is none. */
  async retag(principal: Principal, id: string, edits: readonly Edit[]): Promise<boolean> {
    requirePermission(principal, "files:write");
    const other = edits.find(({ column }) => column !== TAGS_COLUMN);
    if (other)
      throw new AppError("unsupported", `The column ${other.column} of files is kept by the platform, not by MQL.`);
    const ref = { id, class: `${principal.ospace}${FILE_CLASS.path}` };
    return this.#dependencies.objects.update(system(principal), ref, edits);
  }

  async exists(principal: Principal, name: FileName): Promise<boolean> {
    requirePermission(principal, "files:read");
    return (await this.#find(principal, name)) !== undefined;
  }

  /** Also a part of parsing a file by a rule. */
  async open(principal: Principal, path: string, space: Space): Promise<OpenFile & { readonly name: string }> {
    requireOneOf(principal, ["files:read", "rules:write"]);
    const row = await this.#find(principal, { path, space });
    if (!row) throw new AppError("not_found", `There is no file ${path}.`);
    const { blobs } = await this.#dependencies.stores.tenant(principal.tenant);
    const digest = String(row.values["digest"]);
    return {
      digest,
      size: Number(row.values["size"]),
      modifiedMs: Number(row.values["modified"]),
      name: String(row.values["name"]),
      bytes: blobs.read(digest),
    };
  }

  /** The content as text; `AppError("invalid")` when it is none. */
  async text(principal: Principal, name: FileName): Promise<string> {
    requirePermission(principal, "files:read");
    const file = await this.open(principal, name.path, name.space);
    if (file.size > FILE_TEXT_MAX_BYTES)
      throw new AppError("too_large", `${name.path} has more than ${FILE_TEXT_MAX_BYTES} bytes: download it.`);
    const parts: Uint8Array[] = [];
    for await (const part of file.bytes) parts.push(part);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(parts));
    } catch (error) {
      throw new AppError("invalid", `${name.path} is no text: download it.`, { cause: error });
    }
  }

  /** Files written before marks were told apart bear the one of their name. */
  async #held(principal: Principal, name: FileName): Promise<Held | undefined> {
    const { digest, mark } = (await this.#find(principal, name))?.values ?? {};
    if (typeof digest !== "string") return undefined;
    return { digest, mark: typeof mark === "string" ? mark : `file/${name.space}${fullName(name.path)}` };
  }

  async #find(principal: Principal, { path, space }: FileName): Promise<ObjectRow | undefined> {
    const key = `${space}:${fullName(path).replace(/[\\:]/g, "\\$&")}`;
    const ref = { id: `filesystem:${key}`, class: `${principal.ospace}${FILE_CLASS.path}` };
    return (await this.#dependencies.objects.get(system(principal), [ref]))[0];
  }
}

/** Rights on files are permissions; the metadata is the platform's own. */
function system(principal: Principal): Principal {
  return { ...principal, data: [{ class: "/", access: "write" }] };
}

function fullName(path: string): string {
  return `/${relativePath(path.replace(/^\/+/, ""))}`;
}
