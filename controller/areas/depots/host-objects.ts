import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Type } from "typebox";
import { Deployment, DepotCreate, DepotFileChange } from "../../../common/api/depots.ts";
import { DEPOT_FILES_MAX } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostFunction, type HostObject, membersOf } from "../../scripting/index.ts";
import { requirePermission } from "../permissions/index.ts";
import { nameEncoding } from "../../archives/entry-names.ts";
import type { DeploymentService } from "./deployment.ts";
import type { DepotService } from "./service.ts";
import type { DepotUpload } from "./types.ts";

export interface DepotHostParts {
  readonly depots: DepotService;
  readonly deployments: DeploymentService;
}

const NAME = { name: "name", schema: Type.String({ description: "Name of the depot" }) } as const;
const VERSION = { name: "version", schema: Type.String({ description: "Three numbers: 1.0.0" }) } as const;
const NEWEST = { ...VERSION, optional: true } as const;
const MADE = (version: string) => `depot.create({ name: "example", version: "${version}" }, { "run.sh": "date" }); `;

/** Host object `depot`: depots and their deployment to hosts. */
export function depotHostObject({ depots, deployments }: DepotHostParts): HostObject {
  return {
    name: "depot",
    summary: "Depots and their deployment, with the rights of the script",
    functions: [...reading(depots), ...changing(depots), ...deploying(deployments)],
  };
}

function reading(depots: DepotService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "list",
      summary: "The depots",
      parameters: [],
      returns: "list of records of depots",
      example: 'OUTPUT = _.pluck(depot.list(), "name")',
      call: async ({ principal }) => valueOf(await depots.list(principal)),
    }),
    hostFunction({
      name: "get",
      summary: "One version with its files, the newest when none is named",
      parameters: [NAME, NEWEST],
      returns: "its record",
      example: `${MADE("1.0.1")}OUTPUT = depot.get("example", "1.0.1").files`,
      call: async ({ principal }, name, version) => valueOf(await depots.get(principal, name, version)),
    }),
    hostFunction({
      name: "exist",
      summary: "Whether there is a depot, or one version of it",
      parameters: [NAME, NEWEST],
      returns: "boolean",
      example: 'OUTPUT = depot.exist("none")',
      call: ({ principal }, name, version) => depots.exists(principal, name, version),
    }),
    hostFunction({
      name: "read",
      summary: "The content of a text file of a depot",
      parameters: [NAME, VERSION, { name: "path", schema: Type.String({ description: "In the depot" }) }],
      returns: "text",
      example: `${MADE("1.0.2")}OUTPUT = depot.read("example", "1.0.2", "run.sh")`,
      call: ({ principal }, name, version, path) => depots.readFile(principal, name, version, path),
    }),
    hostFunction({
      name: "diff",
      summary: "Differences of two versions, file by file",
      parameters: [NAME, VERSION, { ...VERSION, name: "other" }],
      returns: "list of {path, change, binary, diff}",
      example: `${MADE("1.0.3")}${MADE("1.0.4")}OUTPUT = depot.diff("example", "1.0.3", "1.0.4")`,
      call: async ({ principal }, ...[name, version, other]) =>
        valueOf(await depots.diff(principal, name, version, other)),
    }),
  ];
}

function changing(depots: DepotService): readonly HostFunction[] {
  return [
    hostFunction({
      name: "create",
      summary: "Makes a version of text files",
      parameters: [
        { name: "depot", schema: Type.Object({}, { description: "{name, version, remark, tags, command}" }) },
        {
          name: "files",
          schema: Type.Record(Type.String(), Type.String(), {
            description: "Text by path",
            minProperties: 1,
            maxProperties: DEPOT_FILES_MAX,
          }),
        },
      ],
      returns: "its record",
      example: MADE("1.0.5").trim(),
      changes: true,
      call: async ({ principal, log }, depot, files) => {
        requirePermission(principal, "depots:write");
        const { encoding, ...description } = membersOf(DepotCreate, depot, { log });
        const names = nameEncoding(encoding);
        return withUploads(files, async (uploads) => {
          const named = uploads.map((upload) => ({ ...upload, names }));
          return valueOf(await depots.create(principal, description, named));
        });
      },
    }),
    hostFunction({
      name: "changefile",
      summary: "Makes a new version with one file modified, added or deleted",
      parameters: [
        {
          name: "change",
          schema: Type.Object({}, { description: "{name, version, newVersion, filepath, type: M, A or D, content}" }),
        },
      ],
      returns: "the record of the new version",
      example: `${MADE("1.0.6")}depot.changefile({ name: "example", version: "1.0.6", newVersion: "1.0.7", filepath: "run.sh",
  type: "M", content: "uptime" })`,
      changes: true,
      call: async ({ principal, log }, change) =>
        valueOf(await depots.changeFile(principal, membersOf(DepotFileChange, change, { log }))),
    }),
    hostFunction({
      name: "delete",
      summary: "Deletes a depot, or one version of it",
      parameters: [
        NAME,
        NEWEST,
        { name: "force", schema: Type.Boolean({ description: "True: also what policies use" }), optional: true },
      ],
      returns: "how many versions are gone",
      example: `${MADE("1.0.8")}OUTPUT = depot.delete("example", "1.0.8")`,
      changes: true,
      call: ({ principal }, name, version, force) => depots.remove(principal, name, { version, force }),
    }),
  ];
}

function deploying(deployments: DeploymentService): readonly HostFunction[] {
  const placing = (name: "deploy" | "undeploy", summary: string, example: string): HostFunction =>
    hostFunction({
      name,
      summary,
      parameters: [
        {
          name: "deployment",
          schema: Type.Object(
            {},
            { description: "{hosts, depots, versions, command, remotepath, timeout in seconds, force}" },
          ),
        },
      ],
      returns: "list of {host, depot, version, state, message}, one for each host and depot",
      example,
      changes: true,
      call: async ({ principal, log }, given) => {
        const { timeout, ...rest } = membersOf(Deployment, given, { log });
        const request = { ...rest, ...(timeout !== undefined && { timeoutSeconds: timeout }) };
        return valueOf(await deployments[name](principal, request));
      },
    });
  const where = '{ hosts: ["web-1"], depots: ["example"], versions: ["1.0.9"], timeout: 1 }';
  return [
    placing(
      "deploy",
      "Puts versions of depots on hosts and waits for how that ends",
      `${MADE("1.0.9")}OUTPUT = depot.deploy(${where})[0].state`,
    ),
    placing(
      "undeploy",
      "Takes versions of depots off hosts and waits for how that ends",
      `OUTPUT = depot.undeploy(${where})[0].state`,
    ),
  ];
}

/** Writes the files to a temporary folder, like uploads, while `work` runs. */
async function withUploads<T>(
  files: Readonly<Record<string, string>>,
  work: (uploads: readonly DepotUpload[]) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "odp-depot-"));
  try {
    const uploads: DepotUpload[] = [];
    for (const [filename, text] of Object.entries(files)) {
      const path = join(folder, String(uploads.length));
      await writeFile(path, text);
      uploads.push({ filename, path, size: Buffer.byteLength(text) });
    }
    return await work(uploads);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function valueOf(answer: object): Value {
  return answer as Value;
}
