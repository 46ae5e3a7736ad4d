import { AppError } from "../../../common/errors.ts";
import { isInside } from "../../../common/paths.ts";
import type { Clock } from "../../../common/time.ts";
import type { Objects } from "../objects/index.ts";
import {
  allows,
  classAccess,
  decidingRules,
  requirePermission,
  type Permission,
  type Principal,
} from "../permissions/index.ts";
import { nameOf, parentOf } from "./keys.ts";
import { isDelete, type Content, type Entry } from "./stored.ts";

/** Path of the class of entries, without the ospace. */
export const CONFIG_PATH = "/system/config";
/** Shown in place of every secret value. */
export const MASK = "********";

/** An area that stores its own texts as entries of configuration. */
export interface ConfigOwner {
  /** Path without the ospace, such as `/rules`. The owner owns every key below it. */
  readonly prefix: string;
  /** Permissions that its entries need in addition to those for configuration. */
  readonly permissions: { readonly read: Permission; readonly write: Permission };
  /** True if the principal may see this entry. */
  sees(principal: Principal, key: string, text: string): boolean;
  /** Throws if the owner's own interface would refuse the text. Returns warnings. */
  check(principal: Principal, key: string, text: string): Promise<readonly string[]>;
}

/** An entry as a principal sees it. It is also the row of the entry in MQL. */
export interface ConfigRecord {
  readonly id: string;
  readonly class: string;
  readonly key: string;
  readonly name: string;
  readonly parent: string;
  readonly value: string;
  readonly secret: boolean;
  readonly version: number;
  readonly author: string;
  /** Milliseconds since 1970. */
  readonly changed: number;
  readonly expires?: number;
}

/** A record without the columns that are hidden from the principal. The key is never hidden. */
export type ShownRecord = Partial<ConfigRecord> & Pick<ConfigRecord, "key">;

/** The configuration that a principal may see and change, by the rules for MQL and by the owners of keys. */
export interface ConfigVisibility {
  sees(entry: Entry): boolean;
  /** The record without columns that are hidden from the principal. */
  shown(entry: Entry): ShownRecord;
  /** `AppError("denied")` if the principal may not write objects of the class, or may not write this key. */
  requireWriting(key: string): void;
  /** `AppError("denied")` if the principal would not see the entry after the write. */
  requireSeenAfter(write: PlannedWrite): void;
  ownerOf(key: string): ConfigOwner | undefined;
}

export interface PlannedWrite {
  readonly key: string;
  readonly found: Entry | undefined;
  readonly content: Content;
}

export interface SightDependencies {
  readonly clock: Pick<Clock, "nowMs">;
  readonly objects: Pick<Objects, "visible">;
  readonly owners: readonly ConfigOwner[];
}

/**
 * The principal's view of configuration. `AppError("denied")` if the column `key` is hidden from the principal, because
 * then no entry can be named.
 */
export async function visibilityOf(
  principal: Principal,
  { clock, objects, owners }: SightDependencies,
): Promise<ConfigVisibility> {
  const path = `${principal.ospace}${CONFIG_PATH}`;
  const { hidden, writable } = classAccess(principal, path);
  if (hidden.has("key")) throw new AppError("denied", `The keys of configuration are hidden from ${principal.user}.`);
  const filter = await objects.visible.records(principal, path);
  const sees = (entry: Entry): boolean =>
    ownersSee(owners, principal, entry) && filter.sees(recordOf(principal, entry));
  return {
    sees,
    ownerOf: (key) => ownerOf(owners, principal, key),
    shown: (entry) => filter.shown(recordOf(principal, entry)),
    requireSeenAfter({ key, found, content }) {
      const by = { n: (found?.n ?? 0) + 1, id: "", by: principal.user, atMs: clock.nowMs() };
      if (!sees({ ...by, ...content, key, revision: 0 })) throw outsideRule(principal, key);
    },
    requireWriting(key) {
      if (!writable) throw new AppError("denied", `${principal.user} may not write objects of ${path}.`);
      const owner = ownerOf(owners, principal, key);
      if (owner) requirePermission(principal, owner.permissions.write);
    },
  };
}

/**
 * The entries whose keys and texts an owner may answer to the principal under its own permission. Only rules on the
 * class of configuration itself restrict them: rules on classes above it do not speak of the owner's data.
 */
export async function ownedVisibility(
  principal: Principal,
  objects: Pick<Objects, "visible">,
): Promise<(entry: Entry) => boolean> {
  const path = `${principal.ospace}${CONFIG_PATH}`;
  if (!decidingRules(principal, path).some((rule) => rule.class === path)) return () => true;
  const filter = await objects.visible.records(principal, path);
  return (entry) => {
    const record = recordOf(principal, entry);
    if (!filter.sees(record)) return false;
    const shown: Partial<ConfigRecord> = filter.shown(record);
    return shown.key !== undefined && shown.value !== undefined;
  };
}

/** True if the key has no owner, or if its owner shows the entry to the principal. */
export function ownersSee(owners: readonly ConfigOwner[], principal: Principal, entry: Entry): boolean {
  const owner = ownerOf(owners, principal, entry.key);
  if (owner === undefined || isDelete(entry)) return true;
  return allows(principal, owner.permissions.read) && owner.sees(principal, entry.key, entry.text ?? "");
}

function ownerOf(owners: readonly ConfigOwner[], { ospace }: Principal, key: string): ConfigOwner | undefined {
  return owners.find(({ prefix }) => key !== ospace + prefix && isInside(ospace + prefix, key));
}

/** The record of an entry with all columns of its class. The query area removes what the caller may not see. */
export function recordOf(principal: Pick<Principal, "ospace">, entry: Entry): ConfigRecord {
  const { key, n, by, atMs, expiresAtMs } = entry;
  return {
    id: `config:${key}`,
    class: `${principal.ospace}${CONFIG_PATH}`,
    key,
    name: nameOf(key),
    parent: parentOf(key),
    value: shownText(entry),
    secret: entry.sealed !== undefined,
    version: n,
    author: by,
    changed: atMs,
    ...(expiresAtMs !== undefined && { expires: expiresAtMs }),
  };
}

export function shownText({ text, sealed }: Pick<Entry, "text" | "sealed">): string {
  return sealed === undefined ? (text ?? "") : MASK;
}

export function unknownKey(key: string): AppError {
  return new AppError("not_found", `There is no configuration ${key}.`);
}

export function outsideRule({ user }: Principal, key: string): AppError {
  return new AppError("denied", `${key} is not among the configuration that ${user} may change.`);
}
