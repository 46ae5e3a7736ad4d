import { AppError } from "../../../common/errors.ts";
import { LICENCE_IMPORT_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";

interface Stored {
  /** The text as imported: its signature is verified on every read. */
  readonly text: string;
  readonly serial: number;
}

/** The imported document of each tenant, in the system's KvStore. */
export class LicenceStore {
  readonly #stores: Pick<Stores, "system">;

  constructor(stores: Pick<Stores, "system">) {
    this.#stores = stores;
  }

  async text(tenant: string): Promise<string | undefined> {
    const entry = await (await this.#stores.system()).kv.get(licenceKeyOf(tenant));
    return entry && decodeStored<Stored>(entry.value).text;
  }

  /** `AppError("conflict")` if a newer document, or another one with the same serial, is stored. */
  async put(tenant: string, document: Stored): Promise<void> {
    const { kv } = await this.#stores.system();
    const key = licenceKeyOf(tenant);
    for (let attempt = 0; attempt < LICENCE_IMPORT_ATTEMPTS_MAX; attempt++) {
      const entry = await kv.get(key);
      const before = entry && decodeStored<Stored>(entry.value);
      if (before?.text === document.text) return;
      if (before && before.serial >= document.serial)
        throw new AppError(
          "conflict",
          `The licence of ${tenant} has the serial ${before.serial}; one of serial ${document.serial} does not take its place.`,
        );
      if ((await putOnce(kv, { key, value: encodeJson(document), ifRevision: entry?.revision ?? 0 })).ok) return;
    }
    throw new AppError("conflict", `Others import licences of ${tenant} all the time.`);
  }
}

export function licenceKeyOf(tenant: string): string {
  return `licences/${tenant}`;
}
