/** Write that the child reports as acknowledged; it prints one JSON text a line. */
export type Acknowledged =
  | { readonly kind: "kv"; readonly key: string; readonly n: number }
  | { readonly kind: "object"; readonly cid: number; readonly id: string; readonly n: number; readonly alive: boolean }
  | { readonly kind: "records"; readonly cid: number; readonly ids: readonly string[] }
  | { readonly kind: "blob"; readonly digest: string; readonly size: number }
  | { readonly kind: "stream"; readonly stream: string; readonly size: number }
  | { readonly kind: "outbox"; readonly n: number };

/** The bytes at `offset` of a stream, known to both sides. */
export function streamBytes(stream: string, offset: number, length: number): Uint8Array {
  const salt = [...stream].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7);
  return Uint8Array.from({ length }, (_, i) => ((offset + i) * 131 + salt + ((offset + i) >> 8)) & 0xff);
}

/**
 * The outbox that the child fills: its place in the child's folder, its maximum size, and the mark that counts its
 * entries.
 */
export const OUTBOX = { folder: "outbox", maxBytes: 256 * 1024, mark: "written" } as const;
