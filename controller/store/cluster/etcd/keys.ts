import type { IKeyValue } from "etcd3";
import { AppError } from "../../../../common/errors.ts";
import { KV_KEY_MAX_BYTES } from "../../../../common/limits.ts";
import type { KvEntry } from "../../kv.ts";
import { openValue } from "../../kv/expiry.ts";

/** Keys of one tenant as etcd has them: behind a prefix that callers never see. */
export class PrefixedKeys {
  readonly #prefix: Buffer;

  constructor(prefix: string) {
    this.#prefix = Buffer.from(prefix);
  }

  /** The bytes of a key. `AppError("invalid")` for an empty one, `AppError("too_large")` for one that is too long. */
  bytes(key: string): Buffer {
    const bytes = this.join(key);
    if (key === "") throw new AppError("invalid", "A key must not be empty.");
    if (bytes.length - this.#prefix.length > KV_KEY_MAX_BYTES)
      throw new AppError("too_large", `A key has at most ${KV_KEY_MAX_BYTES} bytes.`);
    return bytes;
  }

  /** The bytes of the beginning of keys, which may be empty. */
  join(beginning: string): Buffer {
    return Buffer.concat([this.#prefix, Buffer.from(beginning)]);
  }

  /** The entry as callers see it. */
  entry(pair: IKeyValue): KvEntry {
    return {
      key: pair.key.toString("utf8", this.#prefix.length),
      ...openValue(pair.value),
      createRevision: Number(pair.create_revision),
      revision: Number(pair.mod_revision),
      ...(pair.lease === "0" ? {} : { lease: pair.lease }),
    };
  }
}

/** The first key after all that begin with `prefix`: its last byte plus one, which never overflows in UTF-8. */
export function endOfPrefix(prefix: Buffer): Buffer {
  const end = Buffer.from(prefix);
  const last = end.length - 1;
  end[last] = (end[last] ?? 0) + 1;
  return end;
}
