import { Readable } from "node:stream";
import { Type, type Static } from "typebox";
import {
  ConfigDiffInput,
  ConfigDiffReply,
  ConfigEntryKey,
  ConfigExportInput,
  ConfigFile,
  ConfigHistoryReply,
  ConfigImportInput,
  ConfigImportReply,
  ConfigGetInput,
  ConfigListInput,
  ConfigListReply,
  ConfigNodeReply,
  ConfigRollback,
  ConfigSet,
  ConfigWatchFrame,
  ConfigWatchInput,
} from "../../../common/api/config.ts";
import { ConfigSchemaInput, ConfigSchemaKey, ConfigSchemaReply } from "../../../common/api/config-schema.ts";
import { AppError } from "../../../common/errors.ts";
import { CONFIG_PAGE_DEFAULT_ENTRIES, HTTP_SMALL_BODY_MAX_BYTES } from "../../../common/limits.ts";
import { encodingGiven } from "../../../common/text/encodings.ts";
import { endpoint, type Answer, type Call, type Endpoint, type UploadedFile } from "../../http/interface/endpoint.ts";
import { followOnSocket } from "../../http/sockets/following.ts";
import { socketEndpoint, type SocketEndpoint } from "../../http/sockets/socket.ts";
import { fileOf } from "./file.ts";
import type { ConfigHistory } from "./history.ts";
import type { ConfigImport } from "./import.ts";
import { ROOT } from "./keys.ts";
import type { ConfigSchemas } from "./schemas.ts";
import type { ConfigService } from "./service.ts";
import type { ConfigWatch } from "./watch.ts";

export interface ConfigServices {
  readonly config: ConfigService;
  readonly history: ConfigHistory;
  readonly imports: ConfigImport;
  readonly schemas: ConfigSchemas;
  readonly watch: ConfigWatch;
}

/**
 * Sends all present entries, and then every change, as JSON text frames. Sends a frame only after the network has taken
 * the previous one.
 */
export function configSockets({ watch }: Pick<ConfigServices, "watch">): readonly SocketEndpoint[] {
  return [
    socketEndpoint({
      path: "/config/watch",
      permission: "config:read",
      summary:
        "Entries at and below a key, `{ready: true}`, then every change; a key that goes is `{key, deleted: true}`",
      input: ConfigWatchInput,
      frames: ConfigWatchFrame,
      open: ({ principal, input: { key = ROOT }, line, present }) => {
        const frames = (): AsyncIterable<object> => watch.follow(principal, key, { signal: line.closed, present });
        void followOnSocket(line, () => Promise.resolve(frames()));
      },
    }),
  ];
}

export function configRoutes(services: ConfigServices): readonly Endpoint[] {
  return [...entryRoutes(services), ...transferRoutes(services), ...historyRoutes(services), ...schemaRoutes(services)];
}

function entryRoutes({ config }: ConfigServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/config/get",
      permission: "config:read",
      summary: "An entry of configuration, or a directory with everything below it",
      input: ConfigGetInput,
      output: ConfigNodeReply,
      revised: true,
      handler: async ({ principal, input: { key, cached = false }, signal }) => {
        const { node, revision } = await config.read(principal, key, { cached, signal });
        return { message: node, revision };
      },
    }),
    endpoint({
      method: "GET",
      path: "/config/list",
      permission: "config:read",
      summary: "Entries at and below a key, page by page in the order of keys; meta.next leads on",
      input: ConfigListInput,
      output: ConfigListReply,
      handler: async ({ principal, input: { key = ROOT, after, limit = CONFIG_PAGE_DEFAULT_ENTRIES } }) => {
        const { records, next } = await config.list(principal, { key, after, limit });
        return { message: [...records], meta: next === undefined ? {} : { next } };
      },
    }),
    endpoint({
      method: "POST",
      path: "/config/set",
      permission: "config:write",
      summary: "Write an entry of configuration",
      input: ConfigSet,
      output: Type.String(),
      body: "form",
      revised: true,
      handler: async ({ principal, input: { ttl, ...entry }, expected }) => {
        const { warnings, revision } = await config.set(principal, { ...entry, ttlSeconds: ttl, expected });
        return { message: "", warnings, revision };
      },
    }),
    endpoint({
      method: "POST",
      path: "/config/del",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "config:write",
      summary: "Delete an entry, or a directory with everything below it",
      input: ConfigEntryKey,
      output: Type.String(),
      body: "form",
      revised: true,
      handler: async ({ principal, input, expected }) => {
        await config.remove(principal, input.key, expected);
        return { message: "", revision: undefined };
      },
    }),
  ];
}

