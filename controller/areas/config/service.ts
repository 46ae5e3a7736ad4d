import type { ConfigNode } from "../../../common/api/config.ts";
import { AppError } from "../../../common/errors.ts";
import { CONFIG_CHANGE_MAX_KEYS, KV_PAGE_MAX_ENTRIES } from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import { requireExpected, revisionOf, type Expected } from "../../../common/revisions.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Objects } from "../objects/index.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { Slices } from "../query/index.ts";
import type { ConfigCache } from "./cache.ts";
import type { ConfigChanges } from "./changes.ts";
import { continued, type ConfigEntries } from "./entries.ts";
import { anyKey, below, entryKey, ROOT } from "./keys.ts";
import {
  outsideRule,
  ownersSee,
  recordOf,
  visibilityOf,
  unknownKey,
  type ConfigOwner,
  type ConfigVisibility,
  type ShownRecord,
} from "./rights.ts";
import { stampOf, type Content, type Entry } from "./stored.ts";
import { emptyDirectory, treeOf } from "./tree.ts";
import { conforming, TypedKeys } from "./typed.ts";
import { checkValue, contentOf, expiryOf } from "./values.ts";

export interface ConfigDependencies {
  readonly entries: ConfigEntries;
  readonly cache: ConfigCache;
  readonly changes: ConfigChanges;
  readonly objects: Pick<Objects, "visible">;
  readonly runtime: Runtime;
  readonly secrets: SecretBox;
  readonly owners: readonly ConfigOwner[];
}

export interface SetRequest {
  readonly key: string;
  readonly value: string;
  /** 0, -1 or absent: the entry does not expire. */
  readonly ttlSeconds?: number | undefined;
  /** Absent: the value stays secret if the stored one is. */
  readonly secret?: boolean | undefined;
  /** True: changes nothing if the principal sees no such entry. */
  readonly mustExist?: boolean;
  readonly expected?: Expected | undefined;
}

export interface SetOutcome {
  /** The normalised key. */
  readonly key: string;
  readonly isThere: boolean;
  readonly warnings: readonly string[];
  /** Revision of the written entry; absent if nothing was written. */
  readonly revision?: string;
}

export interface ListRequest {
  /** The list contains the entries at and below this key. */
  readonly key: string;
  /** The `next` of the previous page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface TreeOptions {
  readonly cached?: boolean;
  readonly signal?: AbortSignal;
}

/** One page of visible entries; `next` is the `after` of the next page. */
export interface ListPage {
  readonly records: readonly ShownRecord[];
  readonly next?: string;
}

export interface ReadConfig {
  readonly node: ConfigNode;
  readonly revision?: string;
}

type View = Pick<ConfigVisibility, "sees" | "shown">;

/** Reads, writes and deletes configuration entries with the rights of a principal. */
export class ConfigService {
  readonly #with: ConfigDependencies;

  constructor(dependencies: ConfigDependencies) {
    this.#with = dependencies;
  }

