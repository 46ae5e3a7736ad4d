import { parseConditionText, partsOfCondition } from "../../../common/mql/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import { type ClassCatalog, idFromColumns, type Objects } from "../objects/index.ts";
import {
  accessKey,
  allows,
  classAccess,
  closingOf,
  hasRawBytes,
  type Principal,
  RAW_BYTES_FIELD,
  rowLimit,
} from "../permissions/index.ts";
import type { Notification, NotifiedObject } from "./types.ts";

type Seen = Promise<Notification | undefined>;

/** The part of a frame about an object that a receiver may see: the same that it could query. */
export class NotificationRights {
  readonly #objects: Pick<Objects, "catalog" | "visible">;
  /**
   * Results by rights: receivers with the same rights see the same part of a frame, so it is checked once for them. Not
   * used if the owner of a class hides some of its objects from some of them.
   */
  readonly #seen = new WeakMap<Notification, WeakMap<Principal["data"], Map<string, Seen>>>();

  constructor({ objects }: { readonly objects: Pick<Objects, "catalog" | "visible"> }) {
    this.#objects = objects;
  }

  /** The frame without anything that the principal may not see; `undefined` if it may see nothing of it. */
  async visible(principal: Principal, notification: Notification): Promise<Notification | undefined> {
    const { about } = notification;
    if (about === undefined) return notification;
    if (!allows(principal, about.permission)) return undefined;
    const catalog = await this.#objects.catalog(principal);
    if (isLimited(principal, about, catalog)) return this.#visible(principal, notification, { about, catalog });
    const byData = this.#seen.get(notification) ?? new WeakMap<Principal["data"], Map<string, Seen>>();
    this.#seen.set(notification, byData);
    const byRights = byData.get(principal.data) ?? new Map<string, Seen>();
    byData.set(principal.data, byRights);
    const key = accessKey(principal);
    let seen = byRights.get(key);
    if (seen === undefined) byRights.set(key, (seen = this.#visible(principal, notification, { about, catalog })));
    return seen;
  }

  async #visible(
    principal: Principal,
    notification: Notification,
    { about, catalog }: { readonly about: NotifiedObject; readonly catalog: ClassCatalog },
  ): Promise<Notification | undefined> {
    if (asksRawBytes(principal, about, catalog)) return undefined;
    const { hiddenIn, sees } = await this.#objects.visible.of(principal, about.class);
    const id = idOf(about, catalog);
    const object = { ...about, id };
    if (!sees(object)) {
      const { before } = about;
      if (before === undefined) return undefined;
      const was = { ...about, ...before, id, values: { ...about.values, ...before.values } };
      const saw = sees(was) && !about.told.some((column) => hiddenIn(was).has(column));
      return saw ? { ...notification, msg: before.msg } : undefined;
    }
    const hidden = hiddenIn(object);
    if (about.told.some((column) => hidden.has(column))) return undefined;
    const relations = (about.relations ?? []).filter((name) => !hidden.has(name));
    if (hidden.size === 0 && relations.length === 0) return notification;
    const body = JSON.parse(notification.msg) as Row;
    const part = about.member === undefined ? body : (body[about.member] as Row);
    const shown: Row = Object.fromEntries(
      Object.entries(part).filter(([name]) => !hidden.has(about.columns?.[name] ?? name)),
    );
    for (const name of relations) shown[name] = await this.#seenIds(principal, shown[name]);
    return {
      ...notification,
      msg: JSON.stringify(about.member === undefined ? shown : { ...body, [about.member]: shown }),
    };
  }

  /** Keeps the ids of objects that the principal may see. */
  async #seenIds(principal: Principal, value: Value | undefined): Promise<Value> {
    const ids = Array.isArray(value) ? (value as readonly Value[]).map(String) : [];
    const catalog = await this.#objects.catalog(principal);
    if (seesAllObjects(principal, catalog)) return ids;
    const found = await this.#objects.visible.get(
      principal,
      ids.map((id) => ({ id })),
    );
    return ids.filter((_, at) => found[at] !== undefined);
  }
}

function idOf({ class: path, id, values }: NotifiedObject, catalog: ClassCatalog): string {
  const view = catalog.get(path);
  return id ?? (view && idFromColumns(view, values)) ?? "";
}

/**
 * True if a row condition of the principal asks for raw bytes, as groups that an earlier version stored may. Changes do
 * not hold raw bytes, so the condition would be checked against null.
 */
function asksRawBytes(principal: Principal, { class: path }: NotifiedObject, catalog: ClassCatalog): boolean {
  const view = catalog.get(path);
  if (view === undefined || !hasRawBytes([view], catalog.edgeTypes())) return false;
  return classAccess(principal, view).parts.some(({ where = "" }) => namesRawBytes(where));
}

/** Searches the text first, so that most conditions need not be parsed. */
function namesRawBytes(where: string): boolean {
  if (!where.toLowerCase().includes(RAW_BYTES_FIELD)) return false;
  return partsOfCondition(parseConditionText(where)).some(
    (part) => part.kind === "field" && part.parts[0]?.toLowerCase() === RAW_BYTES_FIELD,
  );
}

/** True if the visible part of the object or of its related objects depends on more than rules. */
function isLimited(principal: Principal, { class: path, relations = [] }: NotifiedObject, catalog: ClassCatalog) {
  if (relations.length > 0) return isAnyLimited(principal, catalog);
  return rowLimit(principal, catalog.get(path)) !== undefined;
}

function isAnyLimited(principal: Principal, catalog: ClassCatalog): boolean {
  return catalog.tree("/").some((view) => rowLimit(principal, view) !== undefined);
}

function seesAllObjects(principal: Principal, catalog: ClassCatalog): boolean {
  const { data } = principal;
  return (
    !isAnyLimited(principal, catalog) &&
    catalog.tree("/").every((view) => closingOf(principal, view) === undefined) &&
    data.some((rule) => rule.class === "/") &&
    data.every((rule) => rule.access !== "none" && rule.where === undefined && rule.anywhere === undefined)
  );
}
