import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { AppError } from "../../../common/errors.ts";
import { CONFIG_DIFF_MAX_EDITS } from "../../../common/limits.ts";
import { requireExpected, type Expected } from "../../../common/revisions.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { entryKey } from "./keys.ts";
import { outsideRule, visibilityOf, unknownKey, type ConfigVisibility, type ShownRecord } from "./rights.ts";
import type { ConfigDependencies } from "./service.ts";
import { isDelete, sealContext, stampOf, type Content, type Entry, type Version } from "./stored.ts";
import { conforming, TypedKeys } from "./typed.ts";
import { checkValue, contentOf as sealedOrText } from "./values.ts";

/** A version of a key as a principal sees it. Without `value`, the version is a deletion or its value is hidden. */
export interface ShownVersion
  extends Partial<Pick<ShownRecord, "value" | "secret" | "author" | "changed" | "expires">> {
  readonly version: number;
  readonly deleted?: true;
}

export interface VersionRange {
  readonly key: string;
  /** 0 stands for the time before the first version, when the key did not exist. */
  readonly from: number;
  readonly to: number;
}

export interface VersionDifference {
  readonly from: ShownVersion | undefined;
  readonly to: ShownVersion;
  /** A unified diff. In place of a secret, its mask is compared. */
  readonly patch: string;
}

/** The history of single keys: the versions that `ConfigEntries.versions` still has. */
export class ConfigHistory {
  readonly #with: ConfigDependencies;

  constructor(dependencies: ConfigDependencies) {
    this.#with = dependencies;
  }

  /** Versions of a key, latest first. `AppError("not_found")` if the principal sees none. */
  async history(principal: Principal, text: string): Promise<readonly ShownVersion[]> {
    requirePermission(principal, "config:read");
    const key = entryKey(principal.ospace, text);
    const visibility = await this.#visibility(principal);
    const versions = await this.#versions(principal, visibility, key);
    if (versions.length === 0) throw unknownKey(key);
    return versions.map((version) => shownVersion(visibility, key, version));
  }

  /** Difference of two versions. `AppError("too_large")` if they differ in more than `CONFIG_DIFF_MAX_EDITS` lines. */
  async diff(principal: Principal, range: VersionRange): Promise<VersionDifference> {
    requirePermission(principal, "config:read");
    const { key: text, from, to } = range;
    const key = entryKey(principal.ospace, text);
    const visibility = await this.#visibility(principal);
    const versions = await this.#versions(principal, visibility, key);
    const before = from === 0 ? undefined : pick(versions, key, from);
    const after = pick(versions, key, to);
    const shown = { from: before && shownVersion(visibility, key, before), to: shownVersion(visibility, key, after) };
    const patch = unifiedDiff(key, shown.from?.value ?? "", shown.to.value ?? "");
    return { ...shown, patch };
  }

  /**
   * Restores the content of a version, without its expiry. If the version is a deletion, deletes the key. The rollback
   * is a new change, to which the present rules apply. Returns the revision of the entry; `undefined` if it is deleted.
   */
  async rollback(principal: Principal, text: string, number: number, expected?: Expected): Promise<string | undefined> {
    requirePermission(principal, "config:write");
    const key = entryKey(principal.ospace, text);
    const visibility = await this.#visibility(principal);
    visibility.requireWriting(key);
    const version = pick(await this.#versions(principal, visibility, key), key, number);
    if (version.text !== undefined) await checkValue(principal, visibility, { key, value: version.text });
    const schema = await new TypedKeys(this.#with.entries, principal).of(key);
    const content = this.#conforming(principal.tenant, schema, { ...version, key, revision: 0 });
    const decide = (found: Entry | undefined): Content | "delete" => {
      if (found && !visibility.sees(found)) throw outsideRule(principal, key);
      requireExpected(expected, key, found && stampOf(found));
      if (isDelete(content)) return "delete";
      visibility.requireSeenAfter({ key, found, content });
      return content;
    };
    const { id } = await this.#with.entries.write(principal.tenant, [key], () => decide, { by: principal.user });
    return isDelete(content) ? undefined : id;
  }

  /**
   * The content of the version, adapted to the present schema: if the schema requires a secret, a readable value is
   * sealed. `AppError("invalid")` if the value breaks the schema.
   */
  #conforming(tenant: string, schema: Awaited<ReturnType<TypedKeys["of"]>>, version: Entry): Content {
    const content = contentOf(version);
    if (schema === undefined || isDelete(content)) return content;
    const { secrets } = this.#with;
    const { key, text, sealed } = version;
    if (sealed !== undefined)
      conforming(schema, { key, value: secrets.open(sealed, sealContext(tenant, key)) }, undefined);
    if (text === undefined) return content;
    return sealedOrText(conforming(schema, { key, value: text }, undefined), { tenant, found: undefined, secrets });
  }

  async #versions(principal: Principal, visibility: ConfigVisibility, key: string): Promise<readonly Version[]> {
    const versions = await this.#with.entries.versions(principal.tenant, key);
    return versions.filter((version) => visibility.sees({ ...version, key, revision: 0 }));
  }

  #visibility(principal: Principal): Promise<ConfigVisibility> {
    const { objects, owners, runtime } = this.#with;
    return visibilityOf(principal, { objects, owners, clock: runtime.clock });
  }
}

function contentOf({ text, sealed }: Version): Content {
  return { ...(text !== undefined && { text }), ...(sealed !== undefined && { sealed }) };
}

function pick(versions: readonly Version[], key: string, number: number): Version {
  const found = versions.find(({ n }) => n === number);
  if (found) return found;
  throw new AppError("not_found", `The version ${number} of ${key} is not kept, or there never was one.`);
}

function shownVersion(visibility: ConfigVisibility, key: string, version: Version): ShownVersion {
  const { value, secret, author, changed, expires } = visibility.shown({ ...version, key, revision: 0 });
  const isDeleted = isDelete(version);
  return {
    version: version.n,
    ...(author !== undefined && { author }),
    ...(changed !== undefined && { changed }),
    ...(isDeleted ? { deleted: true } : value !== undefined && { value }),
    ...(secret && { secret }),
    ...(expires !== undefined && { expires }),
  };
}

function unifiedDiff(key: string, before: string, after: string): string {
  const patch = createTwoFilesPatch(`a${key}`, `b${key}`, before, after, undefined, undefined, {
    maxEditLength: CONFIG_DIFF_MAX_EDITS,
    headerOptions: FILE_HEADERS_ONLY,
  });
  if (patch !== undefined) return patch;
  throw new AppError("too_large", `The versions of ${key} differ in more than ${CONFIG_DIFF_MAX_EDITS} lines.`);
}
