import { Type } from "typebox";
import {
  CollectionName,
  CollectionRead,
  CollectionReply,
  ItemCreate,
  ItemName,
  ItemReply,
  ItemText,
  ItemWrite,
  VariableKey,
  VariableWrite,
} from "../../../common/api/appcontext.ts";
import { AppError } from "../../../common/errors.ts";
import { APPCONTEXT_ITEM_MAX_BYTES, APPCONTEXT_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../http/interface/endpoint.ts";
import type { AppcontextService } from "./service.ts";

const ITEM_TEXT = {
  summary: "The item, as a JSON object",
  example: '{"title": "Night shift", "open": true}',
  json: ItemText,
} as const;

export function appcontextRoutes(appcontext: AppcontextService): readonly Endpoint[] {
  return [...variableRoutes(appcontext), ...collectionRoutes(appcontext), ...itemRoutes(appcontext)];
}

function variableRoutes(appcontext: AppcontextService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/appcontext/:key",
      permission: "appcontext:read",
      summary: "The text of a variable",
      input: VariableKey,
      output: Type.String(),
      handler: async ({ principal, input }) => ({ message: await appcontext.variable(principal, input.key) }),
    }),
    endpoint({
      method: "POST",
      path: "/appcontext/:key",
      permission: "appcontext:write",
      summary: "Set a variable: the body is its text as it is",
      input: VariableWrite,
      output: Type.String(),
      body: "raw",
      text: { summary: "The text to keep", example: "blue" },
      bodyMaxBytes: APPCONTEXT_TEXT_MAX_BYTES,
      handler: async ({ principal, input, text }) => {
        await appcontext.setVariable(principal, { key: input.key, text: bodyOf(text), ...ttlOf(input) });
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/appcontext/:key",
      permission: "appcontext:write",
      summary: "Remove a variable; ok also when there is none",
      input: VariableKey,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await appcontext.removeVariable(principal, input.key);
        return { message: "" };
      },
    }),
  ];
}

function collectionRoutes(appcontext: AppcontextService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/appcontext/collection/:name",
      permission: "appcontext:read",
      summary: "Items of a collection, the oldest first, or one of them",
      input: CollectionRead,
      output: CollectionReply,
      handler: async ({ principal, input, signal }) => {
        const { name: collection, where, type } = input;
        const query = { collection, signal, ...(where !== undefined && { where }) };
        if (type === undefined || type === "") return { rows: appcontext.list(principal, query) };
        return { message: (await appcontext.end(principal, query, type)) ?? "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/appcontext/collection/:name",
      permission: "appcontext:write",
      summary: "Make an item of the JSON object in the body; the message is its id",
      input: ItemCreate,
      output: Type.String(),
      body: "raw",
      text: ITEM_TEXT,
      bodyMaxBytes: APPCONTEXT_ITEM_MAX_BYTES,
      handler: async ({ principal, input, text }) => {
        const item = { collection: input.name, text: bodyOf(text), ...ttlOf(input) };
        const { id, warnings } = await appcontext.create(principal, item);
        return { message: id, warnings };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/appcontext/collection/:name",
      permission: "appcontext:write",
      summary: "Remove all items of a collection",
      input: CollectionName,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await appcontext.removeItems(principal, input.name);
        return { message: "" };
      },
    }),
  ];
}

function itemRoutes(appcontext: AppcontextService): readonly Endpoint[] {
  const path = "/appcontext/collection/:name/:id";
  const written = {
    path,
    permission: "appcontext:write",
    input: ItemWrite,
    output: Type.String(),
    body: "raw",
    text: ITEM_TEXT,
  } as const;
  return [
    endpoint({
      method: "GET",
      path,
      permission: "appcontext:read",
      summary: "One item",
      input: ItemName,
      output: ItemReply,
      handler: async ({ principal, input }) => ({ message: await appcontext.item(principal, input.name, input.id) }),
    }),
    endpoint({
      ...written,
      method: "POST",
      summary: "Insert or replace the item of that id",
      bodyMaxBytes: APPCONTEXT_ITEM_MAX_BYTES,
      handler: async ({ principal, input, text }) => {
        const { warnings } = await appcontext.put(principal, { ...itemIn(input), text: bodyOf(text) });
        return { message: "", warnings };
      },
    }),
    endpoint({
      ...written,
      method: "PUT",
      summary: "Replace the item of that id, which has to be there",
      bodyMaxBytes: APPCONTEXT_ITEM_MAX_BYTES,
      handler: async ({ principal, input, text }) => {
        const { warnings } = await appcontext.replace(principal, { ...itemIn(input), text: bodyOf(text) });
        return { message: "", warnings };
      },
    }),
    endpoint({
      method: "DELETE",
      path,
      permission: "appcontext:write",
      summary: "Remove one item; ok also when there is none",
      input: ItemName,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await appcontext.removeItem(principal, input.name, input.id);
        return { message: "" };
      },
    }),
  ];
}

/** An empty body is an empty text; a missing body is an error. */
function bodyOf(text: string | undefined): string {
  if (text === undefined) throw new AppError("invalid", "The body is missing: it is the text to keep.");
  return text;
}

function itemIn(input: { readonly name: string; readonly id: string; readonly ttl?: number }) {
  return { collection: input.name, id: input.id, ...ttlOf(input) };
}

function ttlOf({ ttl }: { readonly ttl?: number }): { readonly ttlSeconds?: number } {
  return ttl === undefined ? {} : { ttlSeconds: ttl };
}
