import { AppError } from "../../../common/errors.ts";
import { uuidOf } from "../../../common/ids.ts";
import { parseJson } from "../../../common/json.ts";
import {
  APPCONTEXT_ITEM_MAX_BYTES,
  APPCONTEXT_LISTS_MAX_BYTES,
  APPCONTEXT_NAME_MAX_BYTES,
  APPCONTEXT_TEXT_MAX_BYTES,
} from "../../../common/limits.ts";
import { checkName } from "../../../common/names.ts";
import { compileWhere, parseWhere } from "../../../common/where/index.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { Slices } from "../query/index.ts";
import { expiryOf } from "./expiry.ts";
import { HeldBytes } from "./held.ts";
import { endOf, itemOf, listed, type Selection } from "./listing.ts";
import { ContextStores } from "./store.ts";
import type { Item, ItemQuery, ItemText, Written } from "./types.ts";

const UUID_ENTROPY_BYTES = 10;
const NAME = { maxBytes: APPCONTEXT_NAME_MAX_BYTES, limit: "APPCONTEXT_NAME_MAX_BYTES" };
const KEY = { ...NAME, what: "key" };
const COLLECTION = { ...NAME, what: "name of a collection" };
const ITEM = { ...NAME, what: "id of an item" };

/** Variables that programs share, and collections of items: texts and JSON objects that may expire. */
export class AppcontextService {
  readonly #stores: ContextStores;
  readonly #runtime: Runtime;
  readonly #held = new HeldBytes(APPCONTEXT_LISTS_MAX_BYTES);

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = new ContextStores({ stores, clock: runtime.clock, random: runtime.random }, "collection");
    this.#runtime = runtime;
  }

  /** The text; `AppError("not_found")` if there is none or it has expired. */
  async variable(principal: Principal, key: string): Promise<string> {
    requirePermission(principal, "appcontext:read");
    checkName(key, KEY);
    const stored = await (await this.#stores.of(principal.tenant)).variable(key);
    if (!stored) throw new AppError("not_found", `There is no variable ${key}.`);
    return stored.text;
  }

  /** Inserts or replaces the variable with the given ttl: 0 or absent is for ever. */
  async setVariable(
    principal: Principal,
    { key, text, ttlSeconds }: { readonly key: string; readonly text: string; readonly ttlSeconds?: number },
  ): Promise<void> {
    requirePermission(principal, "appcontext:write");
    checkName(key, KEY);
    checkSize(text, "A variable", APPCONTEXT_TEXT_MAX_BYTES);
    const expiresAtMs = expiryOf(this.#runtime.clock, ttlSeconds);
    await (await this.#stores.of(principal.tenant)).setVariable(key, text, expiresAtMs);
  }

  /** No error if there is none. */
  async removeVariable(principal: Principal, key: string): Promise<void> {
    requirePermission(principal, "appcontext:write");
    checkName(key, KEY);
    await (await this.#stores.of(principal.tenant)).removeVariable(key);
  }

  /** Creates an item. Its id is a UUID ordered by time. */
  async create(principal: Principal, item: ItemText): Promise<Written> {
    requirePermission(principal, "appcontext:write");
    const entropy = this.#runtime.random.bytes(UUID_ENTROPY_BYTES);
    return this.#write(principal, { ...item, id: uuidOf(this.#runtime.clock.nowMs(), entropy) }, false);
  }

  /** Inserts or replaces the item of that id. An item that is replaced keeps its place in the collection. */
  async put(principal: Principal, item: ItemText & { readonly id: string }): Promise<Written> {
    requirePermission(principal, "appcontext:write");
    return this.#write(principal, item, false);
  }

  /** Replaces the item of that id; `AppError("not_found")` if there is none or it has expired. */
  async replace(principal: Principal, item: ItemText & { readonly id: string }): Promise<Written> {
    requirePermission(principal, "appcontext:write");
    return this.#write(principal, item, true);
  }

  async item(principal: Principal, collection: string, id: string): Promise<Item> {
    requirePermission(principal, "appcontext:read");
    checkItemName(collection, id);
    const stored = await (await this.#stores.of(principal.tenant)).item(collection, id);
    if (!stored) throw itemNotFound(collection, id);
    return itemOf(stored);
  }

  /** No error if there is none. */
  async removeItem(principal: Principal, collection: string, id: string): Promise<void> {
    requirePermission(principal, "appcontext:write");
    checkItemName(collection, id);
    await (await this.#stores.of(principal.tenant)).removeItem(collection, id);
  }

  /** Removes the items present when it begins; items created meanwhile may stay. Safe to repeat. */
  async removeItems(principal: Principal, collection: string): Promise<void> {
    requirePermission(principal, "appcontext:write");
    checkName(collection, COLLECTION);
    await (await this.#stores.of(principal.tenant)).removeItems(collection);
  }

  /** Oldest first. A collection without items is empty, not an error. */
  async *list(principal: Principal, query: ItemQuery): AsyncGenerator<readonly Item[]> {
    requirePermission(principal, "appcontext:read");
    yield* listed(await this.#selection(principal, query), this.#held);
  }

  /** `undefined` when no item fulfils the condition. */
  async end(principal: Principal, query: ItemQuery, end: "first" | "last"): Promise<Item | undefined> {
    requirePermission(principal, "appcontext:read");
    return endOf(await this.#selection(principal, query), end);
  }

  async #selection(principal: Principal, { collection, where, signal }: ItemQuery): Promise<Selection> {
    checkName(collection, COLLECTION);
    const condition = where !== undefined && where.trim() !== "" ? compileWhere(parseWhere(where)) : undefined;
    const store = await this.#stores.of(principal.tenant);
    const slices = new Slices({ tenant: principal.tenant, clock: this.#runtime.clock, signal });
    return { pages: store.items(collection), slices, ...(condition && { condition }) };
  }

  async #write(principal: Principal, item: ItemText & { readonly id: string }, ifThere: boolean): Promise<Written> {
    const { collection, id, ttlSeconds } = item;
    checkItemName(collection, id);
    checkSize(item.text, "An item", APPCONTEXT_ITEM_MAX_BYTES);
    const value = objectIn(item.text);
    const written = {
      text: JSON.stringify({ ...value, id }),
      expiresAtMs: expiryOf(this.#runtime.clock, ttlSeconds),
      ifThere,
    };
    const store = await this.#stores.of(principal.tenant);
    if (!(await store.putItem({ collection, id }, written))) throw itemNotFound(collection, id);
    const isReplaced = Object.hasOwn(value, "id") && value["id"] !== id;
    return { id, warnings: isReplaced ? [`The member id of an item is its id in the collection, ${id}.`] : [] };
  }
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  const value = parseJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>;
  throw new AppError("invalid", "An item is a JSON object.");
}

function checkItemName(collection: string, id: string): void {
  checkName(collection, COLLECTION);
  checkName(id, ITEM);
}

function checkSize(text: string, what: string, maxBytes: number): void {
  if (Buffer.byteLength(text) > maxBytes) throw new AppError("too_large", `${what} has at most ${maxBytes} bytes.`);
}

function itemNotFound(collection: string, id: string): AppError {
  return new AppError("not_found", `The collection ${collection} has no item ${id}.`);
}
