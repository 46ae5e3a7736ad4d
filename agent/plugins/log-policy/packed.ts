import { join } from "node:path";
import { createGunzip } from "node:zlib";
import { LOG_PACKED_MAX_BYTES, LOG_PACKED_REST_MAX_BYTES } from "../../../common/limits.ts";
import { openTrusted } from "../../trusted-path.ts";
import { tailOf, type Print } from "./content.ts";
import { look } from "./folder.ts";
import { originsOf } from "./names.ts";

const GZIP = /\.gz$/;
/** Packers keep the time of a file in seconds. */
const TIME_GRAIN_MS = 1_000;

/** The bytes of a life behind the place read. `growing`: the packed file is still written. */
export type Packed = { readonly rest: Buffer } | "growing" | undefined;

interface Search {
  readonly root: string;
  /** Paths of all packed files below the root. */
  readonly packed: readonly string[];
  /** Ends the search: the answer means nothing then. */
  readonly signal: AbortSignal;
}

interface Lost extends Print {
  readonly home: string;
  readonly mtimeMs: number;
}

/**
 * The rest of a life that is nowhere any more, from the file that a rotation packed it into: `access.log.1.gz`. It is
 * known by its first bytes, and by those before the place read. At most `LOG_PACKED_MAX_BYTES` are unpacked of a file, and
 * a rest of at most `LOG_PACKED_REST_MAX_BYTES` is held.
 */
export async function packedRest({ root, packed, signal }: Search, lost: Lost): Promise<Packed> {
  if (lost.head === "") return undefined;
  const named = packed.filter((path) => GZIP.test(path) && originsOf(path.replace(GZIP, "")).includes(lost.home));
  let found: Packed;
  for (const path of named) {
    const at = await look(root, path);
    if (!at || at.mtimeMs < lost.mtimeMs - TIME_GRAIN_MS) continue;
    const rest = await restIn(join(root, path), lost, signal);
    if (typeof rest === "object") return rest;
    found ??= rest;
  }
  return found;
}

async function restIn(path: string, { head, offset, tail }: Print, signal: AbortSignal): Promise<Packed> {
  const first = Buffer.from(head, "base64");
  const from = offset - tail.bytes;
  const begin: Buffer[] = [];
  const held: Buffer[] = [];
  let bytes = 0;
  try {
    await using handle = await openTrusted(path);
    const source = handle.createReadStream({ autoClose: false });
    const unpacked = createGunzip();
    source.once("error", (error) => unpacked.destroy(error));
    for await (const chunk of source.pipe(unpacked) as AsyncIterable<Buffer>) {
      if (signal.aborted) return undefined;
      if (bytes < first.length) begin.push(chunk.subarray(0, first.length - bytes));
      if (bytes + chunk.length > from) held.push(chunk.subarray(Math.max(0, from - bytes)));
      bytes += chunk.length;
      if (bytes > LOG_PACKED_MAX_BYTES || bytes - from > LOG_PACKED_REST_MAX_BYTES + tail.bytes) return undefined;
      if (begin.length > 0 && !first.subarray(0, bytes).equals(Buffer.concat(begin))) return undefined;
    }
  } catch (error) {
    return fault(error);
  }
  const known = Buffer.concat(held);
  const isSame = bytes >= offset && tailOf(known.subarray(0, tail.bytes), tail.bytes).hash === tail.hash;
  return isSame ? { rest: known.subarray(tail.bytes) } : undefined;
}

/** A file whose end is missing is still written. One that is gone or damaged holds nothing. */
function fault(error: unknown): "growing" | undefined {
  return error instanceof Error && "code" in error && error.code === "Z_BUF_ERROR" ? "growing" : undefined;
}
