import { Type } from "typebox";
import { AppError, isAppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostContext, type HostFunction, type HostObject } from "../../scripting/index.ts";
import type { AppcontextService } from "./service.ts";

const KEY = { name: "key", schema: Type.String({ description: "Name of the variable" }) } as const;
const COLLECTION = { name: "name", schema: Type.String({ description: "Name of the collection" }) } as const;
const ID = { name: "id", schema: Type.String({ description: "Id of the item" }) } as const;
const ITEM = { name: "item", schema: Type.Object({}, { description: "The item" }) } as const;
const WHERE = {
  name: "where",
  schema: Type.String({ description: "Condition over the members of an item; all when absent" }),
  optional: true,
} as const;
const TTL = {
  name: "ttl",
  schema: Type.Number({ minimum: 0, description: "Seconds; 0 or absent: for ever" }),
  optional: true,
} as const;
const MAKE = 'var id = appcontext.create("example", { n: 1 }, 60); ';

/** `appcontext`: variables and collections that programs share. */
export function appcontextHostObject(appcontext: AppcontextService): HostObject {
  return {
    name: "appcontext",
    summary: "Variables and collections that programs share",
    functions: [...variables(appcontext), ...reading(appcontext), ...writing(appcontext)],
  };
}

function variables(appcontext: AppcontextService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "rawget",
      summary: "The text of a variable",
      parameters: [KEY],
      returns: "text, or null when there is none",
      example: 'OUTPUT = appcontext.rawget("example")',
      call: ({ principal }, key) => orNull(appcontext.variable(principal, key)),
    }),
    hostFunction({
      name: "rawset",
      summary: "Sets a variable",
      parameters: [KEY, { name: "text", schema: Type.String({ description: "Its text" }) }, TTL],
      returns: "nothing",
      example: 'appcontext.rawset("example", "text", 60)',
      changes: true,
      call: async ({ principal }, key, text, ttl) => {
        await appcontext.setVariable(principal, { key, text, ...ttlOf(ttl) });
        return undefined;
      },
    }),
  ];
}

function reading(appcontext: AppcontextService): readonly HostFunction[] {
  const end = (name: string, which: "first" | "last"): HostFunction =>
    hostFunction({
      name,
      summary: `The ${which} item of a collection`,
      parameters: [COLLECTION, WHERE],
      returns: "the item, or null when there is none",
      example: `OUTPUT = appcontext.${name}("example")`,
      call: async ({ principal, signal }, collection, where) =>
        (await appcontext.end(principal, { collection, signal, ...whereOf(where) }, which)) ?? null,
    });
  return [
    hostFunction({
      name: "getall",
      summary: "The items of a collection, the oldest first",
      parameters: [COLLECTION, WHERE],
      returns: "list of items",
      example: `${MAKE}OUTPUT = appcontext.getall("example", "n >= 1")`,
      call: (context, collection, where) => all(appcontext, context, { collection, ...whereOf(where) }),
    }),
    end("getfirst", "first"),
    end("getlast", "last"),
    hostFunction({
      name: "get",
      summary: "One item of a collection",
      parameters: [COLLECTION, ID],
      returns: "the item, or null when there is none",
      example: `${MAKE}OUTPUT = appcontext.get("example", id).n`,
      call: ({ principal }, collection, id) => orNull<Value>(appcontext.item(principal, collection, id)),
    }),
  ];
}

function writing(appcontext: AppcontextService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "create",
      summary: "Puts a new item into a collection",
      parameters: [COLLECTION, ITEM, TTL],
      returns: "the id of the item",
      example: `${MAKE}OUTPUT = id`,
      changes: true,
      call: async ({ principal }, collection, item, ttl) =>
        (await appcontext.create(principal, { collection, text: JSON.stringify(item), ...ttlOf(ttl) })).id,
    }),
    hostFunction({
      name: "update",
      summary: "Replaces an item that is there",
      parameters: [COLLECTION, ID, ITEM, TTL],
      returns: "the id of the item",
      example: `${MAKE}appcontext.update("example", id, { n: 2 }, 60)`,
      changes: true,
      call: async ({ principal }, collection, id, item, ttl) =>
        (await appcontext.replace(principal, { collection, id, text: JSON.stringify(item), ...ttlOf(ttl) })).id,
    }),
    hostFunction({
      name: "delete",
      summary: "Removes an item",
      parameters: [COLLECTION, ID],
      returns: "nothing",
      example: `${MAKE}appcontext.delete("example", id)`,
      changes: true,
      call: async ({ principal }, collection, id) => {
        await appcontext.removeItem(principal, collection, id);
        return undefined;
      },
    }),
    hostFunction({
      name: "deleteall",
      summary: "Removes the items of a collection",
      parameters: [COLLECTION],
      returns: "nothing",
      example: 'appcontext.deleteall("example")',
      changes: true,
      call: async ({ principal }, collection) => {
        await appcontext.removeItems(principal, collection);
        return undefined;
      },
    }),
  ];
}

async function all(
  appcontext: AppcontextService,
  { principal, signal }: HostContext,
  query: { readonly collection: string; readonly where?: string },
): Promise<Value> {
  const items: Value[] = [];
  for await (const page of appcontext.list(principal, { ...query, signal })) {
    items.push(...page);
    if (items.length <= QUERY_COLLECT_MAX_ROWS) continue;
    const message = `More than ${QUERY_COLLECT_MAX_ROWS} items: narrow them by where.`;
    throw new AppError("too_large", message, { details: { limit: "QUERY_COLLECT_MAX_ROWS" } });
  }
  return items;
}

async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (isAppError(error, "not_found")) return null;
    throw error;
  }
}

function whereOf(where: string | undefined): { readonly where?: string } {
  return where === undefined ? {} : { where };
}

function ttlOf(ttl: number | undefined): { readonly ttlSeconds?: number } {
  return ttl === undefined ? {} : { ttlSeconds: ttl };
}