  async set(principal: Principal, request: SetRequest): Promise<SetOutcome> {
    requirePermission(principal, "config:write");
    const key = entryKey(principal.ospace, request.key);
    const visibility = await this.#visibility(principal);
    visibility.requireWriting(key);
    const warnings = await checkValue(principal, visibility, { ...request, key });
    const schema = await new TypedKeys(this.#with.entries, principal).of(key);
    const expiresAtMs = expiryOf(request.ttlSeconds, this.#with.runtime.clock.nowMs());
    let isThere = true;
    const decide = (found: Entry | undefined): Content | undefined => {
      isThere = found !== undefined && visibility.sees(found);
      if (request.mustExist && !isThere) return undefined;
      if (found && !isThere) throw outsideRule(principal, key);
      requireExpected(request.expected, key, found && stampOf(found));
      const wanted = conforming(schema, { ...request, key }, found);
      const held = contentOf(wanted, { tenant: principal.tenant, found, secrets: this.#with.secrets });
      const content = { ...held, ...(expiresAtMs !== undefined && { expiresAtMs }) };
      visibility.requireSeenAfter({ key, found, content });
      return content;
    };
    const { id } = await this.#with.entries.write(principal.tenant, [key], () => decide, { by: principal.user });
    return { key, isThere, warnings, ...(id !== undefined && { revision: id }) };
  }

  /**
   * Deletes the entry and everything below it, limited to what the principal sees. Returns the number of deleted
   * entries. `AppError("not_found")` if there is none. Entries that others write below the key during the call may
   * stay. Only a single entry has a revision that can be expected.
   */
  async remove(principal: Principal, text: string, expected?: Expected): Promise<number> {
    requirePermission(principal, "config:write");
    const key = entryKey(principal.ospace, text);
    const visibility = await this.#visibility(principal);
    visibility.requireWriting(key);
    const keys: string[] = [];
    for await (const entry of this.#with.entries.at(principal.tenant, key)) {
      if (!visibility.sees(entry)) continue;
      visibility.requireWriting(entry.key);
      if (keys.push(entry.key) > CONFIG_CHANGE_MAX_KEYS)
        throw new AppError(
          "too_large",
          `More than ${CONFIG_CHANGE_MAX_KEYS} keys lie below ${key}: delete it by parts.`,
        );
    }
    if (keys.length === 0) throw unknownKey(key);
    if (expected !== undefined) {
      if (keys.length > 1 || keys[0] !== key)
        throw new AppError("invalid", `${key} is a directory, which has no revision.`);
      return this.#removeExpected(principal, key, expected);
    }
    await this.#with.changes.make(
      principal,
      keys.map((one) => ({ key: one })),
    );
    return keys.length;
  }

  async #removeExpected({ tenant, user }: Principal, key: string, expected: Expected): Promise<number> {
    const decide = (found: Entry | undefined): "delete" => {
      requireExpected(expected, key, found && stampOf(found));
      return "delete";
    };
    await this.#with.entries.write(tenant, [key], () => decide, { by: user });
    return 1;
  }

  /** Deletes exactly these entries. Returns the number of those that existed and that the principal sees. */
  async removeEntries(principal: Principal, keys: readonly string[]): Promise<number> {
    requirePermission(principal, "config:write");
    const visibility = await this.#visibility(principal);
    const found: { readonly key: string }[] = [];
    for (const key of keys) {
      visibility.requireWriting(key);
      const entry = await this.#with.entries.get(principal.tenant, key);
      if (entry && visibility.sees(entry)) found.push({ key });
    }
    await this.#with.changes.make(principal, found);
    return found.length;
  }

  /**
   * The entry at the key with everything below it. Entries are read during the call, not all at the same time; with
   * `cached`, they may be up to `CONFIG_CACHED_MAX_AGE_MS` old. `AppError("not_found")` if nothing is there; the root
   * and the ospace always exist.
   */
  async tree(principal: Principal, text: string, options: TreeOptions = {}): Promise<ConfigNode> {
    return (await this.read(principal, text, options)).node;
  }

  /** As `tree`, with the revision of the entry at the key itself; a directory has none. */
  async read(principal: Principal, text: string, options: TreeOptions = {}): Promise<ReadConfig> {
    requirePermission(principal, "config:read");
    const key = anyKey(text);
    const visibility = await this.#visibility(principal);
    const { signal, cached = false } = options;
    const held = cached ? await this.#with.cache.at(principal.tenant, key) : undefined;
    let own: Entry | undefined;
    const shows = (entry: Entry): ShownRecord => {
      if (entry.key === key) own = entry;
      return visibility.shown(entry);
    };
    const view = { sees: (entry: Entry) => visibility.sees(entry), shown: shows };
    const shown = held ? shownOf(held, view) : this.#shown(principal, { key, visibility: view, signal });
    const tree = await treeOf(key, shown, this.#with.runtime.clock.nowMs());
    const node = tree ?? emptyDirectory(key, principal.ospace);
    if (node === undefined) throw unknownKey(key);
    return { node, ...(own && { revision: revisionOf(stampOf(own)) }) };
  }

  /**
   * One page of entries at and below the key, in byte order of keys. The entries below the key are one snapshot within
   * a page if the principal sees all of them. The entry at the key itself is read just before, and several pages are not
   * one snapshot. Nothing depends on entries that the principal does not see.
   */
  async list(principal: Principal, request: ListRequest): Promise<ListPage> {
    requirePermission(principal, "config:read");
    const { key: text, after, limit } = request;
    const key = anyKey(text);
    if (after && !isInside(key, after)) throw new AppError("invalid", `after is no key at or below ${key}.`);
    const visibility = await this.#visibility(principal);
    const { tenant } = principal;
    const own = after === undefined && key !== ROOT ? await this.#with.entries.get(tenant, key) : undefined;
    const entries = await this.#visibleBelow(tenant, { key, after, limit, visibility });
    const last = entries.length > limit ? entries[limit - 1] : undefined;
    return {
      records: shownOf([...(own ? [own] : []), ...entries.slice(0, limit)], visibility),
      ...(last !== undefined && { next: last.key }),
    };
  }

  /** Visible entries below the key, as far as the limit and at least one more, if there is one. */
  async #visibleBelow(
    tenant: string,
    { key, after, limit, visibility }: ListRequest & { readonly visibility: ConfigVisibility },
  ): Promise<readonly Entry[]> {
    const found: Entry[] = [];
    const most = Math.min(limit + 1, KV_PAGE_MAX_ENTRIES);
    for (let from = after; ; ) {
      const page = await this.#with.entries.page(tenant, below(key), {
        limit: most,
        ...(from !== undefined && { after: from }),
      });
      found.push(...page.entries.filter((entry) => visibility.sees(entry)));
      from = page.next;
      if (from === undefined || found.length > limit) return found;
    }
  }