function transferRoutes({ config, imports }: ConfigServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/config/export",
      permission: "config:read",
      summary: "Everything at and below a key as a JSON file that can be imported",
      input: ConfigExportInput,
      output: Type.String(),
      bare: { content: { "application/json": { summary: "The file", schema: ConfigFile } }, only: true },
      handler: (call) => exported(config, call),
    }),
    endpoint({
      method: "POST",
      path: "/config/import",
      permission: "config:write",
      summary: "Takes entries of a JSON file in, all or nothing, or plans it",
      input: ConfigImportInput,
      output: ConfigImportReply,
      body: "multipart",
      uploads: "one",
      handler: async ({ principal, input, files, signal }) => {
        const { path, size } = onlyFile(files);
        const encoding = encodingGiven(input.encoding);
        const request = { path, size, key: input.key, plan: input.plan ?? false, encoding, signal };
        const { warnings, changes, ...counts } = await imports.run(principal, request);
        return { message: { ...counts, ...(changes && { changes: [...changes] }) }, warnings };
      },
    }),
  ];
}

function historyRoutes({ history }: ConfigServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/config/history",
      permission: "config:read",
      summary: "Versions of an entry with their authors and times",
      input: ConfigEntryKey,
      output: ConfigHistoryReply,
      handler: async ({ principal, input }) => ({ message: [...(await history.history(principal, input.key))] }),
    }),
    endpoint({
      method: "GET",
      path: "/config/diff",
      permission: "config:read",
      summary: "What changed between two versions of an entry",
      input: ConfigDiffInput,
      output: ConfigDiffReply,
      handler: async ({ principal, input }) => {
        const { from, ...difference } = await history.diff(principal, input);
        return { message: { ...difference, ...(from && { from }) } };
      },
    }),
    endpoint({
      method: "POST",
      path: "/config/rollback",
      bodyMaxBytes: HTTP_SMALL_BODY_MAX_BYTES,
      permission: "config:write",
      summary: "Make an entry hold what it held in an earlier version",
      input: ConfigRollback,
      output: Type.String(),
      body: "form",
      revised: true,
      handler: async ({ principal, input: { key, version }, expected }) => ({
        message: "",
        revision: await history.rollback(principal, key, version, expected),
      }),
    }),
  ];
}

function schemaRoutes({ schemas }: ConfigServices): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/config/schema",
      permission: "config:read",
      summary: "What the values of a key may be, by its schema or that of the nearest directory above",
      input: ConfigSchemaKey,
      output: ConfigSchemaReply,
      handler: async ({ principal, input }) => ({ message: await schemas.get(principal, input.key) }),
    }),
    endpoint({
      method: "POST",
      path: "/config/schema",
      permission: "config:write",
      summary: "Say what the values of a key, or of all keys below a directory, may be from now on",
      input: ConfigSchemaInput,
      output: Type.String(),
      body: "json",
      handler: async ({ principal, input: { key, ...rules } }) => {
        await schemas.set(principal, key, rules);
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/config/schema",
      permission: "config:write",
      summary: "Remove the schema of a key or a directory",
      input: ConfigSchemaKey,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await schemas.remove(principal, input.key);
        return { message: "" };
      },
    }),
  ];
}

type ExportCall = Call<Static<typeof ConfigExportInput>>;

/** Answers an export. Waits for the first entry, so that most failures can still be answered with an error. */
async function exported(config: ConfigService, { principal, input, signal }: ExportCall): Promise<Answer<string>> {
  const key = input.key || ROOT;
  const entries = await config.exported(principal, key, signal);
  const content = Readable.from(fileOf(entries, { key, relative: input.relative ?? false }), { objectMode: false });
  const name = key.split("/").findLast((part) => part !== "") ?? "config";
  return { content, contentType: "application/json; charset=utf-8", filename: `${name}.json` };
}

function onlyFile(files: readonly UploadedFile[]): UploadedFile {
  const [file, second] = files;
  if (file && !second) return file;
  throw new AppError("invalid", `An import takes one file as uploadfile, not ${files.length}.`);
}
