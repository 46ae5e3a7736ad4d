import { AppError } from "../../../../common/errors.ts";
import { USER_HOME_MAX_CHARACTERS } from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import { repeated } from "../store.ts";

const KEY = "userhome";
const DEFAULT = "/";

/** The start page of each tenant. */
export class StartPages {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async get(tenant: string): Promise<string> {
    const entry = await (await this.#stores.tenant(tenant)).kv.get(KEY);
    return entry === undefined ? DEFAULT : decodeStored<{ home: string }>(entry.value).home;
  }

  async set(tenant: string, home: string): Promise<void> {
    checkHome(home);
    const { kv } = await this.#stores.tenant(tenant);
    await repeated(() => (home === "" ? kv.delete(KEY) : kv.put(KEY, encodeJson({ home }))));
  }
}

/**
 * True if the path leads a browser to a page of this site. Browsers read `//host` and `/\host` as another site, and
 * remove tabs and line breaks from addresses.
 */
export function isOwnPath(path: string): boolean {
  return path.length <= USER_HOME_MAX_CHARACTERS && /^\/(?![/\\])[\x21-\x7e]*$/.test(path) && !path.includes("\\");
}

/** Throws `AppError("invalid")` for a path that cannot be a start page, such as the sign-in and sign-out pages. */
export function checkHome(home: string): void {
  if (home === "" || (isOwnPath(home) && !/^\/user(\/|$)/.test(home))) return;
  throw new AppError("invalid", "home must be the path of a page of this site, such as /static/app/index.html.");
}