  /**
   * Everything that the principal sees at and below the key, in byte order of keys. `AppError("not_found")`, before the
   * first entry, if there is nothing; the root and the ospace always exist.
   */
  async exported(principal: Principal, text: string, signal: AbortSignal): Promise<AsyncIterable<ShownRecord>> {
    requirePermission(principal, "config:read");
    const key = anyKey(text);
    const visibility = await this.#visibility(principal);
    const shown = this.#shown(principal, { key, visibility, signal });
    const first = await shown.next();
    if (first.done && emptyDirectory(key, principal.ospace) === undefined) throw unknownKey(key);
    return continued(first, shown);
  }

  /** Rows of all entries, for the class of entries. The query area applies the rules for rows and columns to them. */
  async *all(principal: Principal): AsyncGenerator<readonly Row[]> {
    requirePermission(principal, "config:read");
    let after: string | undefined;
    do {
      const page = await this.#with.entries.page(principal.tenant, ROOT, after === undefined ? {} : { after });
      yield page.entries
        .filter((entry) => ownersSee(this.#with.owners, principal, entry))
        .map((entry): Row => ({ ...recordOf(principal, entry) }));
      after = page.next;
    } while (after !== undefined);
  }

  async *#shown(
    principal: Principal,
    {
      key,
      visibility,
      signal,
    }: { readonly key: string; readonly visibility: View; readonly signal: AbortSignal | undefined },
  ): AsyncGenerator<ShownRecord> {
    const slices = new Slices({ tenant: principal.tenant, clock: this.#with.runtime.clock, signal });
    for await (const entry of this.#with.entries.at(principal.tenant, key)) {
      if (slices.isOver()) await slices.pause();
      if (visibility.sees(entry)) yield visibility.shown(entry);
    }
  }

  #visibility(principal: Principal): Promise<ConfigVisibility> {
    const { objects, owners, runtime } = this.#with;
    return visibilityOf(principal, { objects, owners, clock: runtime.clock });
  }
}

function shownOf(entries: readonly Entry[], visibility: View): readonly ShownRecord[] {
  return entries.filter((entry) => visibility.sees(entry)).map((entry) => visibility.shown(entry));
}
