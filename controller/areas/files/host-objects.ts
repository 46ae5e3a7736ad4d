import { Type } from "typebox";
import { AppError } from "../../../common/errors.ts";
import { QUERY_COLLECT_MAX_ROWS } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { FileEntry } from "./entries.ts";
import type { FileService } from "./service.ts";

const PATH = { name: "path", schema: Type.String({ description: "Below the file space of the tenant" }) } as const;

/** `dfs`: the user's file space. */
export function filesHostObject(files: FileService): HostObject {
  const carrying = (name: "copy" | "move", summary: string) =>
    hostFunction({
      name,
      summary,
      parameters: [PATH, { name: "folder", schema: Type.String({ description: "The target folder" }) }],
      returns: "nothing",
      example: `dfs.write("/tmp/${name}.txt", "text"); dfs.write("/tmp/${name}/x.txt", "x"); dfs.${name}("/tmp/${name}.txt", "/tmp/${name}")`,
      changes: true,
      call: async ({ principal }, path, folder) => {
        await files[name](principal, { path, space: "user" }, folder);
        return undefined;
      },
    });
  return {
    name: "dfs",
    summary: "Files of the tenant, with the rights of the script",
    functions: [
      hostFunction({
        name: "write",
        summary: "Writes a text file",
        parameters: [PATH, { name: "text", schema: Type.String({ description: "Its content" }) }],
        returns: "nothing",
        example: 'dfs.write("/tmp/example.txt", "text")',
        changes: true,
        call: async ({ principal }, path, text) => {
          await files.write(principal, { path, space: "user" }, { text });
          return undefined;
        },
      }),
      hostFunction({
        name: "read",
        summary: "The content of a text file",
        parameters: [PATH],
        returns: "text",
        example: 'dfs.write("/tmp/example.txt", "text"); OUTPUT = dfs.read("/tmp/example.txt")',
        call: async ({ principal }, path) => (await files.read(principal, path)).text,
      }),
      hostFunction({
        name: "readdir",
        summary: "What is in a folder",
        parameters: [PATH],
        returns: "list of {name, fullname, ftype, size, modified, isdir}",
        example: 'dfs.write("/tmp/example.txt", "text"); OUTPUT = dfs.readdir("/tmp")',
        call: async ({ principal, signal }, path) => {
          const found: Value[] = [];
          for await (const page of files.list(principal, { path, space: "user" }, signal)) {
            found.push(...page.map(shown));
            if (found.length > QUERY_COLLECT_MAX_ROWS)
              throw new AppError("too_large", `${path} has more than ${QUERY_COLLECT_MAX_ROWS} entries.`);
          }
          return found;
        },
      }),
      carrying("copy", "Copies a file or a folder into a folder"),
      carrying("move", "Moves a file or a folder into a folder"),
    ],
  };
}

function shown({ fullname, content, ftype, size, modifiedMs }: FileEntry): Value {
  const name = fullname.slice(fullname.lastIndexOf("/") + 1);
  return { name, fullname, ftype, size, modified: modifiedMs, isdir: content === undefined };
}
